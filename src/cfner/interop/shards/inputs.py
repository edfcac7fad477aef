"""Which files are tagged: names, folders and patterns, each file with the name of its output."""

from __future__ import annotations

import glob
import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cfner.corpus.text_lines import refuse_missing
from cfner.errors import ConfigError, CorpusError
from cfner.interop.text_names import is_text_file, looks_like_file

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Input:
    """A file to tag. ``name``: of its output in the folder, without a suffix."""

    path: Path
    name: str


def names_files(word: str) -> bool:
    """Whether a word names files: an existing file or folder, a pattern that matches, or a file's name."""
    return looks_like_file(word) or _is_folder(word) or bool(glob.has_magic(word) and _matches(word))


def is_folder_name(out: Path) -> bool:
    """Whether an output is a folder of outputs: an existing one, or a name without a suffix."""
    return out.is_dir() or not out.suffix


def wants_folder(files: Sequence[str], out: Path | None, format: str | None, *asked: object) -> bool:
    """Whether files are to be tagged into a folder: there are several, something was asked for that one file
    does not need (workers, a cluster), or the output is a folder."""
    if any(option is not None for option in asked) or len(files) > 1:
        return True
    if any(_is_folder(name) or _is_pattern(name) for name in files):
        return True
    # with a format, a name without a suffix is that of a file
    return bool(files) and out is not None and (out.is_dir() or (format is None and is_folder_name(out)))


def find_inputs(files: Iterable[str | Path], out: Path) -> list[Input]:
    """The files behind names, folders (with their subfolders) and patterns, in the order given.

    An output has the name of its file without the suffix, after the part of the path that a folder or pattern
    leaves open: files of ``texts`` or ``texts/**/*.txt`` keep their subfolders. Folders and patterns never
    find files in ``out``.
    """
    found: dict[Path, Input] = {}
    for given in map(str, files):
        for one in _expanded(given, out):
            found.setdefault(one.path.resolve(), one)
    _refuse_same_names(found.values())
    return list(found.values())


def _expanded(given: str, out: Path) -> Iterator[Input]:
    if _is_folder(given):
        inside = sorted(
            path for path in Path(given).rglob("*") if path.is_file() and not _hidden(path, given)
        )
        texts = [path for path in inside if is_text_file(path.name)]
        if len(texts) < len(inside):
            others = next(path for path in inside if path not in texts)
            _log.warning("%s: %d files are not text files by their suffix, such as %s, and are left out.",
                         given, len(inside) - len(texts), others.name)  # fmt: skip
        root = Path(given)
    elif _is_pattern(given):
        texts, root = [path for path in map(Path, _matches(given)) if path.is_file()], _fixed_part(given)
    else:
        path = Path(given)
        refuse_missing(path)
        yield Input(path, path.stem)
        return
    texts = [path for path in texts if not path.resolve().is_relative_to(out.resolve())]
    if not texts:
        raise CorpusError(
            "There is no text file in this folder." if _is_folder(given) else "No file matches this pattern.",
            where=given,
            remedy="Check the path. In a pattern, * stands for any part of a name, ** for any folders.",
        )
    for path in texts:
        yield Input(path, path.relative_to(root).with_suffix("").as_posix())


def _refuse_same_names(inputs: Iterable[Input]) -> None:
    taken: dict[str, Path] = {}
    for one in inputs:
        if (other := taken.setdefault(one.name.lower(), one.path)) != one.path:  # some disks ignore case
            raise ConfigError(
                f"{other} and {one.path} would have the same output, '{one.name}'.",
                remedy="Rename one of them, tag them into different folders, or name the folder above both.",
            )


def _is_folder(name: str) -> bool:
    return os.path.isdir(name)  # noqa: PTH112 - Path's raises if a text is too long for a name


def _is_pattern(name: str) -> bool:
    return glob.has_magic(name) and not os.path.exists(name)  # noqa: PTH110 - as above


def _matches(pattern: str) -> list[str]:
    return sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 - Path's refuses absolute patterns


def _fixed_part(pattern: str) -> Path:
    """The folder in front of the first part with a wildcard."""
    parts = Path(pattern).parts
    first = next(number for number, part in enumerate(parts) if glob.has_magic(part))
    return Path(*parts[:first])


def _hidden(path: Path, folder: str) -> bool:
    return any(part.startswith(".") for part in path.relative_to(folder).parts)
