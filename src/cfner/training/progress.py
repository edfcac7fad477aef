"""The events that training reports to a progress display. Everything else goes to the logger ``cfner``."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    def start(self, name: str, epochs: int, batches: int) -> None:
        """A step begins."""
        ...

    def batch(self, loss: float, sentences: int) -> None:
        """A batch was trained."""
        ...

    def epoch(self, number: int, figures: dict[str, float]) -> None:
        """An epoch ended; mean losses by term, and the dev F1 if there is dev data."""
        ...

    def end(self) -> None:
        """The step has ended."""
        ...


class Silent:
    def start(self, name: str, epochs: int, batches: int) -> None: ...

    def batch(self, loss: float, sentences: int) -> None: ...

    def epoch(self, number: int, figures: dict[str, float]) -> None: ...

    def end(self) -> None: ...


def in_words(number: int, figures: dict[str, float]) -> str:
    """An epoch, and its figures on dev data if there is some."""
    f1, agreement = figures.get("dev_f1"), figures.get("dev_agreement")
    said = f"epoch {number}" + (f", dev F1 {f1:.1f}" if f1 is not None else "")
    return said + (f", agreement on old types {agreement:.1f}" if agreement is not None else "")
