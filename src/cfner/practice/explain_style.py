"""The look of the explanation page, light and dark."""

from __future__ import annotations

from typing import Final

STYLE: Final = """
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
.sentence { background: var(--card); border: 1px solid var(--line); border-radius: .8rem;
  padding: 1.1rem 1.2rem; line-height: 2.5; margin: 0; }
.tok { text-decoration: none; color: inherit; padding: .18rem .4rem; border-radius: .4rem;
  white-space: nowrap; }
.tok.plain { padding: .18rem .08rem; }
.tok:hover, .tok:focus-visible { outline: 2px solid currentColor; }
.tok small { font-size: .68rem; margin-left: .35rem; opacity: .85; font-weight: 600; }
.tok.e, .dot.e, .e .badge { background: var(--e-tint); color: var(--e); }
.tok.o, .dot.o, .o .badge { background: var(--o-tint); color: var(--o); }
.tok.wait, .dot.wait, .wait .badge { background: var(--wait-tint); color: var(--wait); }
.tok.ce, .dot.ce, .ce .badge { background: var(--ce-tint); color: var(--ce); }
.dot.plain { background: var(--plain-tint); color: var(--plain); }
.legend { list-style: none; padding: 0; margin: .8rem 0 0; display: flex; flex-wrap: wrap; gap: .3rem 1.4rem;
  font-size: .85rem; color: var(--soft); }
.dot { display: inline-block; width: .8rem; height: .8rem; border-radius: .25rem; margin-right: .45rem;
  vertical-align: -.08rem; border: 1.5px solid currentColor; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .8rem; }
.figures div { background: var(--card); border: 1px solid var(--line); border-radius: .8rem;
  padding: .8rem 1rem; display: flex; flex-direction: column; }
.figures b { font-size: 1.6rem; line-height: 1.25; font-variant-numeric: tabular-nums; }
.figures small, td small, figcaption { color: var(--soft); font-size: .8rem; }
figure { margin: 1.2rem 0 0; }
.epochs { list-style: none; margin: 0; padding: 0; display: flex; gap: .5rem; }
.epoch { flex: 1 1 0; max-width: 6rem; display: flex; flex-direction: column; align-items: center;
  font-size: .85rem; color: var(--soft); }
.epoch .column { position: relative; width: 100%; height: 6rem; background: var(--card);
  border: 1px solid var(--line); border-radius: .4rem; overflow: hidden; margin: .2rem 0; }
.epoch i { position: absolute; left: 0; right: 0; bottom: 0; }
.epoch .all { background: var(--o); opacity: .3; }
.epoch .right { background: var(--o); }
.epoch.here { color: var(--ink); font-weight: 700; }
.epoch.here .column { border: 2px solid var(--ink); }
.card { background: var(--card); border: 1px solid var(--line); border-left: .35rem solid var(--plain);
  border-radius: .8rem; padding: 1.1rem 1.3rem; margin: 0 0 1rem; scroll-margin-top: 1rem; }
.card.e { border-left-color: var(--e); } .card.o { border-left-color: var(--o); }
.card.wait { border-left-color: var(--wait); } .card.ce { border-left-color: var(--ce); }
.card:target, tr:target { outline: 2px solid var(--ink); }
.card h3 { margin: 0; font-size: 1.25rem; }
.badge { font-size: .8rem; font-weight: 600; padding: .15rem .55rem; border-radius: 1rem; margin-left: .7rem;
  vertical-align: .12rem; background: var(--plain-tint); }
.said { margin: .15rem 0 .9rem; color: var(--soft); } .said b { color: var(--ink); }
.dists { display: grid; grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)); gap: .6rem 1.8rem;
  margin-bottom: 1rem; }
.dist h4 { margin: 0 0 .3rem; font-size: .8rem; color: var(--soft); font-weight: 600; }
.dist.none p { color: var(--soft); margin: 0; }
.bar { display: grid; grid-template-columns: 7.5rem 1fr 2.4rem; align-items: center; gap: .5rem;
  font-size: .85rem; line-height: 1.7; }
.bar > span:first-child { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.bar .num { text-align: right; }
.track { height: .6rem; background: var(--track); border-radius: .3rem; overflow: hidden; }
.track i { display: block; height: 100%; border-radius: .3rem; background: var(--plain); }
.old .track i { background: var(--teacher); }
.e .mix .track i { background: var(--e); } .o .mix .track i { background: var(--o); }
.rest, .rest .num { color: var(--soft); } .dist .rest .track i { background: var(--plain); opacity: .45; }
table { width: 100%; border-collapse: collapse; font-size: .88rem; }
section > table { background: var(--card); border: 1px solid var(--line); border-radius: .8rem;
  border-collapse: separate; border-spacing: 0; overflow: hidden; }
th { text-align: left; font-weight: 600; color: var(--soft); font-size: .78rem; }
th, td { padding: .4rem .7rem .4rem 0; border-top: 1px solid var(--line); vertical-align: top; }
section > table th, section > table td { padding-left: .9rem; }
thead th { border-top: 0; }
td small { display: block; }
td:nth-child(-n+2) { font-variant-numeric: tabular-nums; white-space: nowrap; }
.anchor td { color: var(--soft); }
.far { display: inline-block; width: 3.2rem; height: .45rem; background: var(--track); border-radius: .3rem;
  margin-right: .5rem; vertical-align: .08rem; overflow: hidden; }
.far i { display: block; height: 100%; background: var(--plain); }
.context { overflow-wrap: anywhere; width: 100%; }
.label { white-space: nowrap; }
mark { font-weight: 700; color: inherit; border-radius: .3rem; padding: .05rem .3rem;
  background: var(--plain-tint); }
.e mark { background: var(--e-tint); color: var(--e); }
.o mark { background: var(--o-tint); color: var(--o); }
.wait mark { background: var(--wait-tint); color: var(--wait); }
code { font-size: .8rem; overflow-wrap: anywhere; color: var(--soft); }
@media (max-width: 40rem) {
  .label { white-space: normal; }
  th:nth-child(2), td:nth-child(2) { display: none; }
  section > table th:nth-child(2), section > table td:nth-child(2) { display: table-cell; }
}
"""
