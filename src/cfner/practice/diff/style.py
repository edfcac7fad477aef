"""What the page of ``diff`` adds to the look of the other pages, light and dark."""

from __future__ import annotations

from typing import Final

from cfner.practice.explain.style import STYLE as HOUSE

STYLE: Final = (
    HOUSE
    + """
:root {
  --lost: #b3261e; --lost-tint: #fbe3e1; --gained: #0b6e4f; --gained-tint: #d9f3ea;
  --retyped: #7a4d00; --retyped-tint: #fdeecf; --moved: #2459c9; --moved-tint: #e3ecfd;
}
@media (prefers-color-scheme: dark) {
  :root {
    --lost: #ff9a92; --lost-tint: #4a1d1a; --gained: #5fd6b0; --gained-tint: #12392f;
    --retyped: #f0bf62; --retyped-tint: #40310f; --moved: #8db4ff; --moved-tint: #1d2f55;
  }
}
h1 bdi { overflow-wrap: anywhere; }
.figures a { color: inherit; text-decoration: none; background: var(--card); border: 1px solid var(--line);
  border-radius: .8rem; padding: .8rem 1rem; display: flex; flex-direction: column; }
.figures > a, .figures > div { border-top-width: .3rem; }
.figures a:hover, .figures a:focus-visible { outline: 2px solid currentColor; }
.figures .lost { border-top-color: var(--lost); } .figures .gained { border-top-color: var(--gained); }
.figures .retyped { border-top-color: var(--retyped); } .figures .moved { border-top-color: var(--moved); }
section { scroll-margin-top: 1rem; }
.types td, .types th { text-align: right; font-variant-numeric: tabular-nums; padding-right: .9rem; }
.types td:first-child, .types th:first-child { text-align: left; white-space: normal; min-width: 8.5rem;
  overflow-wrap: anywhere; }
.types td:nth-child(n+4), .types th:nth-child(n+4) { padding-left: 0; }
.scroll { overflow-x: auto; background: var(--card); border: 1px solid var(--line); border-radius: .8rem; }
.scroll table th, .scroll table td { padding-left: .9rem; }
.zero { color: var(--plain); }
.sides { display: grid; grid-template-columns: 1fr 1fr; gap: 0; background: var(--card);
  border: 1px solid var(--line); border-radius: .8rem; margin: 0 0 .7rem; overflow: hidden; }
.sides > div { padding: .7rem 1rem; overflow-wrap: anywhere; line-height: 1.9; }
.sides > div + div { border-left: 1px solid var(--line); }
.sides .about { grid-column: 1 / -1; border: 0; border-top: 1px solid var(--line); padding: .3rem 1rem;
  line-height: 1.5; font-size: .8rem; color: var(--soft); display: flex; flex-wrap: wrap; gap: .2rem 1rem; }
.heads { display: grid; grid-template-columns: 1fr 1fr; font-size: .8rem; color: var(--soft);
  font-weight: 600; padding: 0 0 .3rem; }
.heads span { padding: 0 1rem; overflow-wrap: anywhere; }
.sides mark { font-weight: 400; padding: .1rem .35rem; -webkit-box-decoration-break: clone;
  box-decoration-break: clone; }
.sides mark small { font-size: .7rem; font-weight: 600; margin-left: .3rem; white-space: nowrap; }
.sides mark.hit { font-weight: 700; outline: 1.5px solid currentColor; }
.lost mark.hit { background: var(--lost-tint); color: var(--lost); }
.gained mark.hit { background: var(--gained-tint); color: var(--gained); }
.retyped mark.hit { background: var(--retyped-tint); color: var(--retyped); }
.moved mark.hit { background: var(--moved-tint); color: var(--moved); }
.gone { border-bottom: 2px dotted currentColor; } .lost .gone { color: var(--lost); }
.gained .gone { color: var(--gained); }
.verdict { font-weight: 600; } .verdict.right { color: var(--gained); }
.verdict.wrong { color: var(--lost); } .verdict.still { color: var(--soft); }
@media (max-width: 40rem) {
  .sides, .heads { grid-template-columns: 1fr; }
  .sides > div + div { border-left: 0; border-top: 1px solid var(--line); }
  .scroll table th:nth-child(2), .scroll table td:nth-child(2) { display: table-cell; }
}
"""
)
