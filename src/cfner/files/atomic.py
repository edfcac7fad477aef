"""Atomic writes of files and folders: write under a temporary name, flush to disk, then rename."""

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

PARTIAL = ".partial"  # the suffix of a (hidden) name while it is being written; folders: .partial-x1y2
_PARTIAL_NAMES = re.compile(r"\.(?:.*\.)?partial(?:-\w+)?|\.tmp\w{6}", re.DOTALL)  # the last: safetensors'
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # of Linux, see renameat2(2)


@contextmanager
def writing(place: Path) -> Iterator[None]:
    """Turn an OSError of a write into a cfner error with the path and the system's reason."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or str(error).strip() or type(error).__name__
        raise ModelError(
            f"Writing failed: {reason}.",
            where=str(getattr(error, "filename", None) or place),
            remedy="Free disk space there, or choose a writable folder. What was saved before is unchanged.",
        ) from error


def write_text_atomic(path: Path, text: str) -> None:
    """Replace a small file atomically: after a crash it is either the old file or the new one."""
    with (
        atomic_file(path) as partial,
        partial.open("x", encoding="utf-8") as file,
    ):  # "x": never follows a link
        file.write(text)


@contextmanager
def atomic_file(path: Path, *, flushed: bool = True) -> Iterator[Path]:
    """The temporary name to write a file under. The file gets its real name when it is complete and on disk.

    ``flushed=False``: skip the flush, for a file that is written every second and may be lost in a power cut.
    """
    partial = temp_path(path)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.unlink(missing_ok=True)  # left by a killed process with the same process id
        try:
            yield partial
            if flushed:
                flush(partial)  # the content must be on disk before the name is
            partial.replace(path)
            if flushed:
                flush(path.parent)
        finally:
            partial.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: Path, *, refuse: Callable[[Path], None] | None = None) -> Iterator[Path]:
    """A folder to fill. It gets its name when it is complete and on disk; after an error nothing is left.

    ``refuse(path)`` raises if the existing folder must not be replaced. It is called before the work and
    again after it. Without it an existing folder is never replaced.
    """
    if refuse is not None:
        refuse(path)
    with writing(path):
        # if the folder to replace is a symbolic link, replace its target
        place = path if refuse is None else path.resolve()
        place.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{place.name}{PARTIAL}-", dir=place.parent))
        try:
            yield partial
            partial.chmod(0o755)
            flush_tree(partial)
            if refuse is not None:
                refuse(path)  # another process may have written it in the meantime
            if refuse is not None and place.exists():
                _take_place(partial, place)
            else:
                partial.rename(place)
            flush(place.parent)
        finally:
            shutil.rmtree(partial, ignore_errors=True)  # the replaced folder, or an unfinished one


def _take_place(partial: Path, folder: Path) -> None:
    """Give the new folder its name. A folder that was there before then has the partial folder's name."""
    if _exchange(partial, folder):
        return
    # A kill between these renames leaves the old folder under its temporary name. There is no way around that
    # where the system cannot exchange two names.
    aside = partial.with_name(partial.name + "-replaced")
    folder.rename(aside)
    try:
        partial.rename(folder)
    except OSError:
        aside.rename(folder)  # restore the old folder
        raise
    aside.rename(partial)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two names atomically, so that neither is ever missing. Returns False if that is not possible.

    Linux supports this on all its usual file systems, but Python has no function for it.
    """
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None) if os.name == "posix" else None
    if rename is None:
        return False
    rename.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    done: int = rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE)
    return done == 0


def temp_path(path: Path) -> Path:
    """The temporary name under which a file is written; one per process."""
    return path.with_name(f".{path.name}.{os.getpid()}{PARTIAL}")


def is_partial(path: Path) -> bool:
    """Whether a name is that of an unfinished file or folder, written by cfner or by safetensors."""
    return _PARTIAL_NAMES.fullmatch(path.name) is not None


def flush_tree(folder: Path) -> None:
    """Flush everything in a folder to disk, then the folder."""
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
