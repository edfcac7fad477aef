"""A report before it is Markdown, LaTeX or HTML: headings, paragraphs, tables, pictures.

All texts here are plain. Each output format escapes them, so a name is shown exactly as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cfner.pages.svg import Svg


@dataclass(frozen=True)
class Heading:
    text: str
    level: int = 2


@dataclass(frozen=True)
class Paragraph:
    text: str
    loud: bool = False  # must not be overlooked
    alarm: bool = False  # in red: without it, the reader would draw a wrong conclusion


@dataclass(frozen=True)
class Cell:
    text: str
    bold: bool = False


@dataclass(frozen=True)
class Table:
    """The first ``left`` columns are text, the others figures."""

    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    left: int = 1

    @classmethod
    def of(cls, head: Sequence[str], rows: Sequence[Sequence[str | Cell]], left: int = 1) -> Table:
        cells = [tuple(cell if isinstance(cell, Cell) else Cell(cell) for cell in row) for row in rows]
        return cls(tuple(head), tuple(cells), left)


@dataclass(frozen=True)
class Picture:
    """``name`` is the file name without its suffix."""

    name: str
    svg: Svg


Block = Heading | Paragraph | Table | Picture


@dataclass(frozen=True)
class Document:
    title: str
    blocks: tuple[Block, ...]

    @property
    def pictures(self) -> list[Picture]:
        return [block for block in self.blocks if isinstance(block, Picture)]
