"""What the explanation page adds to the look of the other pages."""

from __future__ import annotations

from typing import Final

from cfner.pages.style import HOUSE

STYLE: Final = (
    HOUSE
    + """
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
section > table { background: var(--card); border: 1px solid var(--line); border-radius: .8rem;
  border-collapse: separate; border-spacing: 0; overflow: hidden; }
section > table th, section > table td { padding-left: .9rem; }
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
    # lengths as classes, because the page's policy allows no style attributes
    + "".join(f".w{n}{{width:{n}%}}.h{n}{{height:{n}%}}" for n in range(101))
)
