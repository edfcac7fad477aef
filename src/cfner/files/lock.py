"""One writer at a time in a folder. The system releases the lock when its process ends, however it ends."""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cfner.errors import ModelError
from cfner.files.atomic import writing
from cfner.files.json_files import refuse_unusual

FILE = ".lock"
PATIENCE = 10.0  # seconds that a short operation waits for the lock
# A child forked just before its parent was killed keeps the lock until it first runs, and then releases it.
MOMENT = 1.0

_held: dict[Path, int] = {}  # locks that this process holds, with their open file


@contextmanager
def locked(folder: Path, *, wait: float = MOMENT) -> Iterator[None]:
    """Hold the folder's lock; raises after ``wait`` seconds if another process has it.

    A process may enter a lock that it holds. The lock file stays behind, which does no harm: only a running
    process can hold the lock.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        place = folder.resolve()
    if place in _held:
        yield
        return
    handle = _hold(folder, time.monotonic() + wait)
    _held[place] = handle
    try:
        yield
    finally:
        if _held.pop(place, None) is not None:
            os.close(handle)  # releases the lock


def _hold(folder: Path, until: float) -> int:
    """The open lock file, once it is locked and still in the folder. The earlier holder may have removed or
    renamed the folder meanwhile, and a lock on the old one would protect nothing.
    """
    while True:
        handle = _opened(folder)
        if handle is not None:
            try:
                if _try(handle, folder) and _is_at(handle, folder / FILE):
                    return handle
            except BaseException:
                os.close(handle)
                raise
            os.close(handle)
        if time.monotonic() >= until:
            raise ModelError(
                "Another process is writing here.",
                where=str(folder),
                remedy="Wait until it has finished, or choose a different folder.",
            )
        time.sleep(0.05)


def _opened(folder: Path) -> int | None:
    """Open the lock file; None if the folder was removed at this moment."""
    path = folder / FILE
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        refuse_unusual(path, remedy="Remove it")  # a link would create or lock a file somewhere else
        # O_NOFOLLOW, in case it became a link since the check; Windows has neither flag
        flags = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
        try:
            return os.open(path, os.O_RDWR | os.O_CREAT | flags, 0o644)
        except FileNotFoundError:
            return None


def _let_go() -> None:
    """Release locks in a forked child (a data loader's worker): they belong to the parent and end with it."""
    for handle in _held.values():
        os.close(handle)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


def _try(handle: int, folder: Path) -> bool:
    """Try to lock; False if another process holds the lock."""
    try:
        _lock(handle)
    except OSError as error:
        if error.errno in _IS_HELD:
            return False
        raise ModelError(
            f"The folder cannot be locked: {error.strerror or error}.",
            where=str(folder),
            remedy="Choose a folder on a file system that supports locks, such as a local disk.",
        ) from error
    return True


if sys.platform == "win32":
    import msvcrt

    _IS_HELD = {errno.EACCES, errno.EDEADLOCK}

    def _lock(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)

    def _is_at(handle: int, path: Path) -> bool:
        return True  # Windows can neither remove nor rename an open file
else:
    import fcntl

    _IS_HELD = {errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES}

    def _lock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _is_at(handle: int, path: Path) -> bool:
        try:
            return os.path.samestat(os.fstat(handle), path.lstat())
        except (FileNotFoundError, NotADirectoryError):
            return False
