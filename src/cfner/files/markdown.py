"""Escape untrusted text, such as labels and names, so that Markdown shows exactly that text."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

# Markdown's special characters; what becomes a link by itself; what is special at the beginning of a line
_MEANING = re.compile(r"[\\`*_\[\]|~#!@$]|:(?=/)|(?<=www)\.|^[-+=]", re.IGNORECASE)
_NUMBERED = re.compile(r"^(\d{1,9})([.)])(?=\s|$)", re.ASCII)  # a numbered list item


def escaped(text: str) -> str:
    """One line in which every Markdown character is escaped."""
    printable = "".join(sign if sign.isprintable() else " " for sign in text).strip()
    return _NUMBERED.sub(r"\1\\\2", _MEANING.sub(r"\\\g<0>", html.escape(printable, quote=False)))


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table from cells that are already escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n"
