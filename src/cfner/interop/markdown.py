"""Text as Markdown that shows exactly it: labels and names come from strangers."""

from __future__ import annotations

import html
from collections.abc import Sequence

_SIGNS = "\\`*_[]|~#!"


def escaped(text: str) -> str:
    """One line in which no sign means anything but itself."""
    printable = "".join(sign if sign.isprintable() else " " for sign in text)
    harmless = html.escape(printable, quote=False)
    return "".join(f"\\{sign}" if sign in _SIGNS else sign for sign in harmless)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of cells that are escaped already."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n"
