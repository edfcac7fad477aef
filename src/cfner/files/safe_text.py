"""Words and labels come from strangers: how they are shown without steering what shows them."""

from __future__ import annotations

import json
import re
from typing import Any, Final

# what JSON may hold as it is, and a terminal obeys: the second set of control characters, marks that turn the
# direction of writing, invisible ones, line separators; and halves of pairs, which cannot be written at all
_STEERING: Final = re.compile(
    "[\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)


def visible(text: str) -> str:
    """One line, in which every character that cannot be seen is written out: \\x1b, \\x202e."""
    return "".join(sign if sign.isprintable() else f"\\x{ord(sign):02x}" for sign in text)


def json_text(value: Any, indent: int | None = None) -> str:
    """JSON that says the same to a program and nothing to a terminal."""
    written = json.dumps(value, ensure_ascii=False, indent=indent)
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", written)


# where a formula would begin; semicolons separate cells too, where a comma is the decimal sign
_FORMULA: Final = re.compile(r'((?:^|;)["\s]*)(?=[=+@-])')


def spreadsheet_cell(value: Any) -> Any:
    """A text as text: no formula to a spreadsheet, whatever separates its cells, and one line."""
    return _FORMULA.sub(r"\1'", visible(value)) if isinstance(value, str) else value
