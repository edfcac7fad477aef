"""A run over a whole stream: what it writes, what it refuses, and that a stopped one goes on exactly."""

from __future__ import annotations

import fcntl
import json
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import warm
from cfner.benchmark.demo import run_demo
from cfner.corpus.corpus import Corpus
from cfner.corpus.sentence import mention_counts
from cfner.errors import CfnerError, ConfigError, ModelError
from cfner.practice.history.history import rollback
from cfner.practice.history.relabel import rename
from cfner.runs.stream_run import run_stream
from cfner.store.model_folder import ModelFolder
from cfner.stream.stream import TaskStream
from cfner.training.config import TrainingConfig
from cfner.training.progress import Silent


@pytest.fixture(scope="module")
def config(tiny_settings: dict[str, Any]) -> TrainingConfig:
    return TrainingConfig.build({**tiny_settings, "epochs": 3, "checkpoint_minutes": 0})


@pytest.fixture(scope="module")
def whole(tiny_stream: TaskStream, config: TrainingConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing interrupted. Copy it before you change anything in it."""
    out = tmp_path_factory.mktemp("run") / "out"
    run_stream(tiny_stream, config, out)
    return out


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "out"))


def weights_hash(folder: Path, step: int | None = None) -> str:
    seal: dict[str, dict[str, str]] = ModelFolder(folder).step(step).read_json("seal.json")
    return seal["files"]["model.safetensors"]


class Stopper(Silent):
    """Pulls the plug at the end of an epoch of a step."""

    def __init__(self, step: str, epoch: int) -> None:
        self.step, self.at, self.name = step, epoch, ""

    def start(self, name: str, epochs: int, batches: int) -> None:
        self.name = name

    def epoch(self, number: int, figures: dict[str, float]) -> None:
        if (self.name, number) == (self.step, self.at):
            raise KeyboardInterrupt


def test_results_hold_what_is_reported(whole: Path, tiny_stream: TaskStream) -> None:
    (run,) = json.loads((whole / "results.json").read_text())["runs"]
    assert set(run) == {
        *("method", "data", "first", "per_step", "sampling", "seed", "steps", "slices", "confusion"),
        *("forgetting", "mean_forgetting", "last_macro_f1_30", "when_learned", "at_the_end", "lost"),
        *("dropped_types", "left_out_types", "leftover_sentences"),
        *("mean_when_learned", "mean_at_the_end", "mean_lost", "worst_type", "worst_type_30"),
        *("mean_micro_f1", "mean_macro_f1", "last_micro_f1", "last_macro_f1", "hashes", "measured"),
    }
    assert (run["method"], run["data"], run["first"], run["per_step"], run["seed"]) == (
        "cfner",
        "tiny",
        2,
        2,
        0,
    )
    assert [step["types"] for step in run["steps"]] == [list(step.types) for step in tiny_stream]
    for step, learned in zip(run["steps"], tiny_stream, strict=True):
        assert set(step) == {"types", "micro_f1", "macro_f1", "per_type", "mentions", "confusion"}
        assert tuple(step["per_type"]) == learned.types_so_far
        assert all(0 <= value <= 100 for value in step["per_type"].values())
        assert step["macro_f1"] == pytest.approx(sum(step["per_type"].values()) / len(step["per_type"]))
    assert run["mean_micro_f1"] == pytest.approx(sum(step["micro_f1"] for step in run["steps"]) / 2)
    assert run["last_micro_f1"] == run["steps"][-1]["micro_f1"]
    assert set(run["measured"]) == {"seconds", "peak_memory", "device", "precision"}
    first, last = run["steps"]
    assert run["forgetting"]["animal"] == pytest.approx(
        first["per_type"]["animal"] - last["per_type"]["animal"]
    )
    assert run["forgetting"]["person"] is None
    assert last["mentions"] == mention_counts(tiny_stream.test)
    assert run["when_learned"] == first["per_type"] | {
        type_: last["per_type"][type_] for type_ in tiny_stream[1].types
    }
    assert run["at_the_end"] == last["per_type"]
    assert run["lost"]["animal"] == run["forgetting"]["animal"]  # of two steps, the first is the best earlier
    assert run["lost"]["person"] is None


def test_a_run_keeps_its_configuration_and_the_manifest_of_its_data(
    whole: Path, tiny_stream: TaskStream, config: TrainingConfig
) -> None:
    record = json.loads((whole / "run.json").read_text())
    assert TrainingConfig(**record["config"]) == config
    assert record["manifest"] == json.loads(json.dumps(tiny_stream.manifest()))


def test_nothing_unfinished_is_left_behind(whole: Path) -> None:
    kept = [".lock", "CURRENT", "results.json", "run.json", "steps"]
    assert sorted(path.name for path in whole.iterdir()) == kept


def test_a_run_without_a_folder_gives_the_same_scores(
    whole: Path, tiny_stream: TaskStream, config: TrainingConfig
) -> None:
    result, _ = run_stream(tiny_stream, config, None)
    (run,) = json.loads((whole / "results.json").read_text())["runs"]
    assert json.loads(json.dumps(result.to_json()["steps"])) == run["steps"]


# -- stopped runs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("step", "epoch"), [("step 2", 1), ("step 1", 3), ("step 2", 3)])
def test_a_stopped_run_ends_with_the_weights_of_one_that_was_not(
    step: str, epoch: int, whole: Path, tiny_stream: TaskStream, config: TrainingConfig, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        run_stream(tiny_stream, config, out, progress=Stopper(step, epoch))
    assert len(ModelFolder(out).names()) == int(step[-1]) - 1
    result, _ = run_stream(tiny_stream, config, out, resume=True)
    assert weights_hash(out, 1) == weights_hash(whole, 1)
    assert weights_hash(out, 2) == weights_hash(whole, 2)
    (run,) = json.loads((whole / "results.json").read_text())["runs"]
    assert json.loads(json.dumps(result.to_json()["steps"])) == run["steps"]


def test_bf16_runs_resume_exactly_too(
    tiny_stream: TaskStream, config: TrainingConfig, tmp_path: Path
) -> None:
    config = config.model_copy(update={"precision": "bf16", "epochs": 1, "clip": None})
    run_stream(tiny_stream, config, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run_stream(tiny_stream, config, tmp_path / "out", progress=Stopper("step 2", 1))
    run_stream(tiny_stream, config, tmp_path / "out", resume=True)
    assert weights_hash(tmp_path / "out") == weights_hash(tmp_path / "whole")


def test_a_run_stopped_between_a_step_and_its_pointer_goes_on(
    copy: Path, whole: Path, tiny_stream: TaskStream, config: TrainingConfig
) -> None:
    ModelFolder(copy).point_to(1)
    (copy / "results.json").unlink()
    run_stream(tiny_stream, config, copy, resume=True)
    assert ModelFolder(copy).current_name() == "0002"
    assert weights_hash(copy) == weights_hash(whole)


def test_a_run_stopped_before_its_first_pointer_goes_on(
    copy: Path, whole: Path, tiny_stream: TaskStream, config: TrainingConfig
) -> None:
    (copy / "CURRENT").unlink()
    shutil.rmtree(copy / "steps" / "0002")
    run_stream(tiny_stream, config, copy, resume=True)
    assert weights_hash(copy) == weights_hash(whole)


def test_a_run_killed_after_its_last_step_leaves_nothing_half_done(
    copy: Path, whole: Path, tiny_stream: TaskStream, config: TrainingConfig
) -> None:
    (copy / "results.json").unlink()
    (copy / ".results.json.123.partial").write_text("{")
    (copy / "unfinished-step.safetensors").write_bytes(b"of the step that is saved")
    run_stream(tiny_stream, config, copy, resume=True)
    assert sorted(p.name for p in copy.iterdir()) == sorted(p.name for p in whole.iterdir())


def test_a_run_stopped_as_it_began_goes_on_and_is_swept(
    tiny_stream: TaskStream, config: TrainingConfig, tmp_path: Path
) -> None:
    (tmp_path / ".run.json.123.partial").write_text("{")
    (tmp_path / ".lock").write_text("")
    run_stream(tiny_stream, config, tmp_path, resume=True)
    assert not list(tmp_path.glob("*.partial"))


def test_resuming_a_finished_run_changes_no_step(
    copy: Path, whole: Path, tiny_stream: TaskStream, config: TrainingConfig
) -> None:
    result, tagger = run_stream(tiny_stream, config, copy, resume=True)
    assert ModelFolder(copy).names() == ["0001", "0002"]
    assert weights_hash(copy) == weights_hash(whole)
    assert len(result.matrix.steps) == 2
    assert tagger.types == tiny_stream.types


# -- refusals ----------------------------------------------------------------------------------------------


def test_an_existing_run_is_not_overwritten(
    copy: Path, tiny_stream: TaskStream, config: TrainingConfig
) -> None:
    with pytest.raises(ModelError, match=r"already a run in this folder.*`resume=True`"):
        run_stream(tiny_stream, config, copy)


def test_a_folder_of_something_else_is_not_written_into(
    tiny_stream: TaskStream, config: TrainingConfig, tmp_path: Path
) -> None:
    (tmp_path / "thesis.txt").write_text("")
    for resume in (False, True):
        with pytest.raises(ModelError, match="not empty and does not contain a run"):
            run_stream(tiny_stream, config, tmp_path, resume=resume)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_run_with_other_data_is_not_resumed(
    copy: Path, tiny_corpus: Corpus, config: TrainingConfig
) -> None:
    other = TaskStream.split(tiny_corpus, first=2, per_step=2, min_mentions=1, seed=1)
    with pytest.raises(ModelError, match="different data or its division into steps"):
        run_stream(other, config, copy, resume=True)


@pytest.mark.parametrize("change", [{"epochs": 4}, {"seed": 1}, {"parameters": {"k": 1}}, {"clip": None}])
def test_a_run_with_other_settings_is_not_resumed(
    change: dict[str, Any], copy: Path, tiny_stream: TaskStream, config: TrainingConfig
) -> None:
    with pytest.raises(ModelError, match="different settings"):
        run_stream(tiny_stream, config.model_copy(update=change), copy, resume=True)


def test_settings_that_do_not_change_the_outcome_may_differ(
    copy: Path, tiny_stream: TaskStream, config: TrainingConfig
) -> None:
    run_stream(tiny_stream, config.model_copy(update={"eval_batch_size": 7}), copy, resume=True)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda run: rename(run, "animal", "beast"), r"'rename animal -> beast'\) is not part of this run"),
        (lambda run: rollback(run, 1), "rolled back to step 1"),
    ],
)
def test_a_run_whose_model_was_changed_is_not_gone_on_with(
    change: Callable[[Path], Any],
    told: str,
    copy: Path,
    tiny_stream: TaskStream,
    config: TrainingConfig,
) -> None:
    change(copy)
    before = ModelFolder(copy).step().hash
    with pytest.raises(ModelError, match=told):
        run_stream(tiny_stream, config, copy, resume=True)
    assert ModelFolder(copy).step().hash == before


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"hashes": 3}'])
def test_a_damaged_record_of_a_run_is_an_error_of_ours(
    content: str, copy: Path, tiny_stream: TaskStream, config: TrainingConfig
) -> None:
    (copy / "run.json").write_text(content)
    with pytest.raises(CfnerError) as caught:
        run_stream(tiny_stream, config, copy, resume=True)
    assert str(copy) in str(caught.value)


def test_without_test_data_nothing_is_trained(
    tiny_corpus: Corpus, config: TrainingConfig, tmp_path: Path
) -> None:
    stream = TaskStream.split(
        Corpus("tiny", tiny_corpus.train, tiny_corpus.dev), first=2, per_step=2, min_mentions=1
    )
    with pytest.raises(ConfigError, match="no test sentences"):
        run_stream(stream, config, tmp_path / "out")
    assert not (tmp_path / "out").exists()


# -- the demonstration -------------------------------------------------------------------------------------


def test_the_demo_leaves_other_peoples_folders_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("")
    with pytest.raises(ModelError, match="the demo did not write"):
        run_demo(tmp_path, seed=0, size=100, epochs=1, encoder="minilm", watch=lambda _: Silent())


@pytest.mark.parametrize("what", ["a file", "a step", "a name"])
def test_the_demo_does_not_clear_away_what_somebody_made_of_it(what: str, copy: Path, tmp_path: Path) -> None:
    demo = tmp_path / "demo"
    shutil.copytree(copy, demo / "cfner")
    (demo / "demo.json").write_text("{}")
    if what == "a file":
        (demo / "thesis.txt").write_text("")
    elif what == "a step":
        steps = demo / "cfner" / "steps"
        shutil.copytree(steps / "0002", steps / "0003")
    else:
        rename(demo / "cfner", "animal", "beast")
    before = sorted(demo.rglob("*"))
    with pytest.raises(ModelError, match="the demo did not write"):
        run_demo(demo, seed=0, size=100, epochs=1, encoder="minilm", watch=lambda _: Silent())
    assert sorted(demo.rglob("*")) == before


def test_the_demo_writes_models_results_and_a_picture_and_may_be_run_again(
    tiny_encoder: Path, tmp_path: Path
) -> None:
    pytest.importorskip("faker")
    for _ in range(2):
        result = run_demo(
            tmp_path / "demo",
            seed=0,
            size=40,
            epochs=1,
            encoder=str(tiny_encoder),
            watch=lambda _: Silent(),
        )
    assert {"finetune", "own-other", "results.json", "f1_by_step.svg"} <= {
        path.name for path in (tmp_path / "demo").iterdir()
    }
    runs = json.loads((tmp_path / "demo" / "results.json").read_text())["runs"]
    assert [run["method"] for run in runs] == ["finetune", "own-other"]
    assert all(len(run["steps"]) == len(result.stream) for run in runs)
    assert set(result.predictions) == {"finetune", "own-other"}


KILLED = """
import os, signal, sys
from pathlib import Path
from cfner.benchmark.demo import run_demo
from cfner.training.progress import Silent

def watch(method):
    return Silent() if method == "finetune" else os.kill(os.getpid(), signal.SIGKILL)

run_demo(Path(sys.argv[1]), seed=1, size=40, epochs=1, encoder=sys.argv[2], watch=watch)
"""


def test_a_killed_second_demo_leaves_the_first_one_alone(tiny_encoder: Path, tmp_path: Path) -> None:
    pytest.importorskip("faker")
    demo = tmp_path / "demo"
    settings: dict[str, Any] = {"seed": 0, "size": 40, "epochs": 1, "encoder": str(tiny_encoder)}
    run_demo(demo, **settings, watch=lambda _: Silent())
    before = {path: path.stat() for path in sorted(demo.rglob("*"))}

    def at_once(method: str) -> Silent:
        raise KeyboardInterrupt

    call = [warm.python(), "-c", KILLED, str(demo), str(tiny_encoder)]
    assert subprocess.run(call, check=False).returncode in (-signal.SIGKILL, 128 + signal.SIGKILL)
    assert {path: path.stat() for path in sorted(demo.rglob("*"))} == before
    assert len(list(tmp_path.iterdir())) == 2  # what the killed one had made so far
    with (next(tmp_path.glob(".demo.*")) / ".lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # as one that is still at work
        with pytest.raises(KeyboardInterrupt):
            run_demo(demo, **settings, watch=at_once)
    assert len(list(tmp_path.iterdir())) == 2
    with pytest.raises(KeyboardInterrupt):
        run_demo(demo, **settings, watch=at_once)
    assert [path.name for path in tmp_path.iterdir()] == ["demo"]
