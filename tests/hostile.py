"""Words and labels that try to become something else: markup, attributes, formulas, a terminal's commands."""

from __future__ import annotations

import random
from typing import Final

PIECES: Final = (
    # HTML and SVG
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "' onmouseover='alert(1)",
    '" onfocus="alert(1)" autofocus x="',
    "</title><svg/onload=alert(1)>",
    "</style><style>*{display:none}",
    "<!--",
    "-->",
    "]]><![CDATA[",
    "&lt;b&gt;",
    "&#60;i&#62;",
    "<a href=javascript:alert(1)>",
    "<iframe srcdoc='x'>",
    "{{7*7}}${7*7}<%= 7 %>",
    # Markdown
    "[x](http://e.example)",
    "![x](http://e.example/y.png)",
    "<http://e.example>",
    "http://e.example/?a=b",
    "www.e.example",
    "someone@e.example",
    "`code` ```",
    "**bold** __bold__ ~~gone~~",
    "| cell | cell |",
    "# head",
    "1. item",
    "- item",
    "===",
    "---",
    "> quoted",
    "[^1] [x]: http://e.example",
    "\\*not\\*",
    "$x^2$",
    # formulas
    '=HYPERLINK("http://e.example","x")',
    "=cmd|' /C calc'!A0",
    "+1+1",
    "@SUM(A1:A9)",
    # terminals
    "\x1b[31m\x1b[2J",
    "\x1b]8;;http://e.example\x07link",
    "\x1b]0;title\x07",
    "\x1bP+q544e\x1b\\",
    "\x9b31m\x9d0;x\x9c",
    "\x00\x07\x08\x08",
    "\rgone",
    "a\nb",
    "a\tb",
    "\x7f",
    "[bold red]markup[/]",
    "[link=http://e.example]x[/link]",
    "[/]",
    ":boom:",
    "%s %(x)s {0} {x!r}",
    # signs that cannot be seen
    "\u202egnirts\u202c",
    "\u2066x\u2069",
    "z\u200bw\ufeff",
    "\u2028\u2029",
    # names that mean something to a program
    "__proto__",
    "constructor",
    "None",
    "NaN",
    # and what is merely unusual
    "😀👩‍👩‍👧",
    "e\u0301\u0301\u0301",
    "عربى",
    "李",
    "A" * 120,
)


def pairs(number: int, seed: int = 0) -> list[tuple[str, str]]:
    """(a word, a label), so many of them; every label is another one."""
    chance = random.Random(seed)
    return [(_made(chance), f"{_made(chance)}{index}") for index in range(number)]


def _made(chance: random.Random) -> str:
    made = "".join(chance.choices(PIECES, k=chance.randint(1, 3)))
    return made[chance.randrange(len(made)) :] if chance.random() < 0.2 else made
