"""The league: what is tried of each method, which runs are the yardstick's, choosing, reporting, merging."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from typer.testing import CliRunner

from cfner.benchmark import runner
from cfner.benchmark.cells import MethodChoice
from cfner.benchmark.league import (
    FACTORS,
    RATES,
    UPDATES,
    choose,
    knob_of,
    league_stream,
    scored_cells,
    search_cells,
    settings_of,
)
from cfner.benchmark.league_file import Searched, Tried, read_league, write_league
from cfner.benchmark.merge import merge
from cfner.benchmark.report import league as league_report
from cfner.benchmark.report import write_report
from cfner.benchmark.report.cost_picture import round_step
from cfner.benchmark.yardstick import STREAMS, yardstick_cells
from cfner.cli import bench_run
from cfner.cli.main import app
from cfner.errors import ConfigError, ModelError
from cfner.methods import create, method_class, method_names
from cfner.methods.context import ExampleContext
from cfner.training.config import USUAL_EPOCHS, TrainingConfig
from made_runs import Made, write_runs
from test_grid import InThisProcess

OURS = [name for name in method_names() if method_class(name).__module__.startswith("cfner.")]
WITHOUT_A_WEIGHT = {"finetune", "self-training", "joint", "joint-own", "experts", "seq-star", "ice-o"}


def keeping(name: str, parameters: dict[str, float]) -> dict[str, float]:
    terms = create(name, parameters).objective(ExampleContext(4, 1)).terms
    return {term.name: term.weight for term in terms if term.role == "keep_old"}


@pytest.mark.parametrize("name", OURS)
def test_the_knob_is_the_weight_of_a_keeping_term(name: str) -> None:
    config = TrainingConfig(lr_encoder=1e-4, lr_head=2e-3)
    knob, values = knob_of(name, config)
    if name in WITHOUT_A_WEIGHT:
        assert (knob, values) == (RATES, {"lr_encoder": 1e-4, "lr_head": 2e-3})
        return
    usual, twice = keeping(name, {}), keeping(name, {knob: 2 * values[knob]})
    assert values == {knob: getattr(create(name).parameters, knob)}
    assert any(twice[term] == pytest.approx(2 * usual[term]) for term in usual)


def test_half_and_twice_are_tried_and_once_is_the_method_as_it_is() -> None:
    config = TrainingConfig(lr_encoder=1e-4, lr_head=2e-3)
    told = {name: [str(choice) for choice in settings_of(name, config).values()] for name in ("rdp", "joint")}
    assert list(FACTORS.values()) == [1.0, 0.5, 2.0]
    assert told["rdp"] == ["rdp", "rdp with lambda_kd=1.0", "rdp with lambda_kd=4.0"]
    assert told["joint"][:2] == ["joint", "joint with lr_encoder=5e-05 & lr_head=0.001"]
    published = TrainingConfig(as_published=True)
    assert str(settings_of("cfner", published)["× 2"]) == "cfner with lambda_base=4.0"
    given = TrainingConfig(parameters={"lambda_base": 3.0, "lambda_kd": 9.0})
    assert str(settings_of("cfner", given)["× 2"]) == "cfner with lambda_base=6.0"


def test_bounds_are_also_tried_with_twice_as_many_updates() -> None:
    for name in OURS:
        settings = settings_of(name, TrainingConfig(epochs=5))
        if method_class(name).from_scratch:
            longer = settings.pop(UPDATES)
            assert longer.applied_to(TrainingConfig(epochs=5)).epochs == 10
            assert longer == MethodChoice.parse(f"{name} with epochs=10")
        assert list(settings) == list(FACTORS)


def test_twice_as_many_updates_are_twice_the_epochs_of_each_stream() -> None:
    tried = (Tried("× 1", "joint-own", 80.0, "k"), Tried(UPDATES, "joint-own with epochs=10", 82.0, "l"))
    longer = Searched(RATES, "joint-own with epochs=10", tried, "a stream of five epochs", 0)
    told = [longer.chosen_for(epochs) for epochs in (5, 6, None)]
    assert told == [f"joint-own with epochs={epochs}" for epochs in (10, 12, 10)]
    assert longer._replace(chosen="joint-own").chosen_for(6) == "joint-own"


def test_rates_of_a_methods_own_are_settings_and_it_is_compared_all_the_same() -> None:
    choice = MethodChoice.parse("finetune with lr_encoder=0.0002 & lr_head=0.006")
    config = choice.applied_to(TrainingConfig(lr_encoder=1e-4))
    assert (config.lr_encoder, config.lr_head, config.parameters) == (2e-4, 6e-3, {})
    for wrong in ("finetune with lr_encoder=-1", "finetune with batch_size=3"):
        with pytest.raises(ConfigError):
            MethodChoice.parse(wrong)


@pytest.fixture
def root(tiny_data: Path, tmp_path: Path) -> Path:
    for stream in STREAMS:
        shutil.copytree(tiny_data, tmp_path / stream.corpus)
    return tmp_path


def test_runs_of_the_yardstick_are_the_leagues(root: Path) -> None:
    """So none is computed twice: the same settings, text and division, and so the same key."""
    config = TrainingConfig()
    known = yardstick_cells(root, config, [2, 3])
    names = list(dict.fromkeys(cell.config.method for cell in known))
    short = [stream.corpus for stream in STREAMS if stream.methods is None]
    streams = [league_stream(str(root / corpus), config, {}) for corpus in short]
    choices = [MethodChoice(name) for name in names]
    cells = [cell for stream in streams for cell in scored_cells(choices, stream, [2, 3])]
    slices_only = [cell for cell in known if not cell.source.unlabelled]
    assert sorted(cells, key=repr) == sorted(slices_only, key=repr)


def test_what_is_given_wins_over_the_yardsticks(root: Path) -> None:
    given = {"encoder": "bert-base-cased", "epochs": 3}
    stream = league_stream(str(root / "snips-slots"), TrainingConfig(**given), given, first=4, every=2)
    assert (stream.config.encoder, stream.config.epochs, stream.config.batch_size) == (
        "bert-base-cased",
        3,
        8,
    )
    assert (stream.division.first, stream.division.per_step) == (4, 10)
    assert (stream.source.every, stream.source.min_mentions) == (2, 10)
    other = league_stream("conll2003", TrainingConfig(), {}, first=2)
    assert (other.source.path, other.source.min_mentions) == ("conll2003", 50)
    assert (other.division.first, other.division.per_step) == (2, 1)
    assert other.config.epochs == USUAL_EPOCHS  # fixed, however few sentences a step has
    longer = settings_of("joint-own", other.config)[UPDATES].applied_to(other.config)
    assert longer.epochs_for(60) == 2 * other.config.epochs_for(60)


def test_the_search_is_on_dev_data_with_one_seed(root: Path) -> None:
    stream = league_stream(str(root / "fewnerd8"), TrainingConfig(), {})
    cells = search_cells(["cfner", "finetune"], stream, 7)
    assert {(cell.source.score_on, cell.seed) for cell in cells} == {("dev", 7)}
    assert len(cells) == 6
    shared = [cell.shared("text") for cell in cells]
    assert all(one == shared[0] for one in shared)  # other learning rates of one method are no other setting


# -- from the command to the report --------------------------------------------------------------------------


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> InThisProcess:
    made = InThisProcess()
    monkeypatch.setattr(bench_run, "_backend", lambda given: made)
    monkeypatch.setattr(runner, "_LOOK_EVERY", 0)
    return made


def test_search_choice_test_and_report(
    backend: InThisProcess, tiny_data: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "league"
    call = ["bench", "league", "--data", str(tiny_data), "--methods", "extendner,finetune", "--seeds", "1,2"]
    call += ["--first", "2", "--per-step", "2", "--min-mentions", "1", "--encoder", str(tiny_encoder)]
    call += ["--epochs", "1", "--set", "lr_encoder=0.002", "--out", str(out)]
    dry = CliRunner().invoke(app, [*call, "--dry-run"])
    assert dry.exit_code == 0 and "6 runs. Nothing was trained." in dry.output
    assert "the search may choose different ones" in dry.output and not out.exists()
    done = CliRunner().invoke(app, call)
    assert done.exit_code == 0, done.output
    cells = [folder for folder in backend.started if folder.parent.name == "cells"]
    assert len(cells) == len(set(cells)) == 6 + 4
    told = read_league(out)
    assert list(told) == ["extendner", "finetune"]
    results = {run["key"]: run for run in json.loads((out / "results.json").read_text())["runs"]}
    for one in told.values():
        best = max(one.tried, key=lambda tried: tried.dev_f1)
        assert one.chosen == best.method and len(one.tried) == 3
        assert all(results[tried.key]["last_micro_f1"] == tried.dev_f1 for tried in one.tried)
        tested = [run["seed"] for run in results.values() if run["method"] == one.chosen]
        assert sorted(tested) == [0, 1, 2]
    again = CliRunner().invoke(app, call)
    assert again.exit_code == 0 and len(backend.started) == len(set(backend.started))
    write_report(out)
    text = (out / "report.md").read_text()
    assert text.index("The league") < text.index("How to read this")
    assert "league-cost.svg" in text and "The search" in text
    assert "extendner" in text and "the learning rates" in text


def test_a_seed_that_chose_may_not_test(tiny_data: Path, tmp_path: Path) -> None:
    call = ["bench", "league", "--data", str(tiny_data), "--seeds", "0,1", "--out", str(tmp_path / "x")]
    done = CliRunner().invoke(app, call)
    assert isinstance(done.exception, ConfigError) and "Seed 0" in str(done.exception)


def test_equals_are_decided_for_the_usual_setting(
    backend: InThisProcess, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from types import SimpleNamespace

    stream = league_stream(str(root / "fewnerd8"), TrainingConfig(), {})
    cells = search_cells(["cfner"], stream, 0)
    planned: list[Any] = [SimpleNamespace(cell=cell, key=cell.method, data="d") for cell in cells]
    scores = {"cfner": 50.0, "cfner with lambda_base=0.5": 50.0, "cfner with lambda_base=2.0": 49.0}
    folder: Any = SimpleNamespace(result=lambda one: {"last_micro_f1": scores[one.key]})
    assert choose(folder, planned, stream)["cfner"].chosen == "cfner"
    scores["cfner with lambda_base=2.0"] = 50.1
    assert choose(folder, planned, stream)["cfner"].chosen == "cfner with lambda_base=2.0"


def made_league(folder: Path, seeds: Sequence[int] = (0, 1, 2)) -> None:
    """Made-up runs of four methods on test data; one was chosen at twice its knob."""
    skills = {"rdp with lambda_kd=4.0": 0.9, "rdp": 0.2, "cfner": 0.5, "finetune": 0.1, "joint-own": 0.97}
    shared = (("score_on", "test"), ("unlabelled", "none"))
    write_runs(folder, skills, [Made(("a", "b", "c", "d"), 2, 1, sentences=300, shared=shared)], seeds=seeds)
    chosen = {"rdp": "rdp with lambda_kd=4.0", "cfner": "cfner", "finetune": "finetune"}
    told = {
        name: Searched("knob", method, (Tried("× 1", name, 50.0, "k"),), "notes FG-2-PG-1", 9)
        for name, method in {**chosen, "joint-own": "joint-own"}.items()
    }
    write_league(folder, told)


def test_the_report_ranks_each_method_at_its_setting_under_its_plain_name(tmp_path: Path) -> None:
    made_league(tmp_path)
    write_report(tmp_path)
    text = (tmp_path / "report.md").read_text()
    assert text.index("pictures/league.svg") < text.index("How to read this")
    drawn = (tmp_path / "pictures" / "league.svg").read_text()
    assert {"rdp", "joint-own"} <= set(re.findall(r">([^<]+)</text>", drawn))
    section = text[text.index("The league") : text.index("The search")]
    rows = [line.split("|")[1:-1] for line in section.splitlines() if line.startswith("| ")]
    table = {row[0].strip(): [cell.strip() for cell in row[1:]] for row in rows}
    assert list(table)[2:] == ["rdp", "cfner", "finetune", "joint-own"]
    assert [table[name][0] for name in ("rdp", "cfner", "finetune", "joint-own")] == ["1", "2", "3", "–"]
    head = table["method"]
    way = head.index("way, %")
    runs = json.loads((tmp_path / "results.json").read_text())["runs"]

    def f1(method: str, seed: int) -> float:
        (found,) = [run for run in runs if (run["method"], run["seed"]) == (method, seed)]
        return float(found["last_micro_f1"])

    shares = [
        100 * (f1("rdp with lambda_kd=4.0", s) - f1("finetune", s)) / (f1("joint-own", s) - f1("finetune", s))
        for s in (0, 1, 2)
    ]
    assert float(table["rdp"][way]) == pytest.approx(sum(shares) / 3, abs=0.006)
    assert table["finetune"][way] == table["joint-own"][way] == "–"


def test_a_method_that_lacks_a_hard_stream_is_not_drawn_above_others_for_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(league_report, "ENOUGH", 2)
    shared = (("score_on", "test"), ("unlabelled", "none"))
    easy = Made(("a", "b", "c"), 2, 1, sentences=300, shared=shared, data="easy")
    write_runs(tmp_path, {"rdp": 0.9, "extendner": 0.8, "cfner": 0.7}, [easy, replace(easy, data="hard")])
    for name, key in (("grid.json", "cells"), ("results.json", "runs")):
        told = json.loads((tmp_path / name).read_text())
        told[key] = [row for row in told[key] if (row["method"], row["data"]) != ("cfner", "hard")]
        for row in told[key]:
            if row["data"] == "hard" and key == "runs":
                row["mean_at_the_end"] = 1.0
        (tmp_path / name).write_text(json.dumps(told))
    write_league(tmp_path, {m: Searched("knob", m, (), "easy", 9) for m in ("rdp", "extendner", "cfner")})
    write_report(tmp_path)
    drawn = re.findall(r">([^<]+)</text>", (tmp_path / "pictures" / "league.svg").read_text())
    assert [name for name in drawn if name in ("rdp", "extendner", "cfner")] == ["rdp", "extendner", "cfner"]


def test_the_summary_picture_shows_methods_at_their_chosen_settings(tmp_path: Path) -> None:
    made_league(tmp_path)
    write_report(tmp_path)
    runs = json.loads((tmp_path / "results.json").read_text())["runs"]
    means = {
        name: fmean(run["last_micro_f1"] for run in runs if run["method"] == name)
        for name in ("rdp", "rdp with lambda_kd=4.0")
    }
    drawn = re.findall(r">([^<]+)</text>", (tmp_path / "pictures" / "summary.svg").read_text())
    note = drawn[drawn.index("rdp") + 1]
    assert note.startswith(f"{means['rdp with lambda_kd=4.0']:.1f} ±")
    assert not note.startswith(f"{means['rdp']:.1f} ±") and "rdp with lambda_kd=4.0" not in drawn


def test_one_seed_ranks_nobody(tmp_path: Path) -> None:
    made_league(tmp_path, seeds=[0])
    write_report(tmp_path)
    text = (tmp_path / "report.md").read_text()
    section = text[text.index("The league") : text.index("The search")]
    ranks = {
        row.split("|")[1].strip(): row.split("|")[2].strip() for row in section.splitlines() if "| " in row
    }
    assert {ranks[name] for name in ("rdp", "cfner", "finetune")} == {"–"}


def test_a_method_with_one_seed_has_no_rank_beside_others_with_more(tmp_path: Path) -> None:
    made_league(tmp_path)
    for name in ("grid.json", "results.json"):
        told = json.loads((tmp_path / name).read_text())
        key = "cells" if name == "grid.json" else "runs"
        told[key] = [row for row in told[key] if row["method"] != "finetune" or row["seed"] == 0]
        (tmp_path / name).write_text(json.dumps(told))
    write_report(tmp_path)
    text = (tmp_path / "report.md").read_text()
    section = text[text.index("The league") : text.index("The search")]
    ranks = {
        row.split("|")[1].strip(): row.split("|")[2].strip() for row in section.splitlines() if "| " in row
    }
    assert [ranks[name] for name in ("rdp", "cfner", "finetune")] == ["1", "2", "–"]


@pytest.mark.parametrize(("enough", "shown"), [(4, True), (5, False)])
def test_a_stream_needs_enough_methods_and_names_the_missing_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, enough: int, shown: bool
) -> None:
    monkeypatch.setattr(league_report, "ENOUGH", enough)
    made_league(tmp_path)
    searched = read_league(tmp_path)
    write_league(tmp_path, searched | {"cpfd": Searched("knob", "cpfd", (), "notes", 9)})
    write_report(tmp_path)
    text = (tmp_path / "report.md").read_text()
    assert ("The league" in text) == ("has no run of cpfd." in text) == shown


def test_a_damaged_record_of_the_search_is_named(tmp_path: Path) -> None:
    made_league(tmp_path)
    (tmp_path / "league.json").write_text('{"methods": {"rdp": {"knob": 3}}}')
    with pytest.raises(ConfigError, match="search cannot be read"):
        write_report(tmp_path)


@pytest.mark.parametrize(("most", "step"), [(0.7, 0.2), (6, 1), (7, 2), (1234, 500), (86400, 20000)])
def test_axes_of_costs_have_round_steps(most: float, step: float) -> None:
    assert round_step(most) == pytest.approx(step)


# -- grids of several machines -------------------------------------------------------------------------------


def grid(folder: Path, keys: dict[str, float], **more: Any) -> Path:
    """Finished runs with a figure each, one more that is not finished."""
    rows = []
    for key in [*keys, "f" * 24]:
        row = {"key": key, "method": "cfner", "parameters": {}, "data": "notes", "first": 1, "per_step": 1}
        row |= {"sampling": "greedy", "labels": "own", "seed": int(key, 16) % 7, "shared": {"epochs": 1}}
        rows.append({**row, "state": "waiting", "error": None})
        if key in keys:
            place = folder / "cells" / key
            place.mkdir(parents=True)
            step = {"types": ["a"], "micro_f1": keys[key], "macro_f1": keys[key]}
            found = row | {"steps": [step], "last_micro_f1": keys[key], "measured": {"seconds": 1.0}} | more
            (place / "result.json").write_text(json.dumps(found))
            (place / "counts.npz").write_bytes(b"counts of " + key.encode())
    (folder / "grid.json").write_text(json.dumps({"schema": 1, "name": "n", "cells": rows}))
    return folder


A, B, C = "a" * 24, "b" * 24, "c" * 24


def test_grids_are_joined_and_what_is_there_stays(tmp_path: Path) -> None:
    one = grid(tmp_path / "one", {A: 50.0, B: 60.0})
    other = grid(tmp_path / "other", {B: 60.0, C: 70.0}, measured={"seconds": 9.0})  # a slower machine
    done = CliRunner().invoke(app, ["bench", "merge", str(one), str(other), "--out", str(tmp_path / "all")])
    assert done.exit_code == 0 and "3 finished runs were added. 1 were in several" in done.output
    results = json.loads((tmp_path / "all" / "results.json").read_text())["runs"]
    assert {run["key"]: run["last_micro_f1"] for run in results} == {A: 50.0, B: 60.0, C: 70.0}
    assert (tmp_path / "all" / "cells" / C / "counts.npz").read_bytes() == b"counts of " + C.encode()
    states = {
        row["key"]: row["state"] for row in json.loads((tmp_path / "all/grid.json").read_text())["cells"]
    }
    assert states == {A: "finished", B: "finished", C: "finished", "f" * 24: "waiting"}
    assert merge([one], tmp_path / "all") == (0, 2)


def test_results_alone_can_be_published_and_continued(tmp_path: Path) -> None:
    one = grid(tmp_path / "one", {A: 50.0, B: 60.0})
    for name in ("job.json", "log.txt", "features.npz"):
        (one / "cells" / A / name).write_text("a path of this machine")
    arguments = ["bench", "merge", str(one), "--results-only", "--out", str(tmp_path / "small")]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    files = {path.name for path in (tmp_path / "small").rglob("*") if path.is_file()}
    assert files == {"grid.json", "results.json", "results.csv", "result.json", "counts.npz", ".lock"}
    rows = json.loads((tmp_path / "small" / "grid.json").read_text())["cells"]
    assert {row["key"]: row["state"] for row in rows} == {A: "finished", B: "finished"}
    assert merge([tmp_path / "small"], tmp_path / "again") == (2, 0)


def test_a_run_that_is_only_planned_here_is_taken_from_where_it_is_finished(tmp_path: Path) -> None:
    one, other = grid(tmp_path / "one", {A: 50.0}), grid(tmp_path / "other", {C: 70.0})
    (one / "cells" / C).mkdir()
    (one / "cells" / C / "job.json").write_text("{}")  # as an interrupted grid leaves it
    assert merge([other], one) == (1, 0)
    results = json.loads((one / "results.json").read_text())["runs"]
    assert {run["key"] for run in results} == {A, C}
    assert not (one / "cells" / C / "job.json").exists()


def test_results_that_contradict_each_other_are_refused_and_nothing_is_copied(tmp_path: Path) -> None:
    one, other = grid(tmp_path / "one", {A: 50.0, B: 60.0}), grid(tmp_path / "other", {B: 60.1, C: 70.0})
    with pytest.raises(ConfigError, match="Two results of one run differ") as caught:
        merge([one, other], tmp_path / "all")
    assert "last_micro_f1" in str(caught.value) and B in str(caught.value)
    assert [path.name for path in (tmp_path / "all").iterdir()] == [".lock"]
    in_bf16 = grid(tmp_path / "third", {B: 60.1}, measured={"precision": "bf16"})
    in_32_bits = grid(tmp_path / "fourth", {B: 60.2}, measured={"precision": "fp32"})
    with pytest.raises(ConfigError, match=r"not compute the same \(bf16 and fp32\)"):
        merge([in_bf16, in_32_bits], tmp_path / "both")


def test_leagues_that_chose_differently_are_refused(tmp_path: Path) -> None:
    for name, chosen in (("one", "rdp"), ("other", "rdp with lambda_kd=4.0")):
        folder = grid(tmp_path / name, {A: 50.0})
        write_league(folder, {"rdp": Searched("lambda_kd", chosen, (), "notes", 0)})
    with pytest.raises(ConfigError, match="chose differently"):
        merge([tmp_path / "one", tmp_path / "other"], tmp_path / "all")
    merge([tmp_path / "one"], tmp_path / "all")
    assert read_league(tmp_path / "all")["rdp"].chosen == "rdp"


def test_what_cannot_be_merged_is_refused(tmp_path: Path) -> None:
    one = grid(tmp_path / "one", {A: 50.0})
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(ModelError, match="not empty"):
        merge([one], tmp_path / "mine")
    with pytest.raises(ConfigError, match="into itself"):
        merge([one], one)
    with pytest.raises(ModelError, match="no grid"):
        merge([tmp_path / "mine"], tmp_path / "all")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]
