"""Files and folders that appear complete or not at all: write beside, flush, rename, flush the folder."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError

from cfner.errors import ModelError

PARTIAL = ".partial"  # how a name ends (and begins with a dot) while it is written; folders: .partial-x1y2
_PARTIAL_NAMES = re.compile(r"\.(?:.*\.)?partial(?:-\w+)?|\.tmp\w{6}", re.DOTALL)  # the last: safetensors'
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # of Linux, see renameat2(2)


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
    with atomic_file(path) as partial, partial.open("x", encoding="utf-8") as file:  # never through a link
        file.write(text)


@contextmanager
def atomic_file(path: Path, *, flushed: bool = True) -> Iterator[Path]:
    """The name under which a file is to be written. It gets its own when it is complete and on disk.

    ``flushed=False``: for what is said every second and may be lost with the machine's power.
    """
    partial = temp_path(path)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.unlink(missing_ok=True)  # of a killed process that had this one's number
        try:
            yield partial
            if flushed:
                flush(partial)  # its bytes are on disk before its name is
            partial.replace(path)
            if flushed:
                flush(path.parent)
        finally:
            partial.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: Path, *, refuse: Callable[[Path], None] | None = None) -> Iterator[Path]:
    """A folder to fill, which gets its name when it is complete and on disk; after an error nothing is left.

    ``refuse(path)`` raises if what is there must not be replaced; it is asked before the work and after.
    Without it nothing is ever replaced.
    """
    if refuse is not None:
        refuse(path)
    with writing(path):
        # if a folder to replace is a link, the one that it leads to is meant
        place = path if refuse is None else path.resolve()
        place.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{place.name}{PARTIAL}-", dir=place.parent))
        try:
            yield partial
            partial.chmod(0o755)
            flush_tree(partial)
            if refuse is not None:
                refuse(path)  # somebody may have written it in the meantime
            if refuse is not None and place.exists():
                _take_place(partial, place)
            else:
                partial.rename(place)
            flush(place.parent)
        finally:
            shutil.rmtree(partial, ignore_errors=True)  # what was replaced, or what was not finished


def _take_place(partial: Path, folder: Path) -> None:
    """Give the new folder its name. What was there before has the partial one's name then."""
    if _exchange(partial, folder):
        return
    # A kill between these renames leaves the old folder under its other name. That cannot be helped where
    # names cannot be exchanged.
    aside = partial.with_name(partial.name + "-replaced")
    folder.rename(aside)
    try:
        partial.rename(folder)
    except OSError:
        aside.rename(folder)  # what was there before goes back
        raise
    aside.rename(partial)


def _exchange(one: Path, other: Path) -> bool:
    """Let two names change places at once, so that there is no moment at which one of them is missing.

    Linux can do that, on all its usual file systems, but Python has no word for it. False: not done.
    """
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None) if os.name == "posix" else None
    if rename is None:
        return False
    rename.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    done: int = rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE)
    return done == 0


def temp_path(path: Path) -> Path:
    """Where a file is written before it gets its name; one per process."""
    return path.with_name(f".{path.name}.{os.getpid()}{PARTIAL}")


def is_partial(path: Path) -> bool:
    """Whether a name is that of a file or folder that was being written: by cfner, or by safetensors."""
    return _PARTIAL_NAMES.fullmatch(path.name) is not None


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
