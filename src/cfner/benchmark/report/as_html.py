"""The report as one self-contained page: pictures are inline, and there is no script."""

from __future__ import annotations

from cfner.benchmark.report.document import Block, Cell, Document, Heading, Paragraph, Picture, Table
from cfner.files.html import text, word
from cfner.pages import svg
from cfner.pages.page import table, whole_page

_MANY_COLUMNS = 10  # more than this are set closer, so that they fit on a screen


def html(document: Document) -> str:
    named = list(enumerate(document.blocks))
    parts = [f"<header><h1>{word(document.title)}</h1></header>", _contents(named)]
    parts += [_block(block, number) for number, block in named]
    return whole_page(document.title, "report", parts, style=svg.STYLE)


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
        kind = "alarm" if block.alarm else "loud" if block.loud else ""
        return f"<p{f' class={kind}' if kind else ''}>{text(block.text)}</p>"
    if isinstance(block, Picture):
        return f"<figure class='scroll'>{block.svg.inline()}</figure>"
    return f"<div class='scroll'>{_table(block)}</div>"


def _table(block: Table) -> str:
    kinds = [" class='words'" if column < block.left else "" for column in range(len(block.head))]
    heads = (f"<th{kind} scope='col'>{text(name)}</th>" for kind, name in zip(kinds, block.head, strict=True))
    rows = (
        "".join(f"<td{kind}>{_cell(cell)}</td>" for kind, cell in zip(kinds, row, strict=True))
        for row in block.rows
    )
    kind = "wide" if len(block.head) > _MANY_COLUMNS else ""
    return table("".join(heads), "".join(f"<tr>{row}</tr>" for row in rows), kind)


def _cell(cell: Cell) -> str:
    return f"<b>{word(cell.text)}</b>" if cell.bold else word(cell.text)
