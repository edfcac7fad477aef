"""File formats. Each has one file here that registers a ``Format``; nothing else needs an edit."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO

from cfner.corpus.report import ReadReport
from cfner.corpus.sentence import Sentence
from cfner.corpus.tags import Scheme, scheme_named
from cfner.errors import CorpusError, nearest

Reading = tuple[list[Sentence], ReadReport]


@dataclass(frozen=True)
class ReadOptions:
    """What a caller may say about a file. A column is a name, or a number from 0 (-1 is the last one).

    For formats with named fields ``token_column`` is the field of the words or of the text, ``tag_column``
    that of the tags or of the spans. ``labels`` gives the names of integer tags.
    """

    tag_column: str | int | None = None
    token_column: str | int | None = None
    scheme: Scheme | None = None
    labels: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if self.scheme is not None:
            object.__setattr__(self, "scheme", scheme_named(self.scheme))
        for name in ("tag_column", "token_column"):
            column = getattr(self, name)
            if isinstance(column, str) and column.removeprefix("-").isdecimal():
                object.__setattr__(self, name, int(column))


@dataclass(frozen=True)
class Format:
    """One format: how its files are called, how they are read and, if they can be, written.

    ``recognises`` looks into a file or folder where the name alone does not tell. ``read_splits`` is for
    sources that hold several splits in one place.
    """

    name: str
    summary: str
    suffixes: tuple[str, ...]
    read: Callable[[Path, ReadOptions], Reading]
    recognises: Callable[[Path], bool] | None = None
    read_splits: Callable[[str, ReadOptions], Mapping[str, Reading]] | None = None
    write: Callable[[Sequence[Sentence], IO[bytes], Scheme], None] | None = None


_registry: dict[str, Format] = {}


def register(format: Format) -> Format:
    if format.name in _registry:
        raise ValueError(f"the format '{format.name}' is registered twice")
    _registry[format.name] = format
    return format


@cache
def _discover() -> None:
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")


def formats() -> dict[str, Format]:
    """All formats by name."""
    _discover()
    return dict(sorted(_registry.items()))


def format_named(name: str) -> Format:
    known = formats()
    if name not in known:
        raise CorpusError(f"unknown format '{name}'.", remedy=nearest(name, known))
    return known[name]


def format_of(path: Path) -> Format | None:
    """The format of an existing file or folder by its suffix and, where several share it, by its content."""
    candidates = [
        format
        for format in formats().values()
        if path.suffix.lower() in format.suffixes or (path.is_dir() and format.recognises is not None)
    ]
    fitting = [format for format in candidates if format.recognises is None or format.recognises(path)]
    return fitting[0] if fitting else None


def writable_formats() -> dict[str, Format]:
    return {name: format for name, format in formats().items() if format.write is not None}


def format_for_writing(path: Path, name: str | None = None) -> Format:
    """The named format, or the one that the suffix of the path stands for."""
    known = writable_formats()
    if name is not None:
        if name not in known:
            raise CorpusError(f"the format '{name}' cannot be written.", remedy=nearest(name, known))
        return known[name]
    for format in known.values():
        if path.suffix.lower() in format.suffixes:
            return format
    raise CorpusError(
        f"the suffix '{path.suffix}' stands for no format that can be written.",
        where=str(path),
        remedy=f"Name the format: {', '.join(known)}.",
    )
