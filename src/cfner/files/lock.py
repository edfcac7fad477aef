"""One writer at a time in a folder. The system frees the lock when its holder ends, however it ends."""

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
PATIENCE = 10.0  # seconds that a short piece of work waits for another
# A child that was forked just before its parent was killed holds on until it first runs, and lets go then.
MOMENT = 1.0

_held: dict[Path, int] = {}  # by this process, with the open file


@contextmanager
def locked(folder: Path, *, wait: float = MOMENT) -> Iterator[None]:
    """Hold the folder's lock; whoever comes second is told after ``wait`` seconds.

    A process may enter its own lock again. The file stays behind, which means nothing: only a living
    process can hold it.
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
            os.close(handle)  # frees it


def _hold(folder: Path, until: float) -> int:
    """The open file, once it is locked and still the folder's: whoever held it may have removed or renamed
    the folder meanwhile, and a lock on what was there keeps nobody out.
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
                remedy="Wait until it is done, or choose another folder.",
            )
        time.sleep(0.05)


def _opened(folder: Path) -> int | None:
    """The lock's file; None if the folder was removed in this moment."""
    path = folder / FILE
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        refuse_unusual(path, remedy="Remove it")  # through a link it would be made, or locked, elsewhere
        # and in case it became one in this moment; Windows has neither
        flags = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
        try:
            return os.open(path, os.O_RDWR | os.O_CREAT | flags, 0o644)
        except FileNotFoundError:
            return None


def _let_go() -> None:
    """In a forked child, such as a loader's worker: the lock is the parent's, and must end with it."""
    for handle in _held.values():
        os.close(handle)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


def _try(handle: int, folder: Path) -> bool:
    """Whether nobody else has it."""
    try:
        _lock(handle)
    except OSError as error:
        if error.errno in _IS_HELD:
            return False
        raise ModelError(
            f"The folder cannot be locked: {error.strerror or error}.",
            where=str(folder),
            remedy="Choose a folder on a file system that has locks, such as a local disk.",
        ) from error
    return True


if sys.platform == "win32":
    import msvcrt

    _IS_HELD = {errno.EACCES, errno.EDEADLOCK}

    def _lock(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)

    def _is_at(handle: int, path: Path) -> bool:
        return True  # a file that is open can be neither removed nor renamed there
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
