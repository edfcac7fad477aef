"""``cfner bench``: figures that can be repeated."""

from __future__ import annotations

import typer

from cfner.cli import bench_method, bench_report, bench_run

app = typer.Typer(
    name="bench",
    help="Figures that can be repeated: compare methods on any data, the paper's tables, reports.",
    no_args_is_help=True,
)
app.command("run")(bench_run.run)
app.command("reproduce")(bench_run.reproduce)
app.command("report")(bench_report.report)
app.command("add-method")(bench_method.add_method)
