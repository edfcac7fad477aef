"""Ctrl+C while a step is trained: the batch in work is ended first, so that what was trained can be kept."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass
class Interrupt:
    """``asked``: whether somebody pressed Ctrl+C."""

    asked: bool = False


@contextmanager
def deferred_interrupt() -> Iterator[Interrupt]:
    """Inside, the first Ctrl+C is only noted: whoever asks raises KeyboardInterrupt. A second one is not
    waited for. Signals that somebody else handles, or that come to another thread, are left alone.
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
    if found.asked:  # after the last time that somebody asked
        raise KeyboardInterrupt
