"""Progress bars for training: loss, speed and time left."""

from __future__ import annotations

import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from cfner.cli.show import console, plain
from cfner.files.safe_text import visible
from cfner.training.progress import Silent


class Notes(Silent):
    """Where nobody watches: no bars, but what is worth knowing goes to standard error."""

    def note(self, text: str) -> None:
        console(stderr=True).print(plain(text))


class Bars:
    """Draws one bar per step on standard error; a line per finished step stays."""

    def __init__(self) -> None:
        self.console = Console(stderr=True, highlight=False)
        self.bar: Progress | None = None
        self.task = TaskID(0)
        self.name, self.sentences, self.started, self.last = "", 0, 0.0, ""

    def start(self, name: str, epochs: int, batches: int) -> None:
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[figures]}"),
            TimeRemainingColumn(),
        )
        self.bar = Progress(*columns, console=self.console, transient=True)
        self.task = self.bar.add_task(visible(name), total=epochs * batches, figures="")
        self.name, self.sentences, self.started = name, 0, time.perf_counter()
        self.bar.start()

    def batch(self, loss: float, sentences: int) -> None:
        self.sentences += sentences
        speed = self.sentences / (time.perf_counter() - self.started)
        if self.bar is not None:
            self.bar.update(
                self.task, advance=1, figures=f"loss {loss:.3f}  {speed:.0f} sentences/s  {self.last}"
            )

    def epoch(self, number: int, figures: dict[str, float]) -> None:
        f1, agreement = figures.get("dev_f1"), figures.get("dev_agreement")
        self.last = f"epoch {number}" + (f", dev F1 {f1:.1f}" if f1 is not None else "")
        if agreement is not None:
            self.last += f", agreement on old types {agreement:.1f}"

    def note(self, text: str) -> None:
        self.console.print(plain(text))

    def end(self) -> None:
        if self.bar is not None:
            self.bar.stop()
            self.bar = None
        seconds = time.perf_counter() - self.started
        self.console.print(plain(f"{self.name}: {self.last}, {seconds:.0f} s"))
