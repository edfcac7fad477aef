"""Writing files whole or not at all, and never over an existing one unless asked to."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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
    refuse_existing(path, overwrite)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with partial.open("wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            refuse_existing(path, overwrite)  # somebody may have written it in the meantime
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
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
    target = Path(path)
    chosen = format_for_writing(target, format)
    if chosen.write is None:
        raise ValueError(f"the format '{chosen.name}' cannot be written")
    chosen.write(sentences, target, scheme, overwrite)
