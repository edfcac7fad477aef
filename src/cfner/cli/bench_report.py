"""``cfner bench report``: tables and pictures of a grid."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cfner.cli.show import say
from cfner.errors import ModelError


def report(
    runs: Annotated[Path, typer.Argument(help="The folder of a grid: --out of 'cfner bench run'.")],
) -> None:
    """Write report.md, .tex, .html and pictures into RUNS; the grid need not be finished."""
    from cfner.benchmark.grid import GRID, GridFolder
    from cfner.benchmark.report import write_report

    if not (runs / GRID).is_file():
        raise ModelError(
            "There is no grid of runs here.",
            where=str(runs),
            remedy="Make one with 'cfner bench run --out RUNS ...'.",
        )
    GridFolder(runs).write_results()
    for written in write_report(runs):
        if written.suffix != ".svg":
            say(str(written), wrap=False)
