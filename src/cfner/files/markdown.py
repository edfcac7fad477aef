"""Text as Markdown that shows exactly it: labels and names come from strangers."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

# signs of Markdown; what turns into a link by itself; what means something at the beginning of a line
_MEANING = re.compile(r"[\\`*_\[\]|~#!@$]|:(?=/)|(?<=www)\.|^[-+=]", re.IGNORECASE)
_NUMBERED = re.compile(r"^(\d{1,9})([.)])(?=\s|$)", re.ASCII)  # an item of a list


def escaped(text: str) -> str:
    """One line in which no sign means anything but itself."""
    printable = "".join(sign if sign.isprintable() else " " for sign in text).strip()
    return _NUMBERED.sub(r"\1\\\2", _MEANING.sub(r"\\\g<0>", html.escape(printable, quote=False)))


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of cells that are escaped already."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n"
