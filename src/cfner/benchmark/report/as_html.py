"""The report as one page that needs nothing else: pictures are part of it, there is no script."""

from __future__ import annotations

from typing import Final

from cfner.benchmark.report.document import Block, Cell, Document, Heading, Paragraph, Picture, Table
from cfner.pages import svg
from cfner.pages.page import text, whole_page, word
from cfner.pages.style import HOUSE

STYLE: Final = (
    HOUSE
    + svg.STYLE
    + """
main { max-width: 76rem; }
h1, h2, h3 { overflow-wrap: anywhere; }
h2 { font-size: 1.45rem; margin-top: 3.2rem; padding-top: 1.2rem; border-top: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin: 2rem 0 .7rem; }
h2, h3 { scroll-margin-top: 1rem; }
p { max-width: 46rem; color: var(--soft); margin: .5rem 0 .9rem; overflow-wrap: anywhere; }
.loud { color: var(--wait); background: var(--wait-tint); border-radius: .6rem; padding: .7rem 1rem;
  max-width: none; }
nav ul { list-style: none; margin: 1rem 0 0; padding: 0; font-size: .92rem; columns: 2; column-gap: 2rem; }
nav li { break-inside: avoid; padding: .1rem 0; overflow-wrap: anywhere; }
nav a { color: var(--e); text-decoration: none; } nav a:hover { text-decoration: underline; }
.scroll { overflow-x: auto; background: var(--card); border: 1px solid var(--line); border-radius: .8rem;
  margin: 0 0 1rem; }
.scroll th, .scroll td { padding: .4rem .7rem; text-align: right; font-variant-numeric: tabular-nums;
  white-space: nowrap; }
.scroll .words { text-align: left; white-space: normal; overflow-wrap: anywhere; min-width: 5rem; }
.scroll .words:first-child { min-width: 11rem; padding-left: .9rem; position: sticky; left: 0;
  background: var(--card); }
.scroll th { white-space: normal; vertical-align: bottom; min-width: 3rem; }
figure { margin: .6rem 0 1.2rem; }
figure svg { display: block; max-width: 100%; height: auto; margin: 0 auto; }
@media (max-width: 48rem) {
  nav ul { columns: 1; }
  figure svg { max-width: none; height: auto; width: auto; }
  .scroll th, .scroll td { padding: .35rem .6rem; }
  .scroll .words:first-child { min-width: 8.5rem; padding-left: .6rem; }
}
"""
)


def html(document: Document) -> str:
    named = list(enumerate(document.blocks))
    parts = [f"<header><h1>{word(document.title)}</h1></header>", _contents(named)]
    parts += [_block(block, number) for number, block in named]
    return whole_page(document.title, STYLE, parts)


def _contents(blocks: list[tuple[int, Block]]) -> str:
    links = [
        f"<li><a href='#b{number}'>{word(block.text)}</a></li>"
        for number, block in blocks
        if isinstance(block, Heading) and block.level == 2
    ]
    return f"<nav aria-label='Contents'><ul>{''.join(links)}</ul></nav>" if len(links) > 1 else ""


def _block(block: Block, number: int) -> str:
    if isinstance(block, Heading):
        return f"<h{block.level} id='b{number}'>{word(block.text)}</h{block.level}>"
    if isinstance(block, Paragraph):
        return f"<p{' class=loud' if block.loud else ''}>{text(block.text)}</p>"
    if isinstance(block, Picture):
        return f"<figure class='scroll'>{block.svg.inline()}</figure>"
    return _table(block)


def _table(table: Table) -> str:
    heads = "".join(
        f"<th{_kind(table, i)} scope='col'>{text(name)}</th>" for i, name in enumerate(table.head)
    )
    rows = "".join(
        f"<tr>{''.join(f'<td{_kind(table, i)}>{_cell(cell)}</td>' for i, cell in enumerate(row))}</tr>"
        for row in table.rows
    )
    return f"<div class='scroll'><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"


def _kind(table: Table, column: int) -> str:
    return " class='words'" if column < table.left else ""


def _cell(cell: Cell) -> str:
    return f"<b>{word(cell.text)}</b>" if cell.bold else word(cell.text)
