"""Progress of training: bars with loss, speed and time left in a terminal, log lines elsewhere."""

from __future__ import annotations

import logging
import sys
import time
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Column
from rich.text import Text

from cfner.files.safe_text import visible
from cfner.training.notebook_bars import NotebookBars
from cfner.training.progress import in_words

if TYPE_CHECKING:
    from cfner.training import progress

_log = logging.getLogger(__name__)


def watcher(wanted: bool | progress.Progress | None) -> progress.Progress:
    """Bars or none, as requested, or the caller's own. Default: bars in a terminal or a notebook."""
    notebook = Console().is_jupyter
    if wanted is None:
        wanted = sys.stderr.isatty() or notebook
    if not isinstance(wanted, bool):
        return wanted
    if not wanted:
        return LogLines()
    return NotebookBars() if notebook else Bars()


class LogLines:
    """A line per epoch."""

    def __init__(self) -> None:
        self.name, self.epochs, self.started = "", 0, 0.0

    def start(self, name: str, epochs: int, batches: int) -> None:
        self.name, self.epochs, self.started = name, epochs, time.perf_counter()

    def batch(self, loss: float, sentences: int) -> None: ...

    def epoch(self, number: int, figures: dict[str, float]) -> None:
        self.epochs -= 1
        seconds = time.perf_counter() - self.started
        left = f", {self.epochs} to go" if self.epochs else ""
        _log.info("%s: %s, %.0f s%s", self.name, in_words(number, figures), seconds, left)

    def end(self) -> None: ...


class Bars:
    """Draws one bar per step on standard error; a line per finished step stays."""

    def __init__(self) -> None:
        self.console = Console(stderr=True, highlight=False)
        self.bar: Progress | None = None
        self.task = TaskID(0)
        self.name, self.sentences, self.started, self.last = "", 0, 0.0, ""

    def start(self, name: str, epochs: int, batches: int) -> None:
        count = 2 * len(str(epochs * batches)) + 1
        columns = (
            TextColumn("{task.description}", markup=False, table_column=_cut(max_width=18)),
            BarColumn(bar_width=12, table_column=Column(min_width=12)),
            MofNCompleteColumn(table_column=Column(min_width=count)),
            TimeRemainingColumn(table_column=Column(min_width=7)),
            TextColumn("{task.fields[figures]}", markup=False, table_column=_cut(ratio=1)),
        )
        self.bar = Progress(*columns, console=self.console, transient=True, expand=True)
        self.task = self.bar.add_task(visible(name), total=epochs * batches, figures="")
        self.name, self.sentences, self.started = name, 0, time.perf_counter()
        self.bar.start()

    def batch(self, loss: float, sentences: int) -> None:
        self.sentences += sentences
        speed = self.sentences / (time.perf_counter() - self.started)
        if self.bar is not None:
            self.bar.update(
                self.task, advance=1, figures=f"loss {loss:.3f}  {self.last}  {speed:.0f} sentences/s"
            )

    def epoch(self, number: int, figures: dict[str, float]) -> None:
        self.last = in_words(number, figures)

    def end(self) -> None:
        if self.bar is not None:
            self.bar.stop()
            self.bar = None
        seconds = time.perf_counter() - self.started
        self.console.print(Text(visible(f"{self.name}: {self.last or 'no epoch ended'}, {seconds:.0f} s")))


def _cut(max_width: int | None = None, ratio: int | None = None) -> Column:
    """On a narrow line, names and figures are cut; the bar and the time left are not."""
    return Column(no_wrap=True, overflow="ellipsis", max_width=max_width, ratio=ratio)
