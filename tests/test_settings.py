"""Settings mean the same to every command: defaults < record < preset < file < flags."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cfner import learn
from cfner.benchmark.cells import Cell
from cfner.cli.main import main
from cfner.cli.settings import call_of
from cfner.errors import ConfigError
from cfner.interop.export import export_model
from cfner.methods import create, method_names
from cfner.stream.step import Step
from cfner.stream.stream import TaskStream
from cfner.tagger import ContinualTagger
from cfner.training.config import PRESETS, TrainingConfig
from cfner.training.record import usable_settings
from commands import COMMANDS

# -- where training would begin ----------------------------------------------------------------------------


class Reached(BaseException):
    """Training would begin now."""

    def __init__(self, config: TrainingConfig, step: Step | None = None) -> None:
        self.config, self.step = config, step


def _stop(tagger: ContinualTagger, step: Step, *_: Any, **__: Any) -> None:
    raise Reached(tagger.config, step)


def _last_of_grid(folder: Any, jobs: Any, *_: Any) -> None:
    """The last method with the first seed."""
    cells = [json.loads((job.folder / "job.json").read_text()) for job in jobs]
    configs = [Cell.from_json(job["cell"]).config for job in cells if job["kind"] == "cell"]
    raise Reached([config for config in configs if config.seed == configs[0].seed][-1])


Begin = Callable[..., Reached]


@pytest.fixture(scope="module")
def begin(
    two_steps: Path,
    tiny_data: Path,
    tiny_encoder: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Begin:
    """Run a command until it would train."""
    split = ["--encoder", tiny_encoder, "--first", "2", "--per-step", "2", "--min-mentions", "1"]
    words: dict[str, list[object]] = {
        # the paper's length is too long here
        "train": ["train", tiny_data, *split, "--set", "max_length=null", "--method", "cfner"],
        "learn": ["learn", two_steps, tiny_data, "--old-labels", "use"],
        "bench run": ["bench", "run", "--data", tiny_data, *split],
        "bench reproduce": ["bench", "reproduce", "figure-tsne", "--data", tiny_data, *split],
        "demo": ["demo", "--size", "20", "--encoder", tiny_encoder],
    }

    def run(command: str, *more: object) -> Reached:
        out = tmp_path_factory.mktemp("begin") / "out"
        with pytest.MonkeyPatch.context() as patch, pytest.raises(Reached) as reached:
            patch.setattr(ContinualTagger, "learn", _stop)
            patch.setattr("cfner.benchmark.runner.run_grid", _last_of_grid)
            patch.setattr(sys, "argv", ["cfner", *map(str, [*words[command], "--out", out, *more])])
            main()
        return reached.value

    return run


# -- precedence --------------------------------------------------------------------------------------------

TRIED = ("train", "learn", "bench run", "bench reproduce", "demo")
# the last three merge as learn and bench run do
TAKING = (*TRIED, "check", "consolidate", "bench yardstick", "bench league")
FLAGS = {
    "epochs": "--epochs",
    "seed": "--seed",
    "batch_size": "--batch-size",
    "k": "--k",
    "lambda_base": "--lambda-base",
}
PARAMETERS = {"k", "lambda_base"}
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "epochs": st.integers(1, 99),
    "seed": st.integers(1, 99),
    "batch_size": st.integers(1, 99),
    "warmup": st.sampled_from([0.0, 0.25, 0.5]),
    "k": st.integers(1, 9),
    "lambda_base": st.sampled_from([0.5, 1.5, 7.0]),
}
source = st.fixed_dictionaries({}, optional=VALUES)


def test_every_command_that_takes_settings_is_tried_here() -> None:
    settings_flags = {"--config", "--set", "--preset", "--epochs", "--method", "--lr-encoder"}
    assert {path for path, flags in COMMANDS.items() if flags & settings_flags} == set(TAKING)


def values_of(config: TrainingConfig) -> dict[str, Any]:
    method = create(config.method, config.parameters, config.without, as_published=config.as_published)
    plain = {name: getattr(config, name) for name in VALUES if name not in PARAMETERS}
    return plain | {name: getattr(method.parameters, name, None) for name in PARAMETERS}


def as_file(values: Mapping[str, Any]) -> dict[str, Any]:
    plain = {name: value for name, value in values.items() if name not in PARAMETERS}
    own = {name: value for name, value in values.items() if name in PARAMETERS}
    return plain | ({"parameters": own} if own else {})


@pytest.mark.parametrize("command", TRIED)
@settings(max_examples=10)
@given(preset=st.booleans(), file=source, pairs=source, flags=source)
@example(preset=False, file={"seed": 4, "k": 5}, pairs={}, flags={})
@example(preset=False, file={"seed": 4, "k": 5}, pairs={"seed": 3, "lambda_base": 7.0}, flags={})
@example(preset=False, file={}, pairs={}, flags={"seed": 2, "epochs": 3})
@example(preset=True, file={}, pairs={"epochs": 3}, flags={})
def test_the_highest_source_wins(
    command: str,
    preset: bool,
    file: dict[str, Any],
    pairs: dict[str, Any],
    flags: dict[str, Any],
    begin: Begin,
    two_steps: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    offered = COMMANDS[command]
    record = json.loads((two_steps / "steps" / "0002" / "step.json").read_text())["config"]
    expected = values_of(TrainingConfig.build(record if command == "learn" else {"method": "cfner"}))
    expected |= {"epochs": 3} if command == "demo" else {}
    words: list[object] = ["--methods", "cfner"] if command == "bench run" else []
    if "--preset" in offered:
        words += ["--preset", "paper"] if preset else []
        words += ["--preset", "none"] if command == "bench reproduce" and not preset else []
        paper = values_of(TrainingConfig.build(preset="paper"))
        named = {name for name in VALUES if name in PRESETS["paper"]} | PARAMETERS
        expected |= {name: paper[name] for name in named} if preset else {}
    if "--config" in offered:
        path = tmp_path_factory.mktemp("file") / "settings.json"
        path.write_text(json.dumps(as_file(file)))
        words += ["--config", path]
        expected |= file
    names = FLAGS | ({"seed": "--seeds"} if "--seeds" in offered else {})
    flags = {name: value for name, value in flags.items() if names.get(name) in offered}
    words += [word for name, value in flags.items() for word in (names[name], value)]
    expected |= flags
    if "--set" in offered:  # a flag like the others
        pairs = {name: value for name, value in pairs.items() if name not in flags}
        words += [word for name, value in pairs.items() for word in ("--set", f"{name}={json.dumps(value)}")]
        expected |= pairs
    config = begin(command, *words).config
    found = values_of(config)
    if command == "demo":  # begins with fine-tuning, which has no parameters
        found, expected = (
            {n: v for n, v in each.items() if n not in PARAMETERS} for each in (found, expected)
        )
    assert found == expected


def test_check_plans_with_the_record_under_its_flags(two_steps: Path, tiny_data: Path, capsys: Any) -> None:
    def plan(*flags: str) -> dict[str, Any]:
        words = ["check", str(tiny_data), "--model", str(two_steps), "--old-labels", "use", "--no-timing"]
        with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit):
            patch.setattr(sys, "argv", ["cfner", *words, "--json", *flags])
            main()
        return dict(json.loads(capsys.readouterr().out)["plan"])

    assert (plan()["method"], plan()["epochs"]) == ("cfner", 10)
    assert plan("--epochs", "3", "--method", "extendner")["method"] == "extendner"
    assert plan("--epochs", "3")["epochs"] == 3


def test_one_seed_divides_the_data_and_trains(begin: Begin, tmp_path: Path) -> None:
    (tmp_path / "seed.toml").write_text("seed = 3\n")
    random = ["--sampling", "random"]
    zero = begin("train", *random)
    ways = [["--seed", 3], ["--set", "seed=3"], ["--config", tmp_path / "seed.toml"]]
    found = [begin("train", *random, *way) for way in ways]
    assert [reached.config.seed for reached in found] == [3, 3, 3]
    slices = [reached.step.train for reached in found if reached.step is not None]
    assert slices[0] == slices[1] == slices[2]
    assert zero.step is not None and slices[0] != zero.step.train


def test_a_grid_runs_the_method_that_a_file_names(begin: Begin, tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text('method = "extendner"\n')
    assert (
        begin("bench run", "--config", tmp_path / "one.toml", "--methods", "podnet").config.method == "podnet"
    )
    assert begin("bench run", "--config", tmp_path / "one.toml").config.method == "extendner"
    assert begin("bench run").config.method == method_names()[-1]
    assert begin("bench run", "--preset", "paper").config.method == method_names()[-1]


def test_a_grid_refuses_what_it_would_leave_out(tmp_path: Path, tiny_data: Path, capsys: Any) -> None:
    def error(*words: object) -> str:
        line = ["bench", "run", "--data", tiny_data, "--out", tmp_path / "out", "--min-mentions", "1", *words]
        with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit):
            patch.setattr(sys, "argv", ["cfner", *map(str, line)])
            main()
        return str(capsys.readouterr().err)

    assert "to one method" in error("--set", 'without=["effect_e"]')
    assert "Did you mean 'lambda_base'" in error("--set", "lamda_base=1")


# -- what a model folder records ---------------------------------------------------------------------------


def test_recorded_parameters_are_of_the_recorded_method() -> None:
    record = {"method": "cfner", "parameters": {"k": 5, "m": 2}, "without": ["effect_e"], "epochs": 7}
    same = TrainingConfig.build({"parameters": {"m": 3}}, recorded=record)
    assert (same.parameters, same.without, same.epochs) == ({"k": 5, "m": 3}, ("effect_e",), 7)
    other = TrainingConfig.build({"method": "extendner"}, recorded=record)
    assert (other.parameters, other.without, other.epochs) == ({}, (), 7)
    paper = TrainingConfig.build(preset="paper", recorded=record | {"method": "extendner"})
    assert (paper.method, paper.parameters) == ("cfner", {})


def test_the_papers_parameters_are_above_recorded_ones() -> None:
    record = {"method": "cfner", "parameters": {"lambda_base": 9.0}}
    assert TrainingConfig.build(preset="paper", recorded=record).parameters == {}


@pytest.mark.parametrize("named", [True, False])
def test_a_recorded_method_counts_if_it_was_named(
    named: bool,
    tiny_stream: TaskStream,
    tiny_encoder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usual, given = TrainingConfig().method, {"lambda_keep": 5.0}
    chosen = {"method": usual} if named else {}
    tagger = ContinualTagger.from_pretrained(str(tiny_encoder), epochs=1, parameters=given, **chosen)
    tagger.learn(tiny_stream[0])
    tagger.save(tmp_path / "model")
    again = ContinualTagger.load(tmp_path / "model").config
    assert (again.method, again.method_named, again.parameters) == (usual, named, given)
    # a later version has another default
    monkeypatch.setattr(TrainingConfig.model_fields["method"], "default", "extendner")
    TrainingConfig.model_rebuild(force=True)
    later = ContinualTagger.load(tmp_path / "model").config
    assert (later.method, later.parameters) == ((usual, given) if named else ("extendner", {}))
    monkeypatch.undo()
    TrainingConfig.model_rebuild(force=True)


@pytest.fixture
def another_default(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A later version, whose default method is not the one that older folders were learned with."""
    monkeypatch.setattr(TrainingConfig.model_fields["method"], "default", "own-other")
    TrainingConfig.model_rebuild(force=True)
    yield "own-other"
    monkeypatch.undo()
    TrainingConfig.model_rebuild(force=True)


