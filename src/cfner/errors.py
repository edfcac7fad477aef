"""The exception tree. Every error says what was wrong, where, and what to do about it."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import ValidationError

_MOST_COMPLETIONS = 3  # names suggested that start with the given one
_MOST_PROBLEMS = 10  # problems shown of one table of settings


class CfnerError(Exception):
    """Base class of all errors that this package raises on purpose.

    ``str(error)`` is one paragraph: what was wrong (with its place, if there is one), then the remedy.
    """

    def __init__(self, what: str, *, where: str | None = None, remedy: str | None = None) -> None:
        super().__init__(what)
        self.what, self.where, self.remedy = what, where, remedy

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        return f"{place}{self.what}{f' {self.remedy}' if self.remedy else ''}"


class ConfigError(CfnerError):
    """A setting is unknown, out of range, or contradicts another one."""


class CorpusError(CfnerError):
    """A corpus cannot be read."""


class StreamError(CfnerError):
    """Entity types or sentences cannot be divided into steps as asked."""


class EncoderError(CfnerError):
    """An encoder or its tokenizer cannot be found or used."""


class ModelError(CfnerError):
    """A model folder is missing, damaged, or not suitable for the request."""


class TrainingError(CfnerError):
    """Training cannot go on, for example because a loss is not finite."""


class MissingExtraError(CfnerError):
    """An optional dependency is needed and not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package '{package}', which is not installed.",
            remedy=f"Install it with: {install_command(extra)}",
        )


def install_command(extra: str) -> str:
    """The command that installs an extra: from the checkout or wheel that pip installed cfner from, if pip
    recorded one; otherwise by name, from the package index."""
    import json
    import shlex
    from importlib import metadata
    from pathlib import Path
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    try:
        recorded = metadata.distribution("cfner").read_text("direct_url.json")
    except metadata.PackageNotFoundError:  # cfner is on the path, but not installed
        recorded = None
    origin = json.loads(recorded or "{}")
    address = urlsplit(origin.get("url", ""))
    place = Path(url2pathname(address.path))
    if address.scheme != "file" or not place.exists():
        return f"pip install 'cfner[{extra}]'"
    editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
    here = "." if place == Path.cwd() else str(place)
    return f"pip install {editable}{shlex.quote(f'{here}[{extra}]')}"


@contextmanager
def located(where: str) -> Iterator[None]:
    """Add ``where`` to errors raised inside that do not have a place yet."""
    try:
        yield
    except CfnerError as error:
        error.where = error.where or where
        raise


def import_extra(package: str, extra: str, purpose: str) -> Any:
    """Import a package that only an extra installs."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise MissingExtraError(package, extra, purpose) from error


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint for a misspelt name: 'Did you mean 'x'?' and the known names."""
    names = sorted(known)
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.5)
    if not close and word:
        close = [name for name in names if name.startswith(word)][:_MOST_COMPLETIONS]
    hint = f"Did you mean {' or '.join(repr(name) for name in close)}? " if close else ""
    return f"{hint}Known: {', '.join(names) if names else 'none'}."


def problems(error: ValidationError) -> str:
    """The errors of a schema in one line; the first few if there are many."""
    found = error.errors()
    shown = [f"{'.'.join(map(str, e['loc'])) or 'all of it'}: {e['msg']}" for e in found[:_MOST_PROBLEMS]]
    more = len(found) - len(shown)
    return "; ".join([*shown, *([f"and {more} more"] if more else [])])
