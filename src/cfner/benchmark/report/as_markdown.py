"""The report as Markdown, with links to its pictures."""

from __future__ import annotations

from cfner.benchmark.report.document import Block, Cell, Document, Heading, Paragraph, Picture
from cfner.files.markdown import escaped, table


def markdown(document: Document, folder: str) -> str:
    """``folder`` has the pictures; its path is relative to the file."""
    blocks = [f"# {escaped(document.title)}\n", *(_block(block, folder) for block in document.blocks)]
    return "\n".join(blocks)


def _block(block: Block, folder: str) -> str:
    if isinstance(block, Heading):
        return f"{'#' * block.level} {escaped(block.text)}\n"
    if isinstance(block, Paragraph):
        return f"**{escaped(block.text)}**\n" if block.loud or block.alarm else f"{escaped(block.text)}\n"
    if isinstance(block, Picture):
        return f"![{escaped(block.svg.title)}]({folder}/{block.name}.svg)\n"
    return table([escaped(name) for name in block.head], [[_cell(c) for c in row] for row in block.rows])


def _cell(cell: Cell) -> str:
    return f"**{escaped(cell.text)}**" if cell.bold else escaped(cell.text)
