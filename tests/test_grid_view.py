"""What one sees of a grid: while it runs, before it runs, and of the paper's tables."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from cfner.benchmark.grid import Job
from cfner.benchmark.reproduce import RECIPES
from cfner.benchmark.runner import Standing
from cfner.cli.grid_view import GridView
from cfner.cli.main import app
from cfner.errors import ConfigError, CorpusError


def standing(tmp_path: Path) -> Standing:
    running = Job(tmp_path / "a", "cfner, tiny [bold]FG-1-PG-1 seed 0")
    running.folder.mkdir()
    said = {"step": "step 2", "steps": 4, "epoch": 3, "epochs": 10, "batch": 5, "batches": 10, "seconds": 130}
    (running.folder / "progress.json").write_text(json.dumps(said))
    starting = Job(tmp_path / "b", "extendner, tiny FG-1-PG-1 seed 0")
    waiting = [Job(tmp_path / str(n), "w") for n in range(6)]
    now = time.monotonic()
    return Standing(
        2,
        waiting,
        {job.folder: job for job in (running, starting)},
        finished=[Job(tmp_path / "c", "done")],
        took=[600.0],
        began={running.folder: now - 240, starting.folder: now},
    )


def test_a_terminal_shows_what_runs_and_the_time_left(tmp_path: Path) -> None:
    out = io.StringIO()
    with GridView(Console(file=out, force_terminal=True, width=100, color_system=None)) as view:
        view.look(standing(tmp_path))
    shown = out.getvalue()
    assert "1 of 9 done, 2 running, 0 failed; about 38 min left" in shown  # (360 + 600 + 6 * 600) / 2
    assert "cfner, tiny [bold]FG-1-PG-1 seed 0" in shown  # a name is text, not markup
    assert "step 2 of 4" in shown and "3.5 of 10" in shown and "2 min" in shown
    assert "starting" in shown


def test_elsewhere_there_is_a_line_for_every_end(tmp_path: Path) -> None:
    out = io.StringIO()
    with GridView(Console(file=out, width=100)) as view:
        view.look(standing(tmp_path))
        view.ended(Job(tmp_path, "one"), None)
        view.ended(Job(tmp_path, "two"), "no memory\nmore about it")
    assert out.getvalue().splitlines() == ["finished: one", "failed: two: no memory"]


def test_no_time_is_told_before_a_run_has_ended(tmp_path: Path) -> None:
    assert Standing(1, [Job(tmp_path, "x")]).seconds_left() is None


def test_a_dry_run_lists_the_runs_and_writes_nothing(tiny_data: Path, tmp_path: Path) -> None:
    command = [
        "bench",
        "run",
        "--data",
        str(tiny_data),
        "--out",
        str(tmp_path / "runs"),
        "--min-mentions",
        "1",
    ]
    more = ["--settings", "1-1,2-2", "--seeds", "0,1", "--methods", "cfner, cfner without effect_o"]
    done = CliRunner().invoke(app, [*command, *more, "--dry-run"])
    assert done.exit_code == 0, done.output
    assert len(done.stdout.splitlines()) == 8 and "FG-2-PG-2" in done.stdout
    assert not (tmp_path / "runs").exists()


def test_the_papers_tables_are_listed() -> None:
    done = CliRunner().invoke(app, ["bench", "reproduce", "list"], env={"COLUMNS": "200"})
    assert done.exit_code == 0
    assert all(name in done.stdout for name in RECIPES)


@pytest.mark.parametrize(
    ("command", "kind", "words"),
    [
        (["reproduce", "table1"], ConfigError, "i2b2/"),
        (["reproduce", "table9", "--root", "."], ConfigError, "table1"),
        (["reproduce", "table-conll", "--root", "."], CorpusError, "conll2003"),
        (["run", "--data", "nowhere", "--out", "x"], CorpusError, "nowhere"),
        (["run", "--data", "nowhere", "--out", "x", "--seeds", "a"], ConfigError, "--seeds"),
        (["run", "--data", "nowhere", "--out", "x", "--settings", "1"], ConfigError, "--settings"),
    ],
)
def test_what_cannot_be_run_is_an_error_before_anything_is_written(
    command: list[str], kind: type[Exception], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["bench", *command])
    assert isinstance(done.exception, kind) and words in str(done.exception)
    assert not list(tmp_path.iterdir())


def test_a_shared_first_step_that_failed_is_not_counted_as_a_run() -> None:
    from cfner.benchmark.grid import Job
    from cfner.cli.bench_run import _cells

    failed = [Job(Path("grid/first/a"), "first step"), Job(Path("grid/cells/b"), "cfner")]
    assert _cells(failed) == 1
