"""One writer at a time in a folder. The system frees the lock when its holder ends, however it ends."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cfner.errors import ModelError

FILE = ".lock"
PATIENCE = 10.0  # seconds that a short piece of work waits for another
_held: dict[Path, int] = {}  # by this process, with how often it was entered


@contextmanager
def locked(folder: Path, *, wait: float = 0.0) -> Iterator[None]:
    """Hold the folder's lock; whoever comes second is told at once, or after ``wait`` seconds.

    A process may enter its own lock again. The file stays behind, which means nothing: only a living
    process can hold it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    place = folder.resolve()
    if place in _held:
        _held[place] += 1
        try:
            yield
        finally:
            _held[place] -= 1
        return
    handle = os.open(place / FILE, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        _take(handle, folder, time.monotonic() + wait)
        _held[place] = 1
        try:
            yield
        finally:
            del _held[place]
    finally:
        os.close(handle)  # frees it


def _take(handle: int, folder: Path, until: float) -> None:
    while True:
        try:
            _try(handle)
            return
        except OSError:
            if time.monotonic() >= until:
                raise ModelError(
                    "Another process is writing here.",
                    where=str(folder),
                    remedy="Wait until it is done, or choose another folder.",
                ) from None
            time.sleep(0.05)


if sys.platform == "win32":
    import msvcrt

    def _try(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _try(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
