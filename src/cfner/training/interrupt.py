"""Ctrl+C during training: the current batch is finished first, so that the trained part can be saved."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass
class Interrupt:
    """``asked``: whether Ctrl+C was pressed."""

    asked: bool = False


@contextmanager
def deferred_interrupt() -> Iterator[Interrupt]:
    """In this block the first Ctrl+C is only recorded: the code that checks ``asked`` raises
    KeyboardInterrupt. A second one raises at once. Signals with a different handler are left alone, and so
    are those in other threads.
    """
    found = Interrupt()

    def note(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        found.asked = True

    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield found
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield found
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if found.asked:  # pressed after the last check
        raise KeyboardInterrupt
