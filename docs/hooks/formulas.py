"""Formulas as MathML, made when the site is built: browsers draw it without a script.

In Markdown they are written as GitHub takes them: $...$ in a line, $$...$$ or a ```math block by themselves.
"""

from __future__ import annotations

import re
from typing import Any

from latex2mathml.converter import convert

# Code comes first, so that a dollar sign in it is not taken for a formula.
PIECES = re.compile(
    r"^```math\n(?P<block>.*?)\n```$"
    r"|^(?P<fence>`{3,}|~{3,}).*?^(?P=fence)"
    r"|^ {4}.*?$"
    r"|`[^`\n]+`"
    r"|\$\$(?P<shown>.+?)\$\$"
    r"|(?<![\w\\$])\$(?P<inline>[^\s$](?:[^$\n]*[^\s$\\])?)\$(?!\w)",
    re.DOTALL | re.MULTILINE,
)
HELD = re.compile(r"formulaheld(\d+)x")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Hold every formula aside, so that Markdown does not read its underscores as emphasis."""
    page.meta["formulas"] = held = []

    def hold(found: re.Match[str]) -> str:
        shown, inline = found["block"] or found["shown"], found["inline"]
        if not shown and not inline:
            return found[0]
        held.append(convert(shown or inline, display="block" if shown else "inline"))
        return f"formulaheld{len(held) - 1}x"

    return PIECES.sub(hold, markdown)


def on_page_content(html: str, page: Any, **_: Any) -> str:
    held = page.meta.pop("formulas")
    return HELD.sub(lambda found: str(held[int(found[1])]), html)
