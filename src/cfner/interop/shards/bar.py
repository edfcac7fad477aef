"""A progress bar over the bytes of all files, on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# bytes that are tagged, bytes of all files, texts
Progress = Callable[[int, int, int], None]


@contextmanager
def progress_bar(wanted: bool | None = None) -> Iterator[Progress | None]:
    """Draws a bar while files are tagged. Default: in a terminal."""
    if not (sys.stderr.isatty() if wanted is None else wanted):
        yield None
        return
    from rich import progress
    from rich.console import Console

    columns = (
        progress.BarColumn(bar_width=24),
        progress.DownloadColumn(),
        progress.TimeRemainingColumn(),
        progress.TextColumn("{task.fields[texts]:,} texts"),
    )
    with progress.Progress(*columns, console=Console(stderr=True, highlight=False), transient=True) as bar:
        task = bar.add_task("", total=None, texts=0)
        yield lambda done, of, texts: bar.update(task, completed=done, total=of, texts=texts)
