"""Progress of a grid: a live table in a terminal, elsewhere one line per finished run."""

from __future__ import annotations

from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from cfner.benchmark.grid import Job
from cfner.benchmark.runner import Standing
from cfner.benchmark.worker import progress_in
from cfner.cli.show import plain

_SHOWN = 12


class GridView:
    """Draws to standard error; use it in a ``with``."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.live = Live(console=console, refresh_per_second=2) if console.is_terminal else None

    def __enter__(self) -> Self:
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.live is not None:
            self.live.stop()

    def look(self, standing: Standing) -> None:
        if self.live is not None:
            self.live.update(_drawn(standing))

    def ended(self, job: Job, error: str | None) -> None:
        if error is not None:
            first = error.splitlines()[0] if error else ""
            self.console.print(plain(f"failed: {job.name}: {first}"))
        elif self.live is None:
            self.console.print(plain(f"finished: {job.name}"))


def _drawn(standing: Standing) -> Group:
    left = standing.seconds_left()
    head = Text(
        f"{len(standing.finished)} of {standing.total} done, {len(standing.running)} running, "
        f"{len(standing.failed)} failed; "
        + ("no run has ended yet" if left is None else f"about {_duration(left)} left")
    )
    table = Table("run", "step", "epoch", "for", box=None, pad_edge=False)
    for job in list(standing.running.values())[:_SHOWN]:
        now = progress_in(job.folder)
        if not now:
            table.add_row(plain(job.name), "starting", "", "")
            continue
        share = now["epoch"] + now["batch"] / max(1, now["batches"])
        table.add_row(
            plain(job.name),
            plain(f"{now['step']} of {now['steps']}"),
            f"{share:.1f} of {now['epochs']}",
            _duration(now["seconds"]),
        )
    return Group(head, table)


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"