@pytest.fixture
def older_folder(two_steps: Path, tmp_path: Path) -> Callable[[bool], Path]:
    """A folder that was learned with cfner, by its name or because that was the default."""

    def folder(named: bool) -> Path:
        tagger = ContinualTagger.load(two_steps, 1)
        assert tagger.record is not None
        tagger.record.facts["method_named"] = named
        tagger.record.facts["config"] |= {"parameters": {"k": 5}}
        tagger._saved = None
        tagger.save(tmp_path / "older")
        return tmp_path / "older"

    return folder


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("preset", [None, "paper"])
def test_an_older_folder_learns_with_todays_default_unless_its_method_was_named(
    preset: str | None,
    named: bool,
    older_folder: Callable[[bool], Path],
    tiny_data: Path,
    tmp_path: Path,
    another_default: str,
) -> None:
    folder = older_folder(named)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Reached) as reached:
        patch.setattr(ContinualTagger, "learn", _stop)
        learn(folder, str(tiny_data), out=tmp_path / "m2", old_labels="ignore", preset=preset)
    config = reached.value.config
    assert config.method == ("cfner" if named or preset else another_default)
    assert config.method_named is (named or preset is not None)
    assert config.parameters == ({"k": 5} if named and not preset else {})


@pytest.mark.parametrize(("method", "counts"), [("extendner", True), ("cfner", False)])
def test_in_folders_that_do_not_say_the_default_of_that_time_was_not_named(method: str, counts: bool) -> None:
    record = {"config": TrainingConfig(method=method, parameters={"k": 5}).model_dump(mode="json")}
    assert ("method" in usable_settings(record)) is ("parameters" in usable_settings(record)) is counts


