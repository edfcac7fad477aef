"""Writing that neither a crash nor a full disk can spoil: flush, rename, flush the folder."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError

from cfner.errors import ModelError

PARTIAL = ".partial"  # how a file ends (and begins with a dot) while it is written


@contextmanager
def writing(place: Path) -> Iterator[None]:
    """A write that fails is told as an error of ours, with its place and the system's reason."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or str(error).strip() or type(error).__name__
        raise ModelError(
            f"Writing failed: {reason}.",
            where=str(getattr(error, "filename", None) or place),
            remedy="Make room there, or choose a folder that may be written to. "
            "What was saved before is as it was.",
        ) from error


def write_text_atomic(path: Path, text: str) -> None:
    """A small file that is either the old one or the new one, whenever the machine stops."""
    partial = temp_path(path)
    with writing(path):
        partial.unlink(missing_ok=True)  # of a killed process that had this one's number
        try:
            with partial.open("x", encoding="utf-8") as file:  # never through a link
                file.write(text)
            put_in_place(partial, path)
        finally:
            partial.unlink(missing_ok=True)


def temp_path(path: Path) -> Path:
    """Where a file is written before it gets its name; one per process."""
    return path.with_name(f".{path.name}.{os.getpid()}{PARTIAL}")


def is_partial(path: Path) -> bool:
    """Whether a file is one that was being written: by us, or by safetensors, which has names of its own."""
    ours = path.name.startswith(".") and path.name.endswith(PARTIAL)
    return ours or re.fullmatch(r"\.tmp\w{6}", path.name) is not None


def put_in_place(partial: Path, path: Path) -> None:
    """Rename a file that was written whole. Its bytes are on disk before its name is, and then its name."""
    flush(partial)
    partial.replace(path)
    flush(path.parent)


def flush_tree(folder: Path) -> None:
    """Everything in a folder, then the folder."""
    for item in folder.iterdir():
        flush_tree(item) if item.is_dir() else flush(item)
    flush(folder)


def flush(path: Path) -> None:
    """Wait until a file's bytes, or the names in a folder, are on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
