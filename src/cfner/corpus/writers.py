"""Writes files atomically, and never over an existing one unless asked to."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import IO

from cfner.corpus.formats import format_for_writing
from cfner.corpus.sentence import Sentence
from cfner.corpus.tags import Scheme
from cfner.errors import CorpusError
from cfner.files.atomic import atomic_file


def refuse_existing(path: Path, overwrite: bool) -> None:
    if path.is_dir():
        raise CorpusError("is a folder.", where=str(path), remedy="Name a file to write.")
    if path.exists() and not overwrite:
        raise CorpusError(
            "the file exists.",
            where=str(path),
            remedy="Choose a different name, or set `overwrite=True`.",
        )


@contextmanager
def whole_file(path: Path, overwrite: bool) -> Iterator[IO[bytes]]:
    """A file that appears under its name only when it is complete; on any error nothing is left behind."""
    with whole_files(overwrite) as whole, whole(path) as file:
        yield file


@contextmanager
def whole_files(overwrite: bool) -> Iterator[Callable[[Path], AbstractContextManager[IO[bytes]]]]:
    """The same for several files: none gets its name before all are complete.

    A symbolic link stays, and its target is replaced. The new file gets the old one's permissions.
    """
    targets: dict[Path, Path] = {}  # file to replace -> path given

    @contextmanager
    def whole(path: Path) -> Iterator[IO[bytes]]:
        refuse_existing(path, overwrite)
        target = Path(os.path.realpath(path))
        if target in targets:
            raise CorpusError(
                f"is the same file as {targets[target]}, through a link.",
                where=str(path),
                remedy="Remove the link.",
            )
        with _naming(path):
            target.parent.mkdir(parents=True, exist_ok=True)
            partial = files.enter_context(atomic_file(target))
            with partial.open("xb") as file:
                if target.exists():
                    partial.chmod(stat.S_IMODE(target.stat().st_mode))  # before it has any content
                yield file
        targets[target] = path

    with ExitStack() as files:
        yield whole
        for path in targets.values():  # another process may have written one in the meantime
            refuse_existing(path, overwrite)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Turn an OSError into a CorpusError that names the file."""
    try:
        yield
    except OSError as error:
        raise CorpusError(
            f"the file cannot be written ({error.strerror}).",
            where=str(path),
            remedy="Check the path, the permissions and the free disk space.",
        ) from error


def write_sentences(
    sentences: Sequence[Sentence],
    path: str | Path,
    *,
    format: str | None = None,
    scheme: Scheme = "BIO",
    overwrite: bool = False,
) -> None:
    """Write in the named format, or in the one that the file's suffix implies."""
    write_files({Path(path): sentences}, format=format, scheme=scheme, overwrite=overwrite)


def write_files(
    files: Mapping[Path, Sequence[Sentence]],
    *,
    format: str | None = None,
    scheme: Scheme = "BIO",
    overwrite: bool = False,
) -> None:
    """Write several files, all of them or none."""
    for path in files:  # check all before writing the first
        refuse_existing(path, overwrite)
    with whole_files(overwrite) as whole:
        for path, sentences in files.items():
            chosen = format_for_writing(path, format)
            if chosen.write is None:
                raise ValueError(f"the format '{chosen.name}' cannot be written")
            with whole(path) as file:
                chosen.write(sentences, file, scheme)
