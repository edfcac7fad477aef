"""The frame of every HTML page that is written to a file: self-contained, with escaped text."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Final

from cfner.corpus.writers import whole_file
from cfner.files.html import text

CSS: Final = Path(__file__).parent / "css"
# no script, no external resources, only the page's own style sheet, identified by its hash
_POLICY = "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'"


def whole_page(title: str, sheet: str, parts: Iterable[str], *, style: str = "") -> str:
    """The complete page, to be encoded as UTF-8. ``parts`` are markup, made with ``text`` and ``word`` of
    ``files.html``, without ``style`` attributes, which the policy forbids.

    ``sheet`` names a file of ``css/`` to add to the shared style; ``style`` is added to both.
    """
    style = "".join((CSS / f"{name}.css").read_text("utf-8") for name in ("palette", "house", sheet)) + style
    policy = _POLICY.format(hash=b64encode(sha256(style.encode()).digest()).decode())
    return "\n".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{text(title)}</title><style>{style}</style></head><body><main>",
            *parts,
            "</main></body></html>\n",
        ]
    )


def table(heads: str, rows: str, kind: str = "") -> str:
    """A table of finished cells and rows."""
    named = f" class='{kind}'" if kind else ""
    return f"<table{named}><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"


def head(*names: str) -> str:
    return "".join(f"<th>{text(name)}</th>" for name in names)


def figure(value: int, what: str, note: str) -> str:
    """The content of a box in ``.figures``."""
    return f"<b>{value:,}</b><span>{text(what)}</span><small>{text(note)}</small>"


def write_page(path: Path, page: str, *, overwrite: bool = False) -> None:
    with whole_file(path, overwrite) as file:
        file.write(page.encode())
