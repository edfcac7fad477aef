"""The look that all pages share, light and dark: colours, type, tables, boxes with a figure."""

from __future__ import annotations

from typing import Final

HOUSE: Final = """
:root {
  --paper: #fbfaf8; --card: #ffffff; --ink: #1d2330; --soft: #5b6475; --line: #e3e1dc;
  --e: #2459c9; --e-tint: #e3ecfd; --o: #0b7a5c; --o-tint: #d9f3ea;
  --wait: #9a6200; --wait-tint: #fdeecf; --ce: #7a3fb5; --ce-tint: #f0e6fa;
  --plain: #8b93a3; --plain-tint: #f1f0ed; --teacher: #8a6d3b; --track: #edebe6;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14171d; --card: #1c2029; --ink: #e8eaf0; --soft: #a0a8b8; --line: #2e3441;
    --e: #8db4ff; --e-tint: #1d2f55; --o: #5fd6b0; --o-tint: #12392f;
    --wait: #f0bf62; --wait-tint: #40310f; --ce: #c9a0f5; --ce-tint: #36224c;
    --plain: #8b93a3; --plain-tint: #252a34; --teacher: #d6b87c; --track: #2a303c;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font-size: 2rem; line-height: 1.2; margin: .2rem 0 .6rem; letter-spacing: -.01em; }
h2 { font-size: 1.2rem; margin: 2.6rem 0 .8rem; }
h2 span { color: var(--soft); font-weight: 400; font-size: .9rem; margin-left: .4rem; }
.over { color: var(--soft); margin: 0; font-size: .9rem; letter-spacing: .02em; }
.lead { color: var(--soft); margin: 0 0 1rem; max-width: 46rem; }
.lead b { color: var(--ink); }
.num { font-variant-numeric: tabular-nums; color: var(--soft); }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .8rem; }
.figures div { background: var(--card); border: 1px solid var(--line); border-radius: .8rem;
  padding: .8rem 1rem; display: flex; flex-direction: column; }
.figures b { font-size: 1.6rem; line-height: 1.25; font-variant-numeric: tabular-nums; }
.figures small, td small, figcaption { color: var(--soft); font-size: .8rem; }
figure { margin: 1.2rem 0 0; }
table { width: 100%; border-collapse: collapse; font-size: .88rem; }
th { text-align: left; font-weight: 600; color: var(--soft); font-size: .78rem; }
th, td { padding: .4rem .7rem .4rem 0; border-top: 1px solid var(--line); vertical-align: top; }
thead th { border-top: 0; }
td small { display: block; }
"""
