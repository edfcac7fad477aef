"""The yardstick's streams are fixed, and each is asked for twice: with the slices only, and with text."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cfner.benchmark.cells import Cell
from cfner.benchmark.grid import plan
from cfner.benchmark.merge import merge
from cfner.benchmark.streams import REST
from cfner.benchmark.yardstick import SLICES_ONLY, STREAMS, WITH_TEXT, yardstick_cells
from cfner.cli import bench_run
from cfner.cli.main import app
from cfner.errors import ConfigError, CorpusError
from cfner.methods import method_names
from cfner.training.config import TrainingConfig


@pytest.fixture
def root(tiny_data: Path, tmp_path: Path) -> Path:
    for stream in STREAMS:
        shutil.copytree(tiny_data, tmp_path / stream.corpus)
    return tmp_path


def test_every_method_is_measured_with_the_slices_and_some_with_text(root: Path) -> None:
    cells = yardstick_cells(root, TrainingConfig(), [2, 3])
    asked = {(c.source.path, c.method, bool(c.source.unlabelled), c.seed) for c in cells}
    short = [stream.corpus for stream in STREAMS if stream.methods is None]
    assert asked == {
        (str(root / corpus), method.strip(), text, seed)
        for corpus in short
        for methods, text in ((SLICES_ONLY, False), (WITH_TEXT, True))
        for method in methods.split(",")
        for seed in (2, 3)
    }
    assert {method for _, method, _, _ in asked} <= set(method_names())
    assert all(c.source.unlabelled in ((), (REST,)) and c.source.score_on == "test" for c in cells)


def test_the_streams_have_their_own_settings_except_where_the_user_chose(root: Path) -> None:
    config = TrainingConfig(epochs=99, batch_size=3, select_on="new", lr_encoder=5e-5)

    def settings(given: list[str]) -> tuple[int | None, int, str, int]:
        (cell,) = yardstick_cells(
            root,
            config,
            [0],
            score_on="dev",
            streams=["snips-slots"],
            slices_only="cfner",
            with_text="",
            given=given,
        )
        assert cell.config.lr_encoder == 5e-5
        assert (cell.division.first, cell.division.per_step, cell.source.every) == (9, 10, 6)
        assert cell.source.score_on == "dev"
        return cell.config.epochs, cell.config.batch_size, cell.config.select_on, cell.config.min_updates

    assert settings([]) == (5, 8, "last", 0)
    assert settings(["select_on", "epochs"]) == (99, 8, "new", 0)


def test_a_setting_given_to_the_command_is_used(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Cell] = []
    monkeypatch.setattr(bench_run, "carry_out", lambda cells, *_: asked.extend(cells))
    call = ["bench", "yardstick", str(root), "--stream", "fewnerd8", "--methods", "cfner"]
    done = CliRunner().invoke(
        app, [*call, "--methods-with-text", "", "--set", "select_on=new", "--seeds", "0"]
    )
    assert done.exit_code == 0, done.output
    assert [(cell.config.select_on, cell.config.epochs) for cell in asked] == [("new", 6)]


def test_a_run_takes_the_users_files_of_methods_along(root: Path) -> None:
    """A worker is a process of its own: without the file it does not know the method."""
    cells = yardstick_cells(root, TrainingConfig(), [0], slices_only="cfner", uses=["mine.py"])
    assert {cell.uses for cell in cells} == {("mine.py",)}


def test_an_unknown_stream_and_a_missing_corpus_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="fewnerd8"):
        yardstick_cells(tmp_path, TrainingConfig(), [0], streams=["fewnerd9"])
    with pytest.raises(CorpusError, match="is missing"):
        yardstick_cells(tmp_path, TrainingConfig(), [0])


RESULTS = Path(__file__).parents[1] / "docs" / "results"
PUBLISHED = RESULTS / "yardstick"


@pytest.mark.parametrize(("name", "scored_on"), [("yardstick", "test"), ("search", "dev")])
def test_published_runs_can_be_continued(name: str, scored_on: str, tmp_path: Path) -> None:
    """As `make yardstick` does: merged into a new grid, they are finished there."""
    folder = RESULTS / name
    rows = json.loads((folder / "grid.json").read_text())["cells"]
    assert rows and {row["state"] for row in rows} == {"finished"}
    assert {row["shared"]["score_on"] for row in rows} == {scored_on}
    assert merge([folder], tmp_path / "runs") == (len({row["key"] for row in rows}), 0)
    runs = json.loads((folder / "results.json").read_text())["runs"]
    assert json.loads((tmp_path / "runs" / "results.json").read_text())["runs"] == runs


@pytest.mark.skipif("CFNER_DATA" not in os.environ, reason="needs real corpora: set CFNER_DATA")
def test_published_runs_are_those_of_todays_code() -> None:
    """Their keys are what is planned today. After a change of what a method computes, run it again."""
    cells = yardstick_cells(
        Path(os.environ["CFNER_DATA"]),
        TrainingConfig(),
        [3],
        streams=["snips-slots"],
        slices_only="cfner, cpfd with lambda_base=1.0, own-other, joint-own with epochs=10",
        with_text="own-other, cfner",
    )
    published = {row["key"] for row in json.loads((PUBLISHED / "grid.json").read_text())["cells"]}
    assert {one.key for one in plan(cells)} <= published
