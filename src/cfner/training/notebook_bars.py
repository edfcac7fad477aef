"""How training is watched in a notebook: one bar per step below the cell. It needs no widgets."""

from __future__ import annotations

import time
from html import escape
from importlib import import_module
from typing import Any, Final

from cfner.files.safe_text import visible
from cfner.training.progress import in_words

_PAUSE: Final = 0.25  # seconds between two pictures


class NotebookBars:
    """The bar of a step is drawn again and again in its place; the finished one stays."""

    def __init__(self) -> None:
        self.display: Any = None
        self.name, self.last = "", ""
        self.done, self.total, self.sentences = 0, 1, 0
        self.started = self.drawn = 0.0

    def start(self, name: str, epochs: int, batches: int) -> None:
        self.name, self.last, self.sentences = visible(name), "", 0
        self.done, self.total = 0, epochs * batches
        self.started = self.drawn = time.perf_counter()
        display = import_module("IPython.display").display  # every notebook has it
        self.display = display(self._picture("begins"), raw=True, display_id=True)

    def batch(self, loss: float, sentences: int) -> None:
        self.done += 1
        self.sentences += sentences
        now = time.perf_counter()
        if now - self.drawn < _PAUSE:
            return
        self.drawn = now
        passed = now - self.started
        left = passed / self.done * (self.total - self.done)
        figures = [
            f"loss {loss:.3f}",
            self.last,
            f"{self.sentences / passed:.0f} sentences/s, {left:.0f} s left",
        ]
        self._draw(", ".join(filter(None, figures)))

    def epoch(self, number: int, figures: dict[str, float]) -> None:
        self.last = in_words(number, figures)

    def end(self) -> None:
        self._draw(f"{self.last or 'no epoch ended'}, {time.perf_counter() - self.started:.0f} s")

    def _draw(self, said: str) -> None:
        if self.display is not None:  # without a notebook nothing is there to be drawn again
            self.display.update(self._picture(said), raw=True)

    def _picture(self, said: str) -> dict[str, str]:
        bar = f'<progress value="{self.done}" max="{self.total}"></progress>'
        return {
            "text/html": f"<div>{escape(self.name)} {bar} {escape(said)}</div>",
            "text/plain": f"{self.name}: {said}",
        }
