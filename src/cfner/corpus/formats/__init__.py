"""File formats. Each is one file here that defines ``FORMAT``; to add one, add a file."""

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
    """What a caller may specify about a file. A column is a name, or a number from 0 (-1 is the last one).

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
    """One format: its name and suffixes, how to read it and, if possible, how to write it.

    ``recognises`` looks into a file or folder where the name alone is not enough. ``read_splits`` is for
    sources that hold several splits in one place.
    """

    name: str
    suffixes: tuple[str, ...]
    read: Callable[[Path, ReadOptions, ReadReport], list[Sentence]]
    recognises: Callable[[Path], bool] | None = None
    read_splits: Callable[[str, ReadOptions], Mapping[str, Reading]] | None = None
    write: Callable[[Sequence[Sentence], IO[bytes], Scheme], None] | None = None


@cache
def formats() -> Mapping[str, Format]:
    """All formats by name."""
    names = [module.name for module in pkgutil.iter_modules(__path__)]
    found = [importlib.import_module(f"{__name__}.{name}").FORMAT for name in names]
    return {format.name: format for format in found}


def format_of(path: Path, name: str | None = None) -> Format | None:
    """The named format, or that of an existing file or folder: by its suffix, else by its content."""
    if name is not None:
        if name not in formats():
            raise CorpusError(f"unknown format '{name}'.", remedy=nearest(name, formats()))
        return formats()[name]
    for format in formats().values():
        named = path.suffix.lower() in format.suffixes
        if named if format.recognises is None else (named or path.is_dir()) and format.recognises(path):
            return format
    return None


def writable_formats() -> dict[str, Format]:
    return {name: format for name, format in formats().items() if format.write is not None}


def format_for_writing(path: Path, name: str | None = None) -> Format:
    """The named format, or the one that the suffix of the path implies."""
    known = writable_formats()
    if name is not None and name not in known:
        raise CorpusError(f"the format '{name}' cannot be written.", remedy=nearest(name, known))
    for format in known.values():
        if name == format.name or (name is None and path.suffix.lower() in format.suffixes):
            return format
    raise CorpusError(
        f"the suffix '{path.suffix}' does not belong to a format that cfner can write.",
        where=str(path),
        remedy=f"Name the format: {', '.join(known)}.",
    )
