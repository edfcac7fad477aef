"""Writing files whole or not at all, and never over an existing one unless asked to."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO

from cfner.corpus.formats import format_for_writing
from cfner.corpus.sentence import Sentence
from cfner.corpus.tags import Scheme
from cfner.errors import CorpusError


def refuse_existing(path: Path, overwrite: bool) -> None:
    if path.is_dir():
        raise CorpusError("is a folder.", where=str(path), remedy="Name a file to write.")
    if path.exists() and not overwrite:
        raise CorpusError(
            "the file exists.", where=str(path), remedy="Choose another name, or allow --overwrite."
        )


@contextmanager
def whole_file(path: Path, overwrite: bool) -> Iterator[IO[bytes]]:
    """A file that appears under its name only when it is complete; on any error nothing is left behind."""
    with whole_files(overwrite) as whole, whole(path) as file:
        yield file


@contextmanager
def whole_files(overwrite: bool) -> Iterator[Callable[[Path], AbstractContextManager[IO[bytes]]]]:
    """The same for several files: none gets its name before all are complete."""
    complete: dict[Path, Path] = {}

    @contextmanager
    def whole(path: Path) -> Iterator[IO[bytes]]:
        refuse_existing(path, overwrite)
        partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
        with _naming(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                with partial.open("wb") as file:
                    yield file
                    file.flush()
                    os.fsync(file.fileno())
            except BaseException:
                partial.unlink(missing_ok=True)
                raise
            complete[path] = partial

    try:
        yield whole
        for path in complete:  # somebody may have written one in the meantime
            refuse_existing(path, overwrite)
        for path, partial in complete.items():
            with _naming(path):
                partial.replace(path)
    finally:
        for partial in complete.values():
            partial.unlink(missing_ok=True)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """What the system refuses, said of this file."""
    try:
        yield
    except OSError as error:
        raise CorpusError(
            f"the file cannot be written ({error.strerror}).",
            where=str(path),
            remedy="Check the path, the permissions and the space left.",
        ) from error


def write_sentences(
    sentences: Sequence[Sentence],
    path: str | Path,
    *,
    format: str | None = None,
    scheme: Scheme = "BIO",
    overwrite: bool = False,
) -> None:
    """Write in the named format, or in the one that the file's suffix stands for."""
    write_files({Path(path): sentences}, format=format, scheme=scheme, overwrite=overwrite)


def write_files(
    files: Mapping[Path, Sequence[Sentence]],
    *,
    format: str | None = None,
    scheme: Scheme = "BIO",
    overwrite: bool = False,
) -> None:
    """Write several files, all of them or none."""
    for path in files:  # before the work of the first
        refuse_existing(path, overwrite)
    with whole_files(overwrite) as whole:
        for path, sentences in files.items():
            chosen = format_for_writing(path, format)
            if chosen.write is None:
                raise ValueError(f"the format '{chosen.name}' cannot be written")
            with whole(path) as file:
                chosen.write(sentences, file, scheme)
