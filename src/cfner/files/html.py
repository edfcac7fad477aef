"""HTML from untrusted text: for pages, and for the notebook views of objects.

A notebook has a light or dark theme and may strip style sheets. So fragments for it carry inline styles in
half-transparent colours. They have no script, no link, and no identifier.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from html import escape

from cfner.files.safe_text import visible

_CELL = "padding:.25em .8em .25em 0;border:0;border-top:1px solid rgba(128,128,128,.25);text-align:{}"
_HEAT = "13,148,136"  # the colour of bars, as in the pictures of a report


def text(value: object) -> str:
    """Escape a value as text, never markup; control characters and lone surrogates are made visible."""
    return escape(visible(str(value)), quote=True)


def word(value: str) -> str:
    return f"<bdi>{text(value)}</bdi>"  # isolated, so that a right-to-left word cannot reorder the page


def notebook(*parts: str) -> str:
    """A fragment for a notebook. The classes stop MathJax from reading dollar signs as formulas."""
    style = "font:14px/1.5 system-ui,sans-serif;max-width:62rem;overflow-x:auto"
    return f'<div class="tex2jax_ignore mathjax_ignore" style="{style}">{"".join(parts)}</div>'


def notebook_table(head: Sequence[str], rows: Iterable[Sequence[str]], *, words: int = 1) -> str:
    """A table. ``rows`` are escaped cells; the first ``words`` columns are aligned left, the others right."""

    def cells(tag: str, row: Sequence[str]) -> str:
        sides = ["left" if column < words else "right;white-space:nowrap" for column in range(len(row))]
        return "".join(
            f'<{tag} style="{_CELL.format(side)}">{cell}</{tag}>'
            for side, cell in zip(sides, row, strict=True)
        )

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    heads = cells("th", [text(name) for name in head])
    style = "border-collapse:collapse;color:inherit;font-size:inherit;margin:.4em 0"
    return f'<table style="{style}"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'


def notebook_bar(percent: float) -> str:
    """A bar from 0 to 100, next to its figure."""
    wide = f"{min(max(percent, 0.0), 100.0):.1f}%"
    colours = f"rgba({_HEAT},.75) {wide},rgba(128,128,128,.15) {wide}"
    style = "display:inline-block;width:8em;height:.7em;border-radius:.35em;vertical-align:middle"
    return f'<span style="{style};background:linear-gradient(to right,{colours})"></span> {percent:.1f}'


def notebook_mark(value: str, label: str, note: str = "") -> str:
    """Words with the name of their type, highlighted in the type's colour."""
    hue = zlib.crc32(label.encode("utf-8", "surrogatepass")) % 360
    style = f"background:hsla({hue},75%,50%,.2);border-bottom:2px solid hsla({hue},75%,45%,.7)"
    small = '<small style="font-weight:600;margin-left:.4em;opacity:.85">'
    return (
        f'<mark style="{style};color:inherit;border-radius:.35em;padding:.1em .35em">{word(value)}'
        f"{small}{word(label)}{f' {text(note)}' if note else ''}</small></mark>"
    )
