"""Escape control and bidirectional characters, so that untrusted text is safe in terminals and JSON."""

from __future__ import annotations

import json
import re
from typing import Any, Final

# Characters that JSON allows but a terminal acts on: C1 control characters, bidirectional marks, invisible
# characters and line separators. Also lone surrogates, which cannot be encoded at all.
_STEERING: Final = re.compile(
    "[\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)


def visible(text: str) -> str:
    """One line, with every invisible character written as an escape: \\x1b, \\x202e."""
    return "".join(sign if sign.isprintable() else f"\\x{ord(sign):02x}" for sign in text)


def json_text(value: Any, indent: int | None = None) -> str:
    """JSON with the same meaning to a program, and without characters that a terminal acts on."""
    written = json.dumps(value, ensure_ascii=False, indent=indent)
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", written)


# where a formula could begin; semicolons too, because they separate cells where the decimal sign is a comma
_FORMULA: Final = re.compile(r'((?:^|;)["\s]*)(?=[=+@-])')


def spreadsheet_cell(value: Any) -> Any:
    """Text on one line that a spreadsheet cannot take for a formula, whatever separates its cells."""
    return _FORMULA.sub(r"\1'", visible(value)) if isinstance(value, str) else value