# -- a model card ------------------------------------------------------------------------------------------


def test_a_cards_commands_give_the_recorded_settings(
    begin: Begin, tiny_stream: TaskStream, tiny_encoder: Path, tmp_path: Path
) -> None:
    given = {"epochs": 1, "warmup": 0.25, "seed": 8, "parameters": {"k": 5}, "without": ("curriculum",)}
    tagger = ContinualTagger.from_pretrained(str(tiny_encoder), method="cfner", **given)
    for step in tiny_stream:
        tagger.learn(step)
        tagger.save(tmp_path / "model")
    export_model(tmp_path / "model", tmp_path / "export", "hf")
    card = (tmp_path / "export" / "README.md").read_text()
    assert "\ncfner train DATA --first 2 --per-step 2 " in card and "Learned by the same command." in card
    blocks = re.findall(r"```json\n(.*?)```", card, re.DOTALL)
    for command, block in zip(("train", "learn"), blocks, strict=True):
        (tmp_path / "settings.json").write_text(block)
        again = begin(command, "--config", tmp_path / "settings.json").config
        assert again.what_matters() == tagger.config.what_matters()


def test_learning_does_not_change_what_a_model_is(two_steps: Path, tiny_data: Path, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text("sigma = 3.0\n")
    with pytest.raises(ConfigError, match=r"s\.toml: The setting 'sigma' belongs to the model"):
        learn(two_steps, str(tiny_data), out=tmp_path / "out", config=tmp_path / "s.toml")


@pytest.mark.parametrize("pair", ["max_forgetting=abc", "data=elsewhere", "folds=x", "json=true"])
def test_set_is_for_settings_not_for_arguments_of_the_command(pair: str) -> None:
    with pytest.raises(ConfigError, match=f"--set {pair.partition('=')[0]}: it is no setting"):
        call_of({"data": "d", "max_forgetting": 2.0, "folds": None, "json": False, "set_": [pair]})
    assert call_of({"k": 1, "epochs": None, "set_": ["k=2", "epochs=3"]}) == {"k": 2, "epochs": 3}
