"""``cfner bench``: reproducible measurements. Grids of runs are in bench_run.py."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cfner.cli import bench_league, bench_run
from cfner.cli import options as o
from cfner.cli.show import say
from cfner.cli.spelling import Commands
from cfner.errors import ConfigError, ModelError

app = typer.Typer(
    name="bench",
    cls=Commands,
    help="Reproducible measurements: compare methods on any data, the paper's tables, reports.",
    no_args_is_help=True,
)
app.command("run")(bench_run.run)
app.command("reproduce")(bench_run.reproduce)
app.command("yardstick")(bench_run.yardstick)
app.command("league")(bench_league.league)
app.command("merge")(bench_league.merge)


@app.command("report")
def report(
    runs: Annotated[Path, typer.Argument(help="The folder of a grid: --out of 'cfner bench run'.")],
) -> None:
    """Write report.html, .md and .tex, tables.tex and pictures into RUNS; the grid need not be finished."""
    from cfner.benchmark.grid import GRID, GridFolder
    from cfner.benchmark.report import write_report

    if not (runs / GRID).is_file():
        raise ModelError(
            "There is no grid here.",
            where=str(runs),
            remedy="Make one with 'cfner bench run --out RUNS ...'.",
        )
    GridFolder(runs).write_results()
    for written in write_report(runs):
        if written.suffix != ".svg":
            say(str(written), wrap=False)


@app.command("add-method")
def add_method(
    name: Annotated[str, typer.Argument(help="The new method's name, such as my-method.")],
    out: Annotated[Path | None, o.Flag("--out", "-o", help="The file. Default: NAME.py here.")] = None,
) -> None:
    """Write a Python file with a complete method, for you to change and load with --use."""
    from cfner.benchmark.method_template import method_file
    from cfner.corpus.writers import whole_file

    file = out or Path(f"{name.replace('-', '_').replace('+', '_')}.py")
    text = method_file(name, file)
    if file.exists():
        raise ConfigError("The file exists.", where=str(file), remedy="Choose another with --out.")
    with whole_file(file, overwrite=False) as written:
        written.write(text.encode())
    for line in (
        f"{file} contains the method '{name}'. Compare it:",
        f"  cfner bench run --data DATA --use {file} --methods {name},cfner,extendner --out RUNS",
        "  cfner bench report RUNS",
    ):
        say(line, wrap=False)
