"""Settings, optimiser and the loop of one step."""

from __future__ import annotations

import json
import math
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook
from typer.testing import CliRunner

import warm
from cfner.cli.main import app
from cfner.corpus.sentence import Sentence, Span
from cfner.errors import ConfigError, TrainingError
from cfner.methods import create
from cfner.network.network import Network
from cfner.stream.step import Step
from cfner.stream.stream import TaskStream
from cfner.tagger import ContinualTagger
from cfner.training.config import PRESETS, TrainingConfig
from cfner.training.optimiser import make_optimiser, make_schedule


def fresh(tiny_settings: dict[str, Any], **changes: Any) -> ContinualTagger:
    return ContinualTagger.from_pretrained(**{**tiny_settings, "epochs": 1, **changes})


def without_dropout(tagger: ContinualTagger) -> ContinualTagger:
    for module in tagger.model.network.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return tagger


@pytest.fixture
def updates() -> Iterator[list[int]]:
    """Grows by one entry with every update of any optimiser."""
    seen: list[int] = []
    handle = register_optimizer_step_post_hook(lambda *_: seen.append(1))
    yield seen
    handle.remove()


# -- settings ----------------------------------------------------------------------------------------------

KEYS = {"epochs": st.integers(1, 99), "batch_size": st.integers(1, 99), "momentum": st.floats(0, 0.9)}
sources = st.fixed_dictionaries({}, optional=KEYS)


@settings(max_examples=50)
@given(file=sources, flags=sources, preset=st.sampled_from([None, "paper"]))
def test_defaults_give_way_to_the_preset_then_the_file_then_flags(
    file: dict[str, Any], flags: dict[str, Any], preset: str | None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("settings") / "settings.json"
    path.write_text(json.dumps(file))
    built = TrainingConfig.build(flags, file=path, preset=preset)
    defaults = TrainingConfig().model_dump()
    expected = {**defaults, **(PRESETS["paper"] if preset else {}), **file, **flags}
    assert built.model_dump() == expected


def test_a_toml_file_is_read_and_parameters_are_merged(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text("epochs = 7\n[parameters]\nk = 5\nm = 2\n")
    built = TrainingConfig.build({"parameters": {"m": 4}}, file=path)
    assert (built.epochs, built.parameters) == (7, {"k": 5, "m": 4})


def test_parameters_are_a_table(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text("parameters = 5\n")
    with pytest.raises(ConfigError, match=r"settings\.toml: The setting 'parameters' is not a table"):
        TrainingConfig.build(file=path)


def test_none_given_on_purpose_replaces_a_default() -> None:
    assert TrainingConfig().clip == 1.0
    assert TrainingConfig.build({"clip": None}).clip is None


@pytest.mark.parametrize("source", ["file", "flags"])
def test_an_unknown_key_names_its_place_and_the_nearest(source: str, tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"batchsize": 4}' if source == "file" else "{}")
    with pytest.raises(ConfigError, match=r"no setting 'batchsize'.*Did you mean 'batch_size'") as caught:
        TrainingConfig.build({"batchsize": 4} if source == "flags" else {}, file=path)
    assert str(path if source == "file" else "the arguments") in str(caught.value)


@pytest.mark.parametrize(
    "bad",
    [{"epochs": 0}, {"precision": "fp8"}, {"momentum": 1.0}, {"clip": 0}, {"epochs": "x"}],
)
def test_a_bad_value_names_its_setting(bad: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(bad))):
        TrainingConfig.build(bad)


@pytest.mark.parametrize(
    ("name", "content"), [("s.toml", "epochs = "), ("s.json", "{"), ("s.json", "[1]"), ("s.json", "\xff")]
)
def test_a_broken_settings_file_is_an_error_that_names_it(name: str, content: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content.encode("latin-1"))
    with pytest.raises(ConfigError) as caught:
        TrainingConfig.build(file=tmp_path / name)
    assert str(tmp_path / name) in str(caught.value)


def test_a_missing_file_and_a_missing_preset_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        TrainingConfig.build(file=tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="Did you mean 'paper'"):
        TrainingConfig.build(preset="papr")


@pytest.mark.parametrize("preset", [None, *PRESETS])
def test_the_curriculum_is_on_in_every_shipped_configuration(preset: str | None) -> None:
    built = TrainingConfig.build(preset=preset)
    method = create("cfner", built.parameters, built.without)
    assert method.has("curriculum")
    assert (method.parameters.delta_1, method.parameters.delta_m, method.parameters.m) == (1.0, 0.0, None)


def test_patience_without_a_choice_of_the_epoch_is_refused() -> None:
    with pytest.raises(ConfigError, match="no epoch is chosen"):
        TrainingConfig.build({"patience": 2})
    assert TrainingConfig.build({"patience": 2, "select_on": "new"}).patience == 2


@pytest.mark.parametrize(
    ("given", "sentences", "epochs"),
    [({}, 60, 38), ({}, 8000, 10), ({"epochs": 2}, 60, 2), ({"min_updates": 0}, 60, 10)],
)
def test_small_steps_make_enough_updates_unless_epochs_are_given(
    given: dict[str, Any], sentences: int, epochs: int
) -> None:
    config = TrainingConfig.build(given)
    assert config.epochs_for(sentences) == epochs
    assert "epochs" in given or -(-sentences // config.batch_size) * epochs >= config.min_updates


# -- optimiser and schedule --------------------------------------------------------------------------------


def small_network() -> Network:
    from cfner.network.head import make_head

    return Network(nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4)), make_head("linear", 4, 3))


@pytest.mark.parametrize("kind", ["adamw", "sgd"])
def test_encoder_and_head_have_their_own_rates_and_the_head_does_not_decay(kind: str) -> None:
    network = small_network()
    optimiser = make_optimiser(
        network, kind=kind, lr_encoder=1e-4, lr_head=1e-2, weight_decay=0.5, momentum=0.9
    )
    found = {
        id(p): (group["lr"], group["weight_decay"])
        for group in optimiser.param_groups
        for p in group["params"]
    }
    assert len(found) == len(list(network.parameters()))
    for name, parameter in network.named_parameters():
        head, matrix = name.startswith("head"), parameter.dim() > 1
        assert found[id(parameter)] == (1e-2 if head else 1e-4, 0.5 if matrix and not head else 0.0)


@settings(max_examples=100)
@given(
    st.sampled_from(["linear", "constant", "drop"]),
    st.integers(1, 20),
    st.integers(1, 20),
    st.floats(0, 0.9),
    st.booleans(),
)
def test_rates_rise_over_the_warm_up_and_do_what_the_schedule_says(
    kind: str, per_epoch: int, epochs: int, warmup: float, first: bool
) -> None:
    optimiser = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    schedule = make_schedule(
        optimiser, kind=kind, per_epoch=per_epoch, epochs=epochs, warmup=warmup, first_step=first
    )
    count, drop = per_epoch * epochs, 5 * per_epoch
    rates = []
    for _ in range(count):
        rates.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        schedule.step()
    warm = int(count * warmup)
    assert rates[:warm] == sorted(rates[:warm]) and all(0 < rate < 1 for rate in rates[:warm])
    after = rates[warm:]
    assert after[0] == pytest.approx(0.2 if kind == "drop" and first and warm >= drop else 1.0)
    if kind == "linear":
        assert after == sorted(after, reverse=True) and after[-1] > 0
    if kind == "constant" or (kind == "drop" and not first):
        assert set(after) == {1.0}
    if kind == "drop" and first:
        assert after == [0.2 if at >= drop else 1.0 for at in range(warm, count)]


# -- the loop ----------------------------------------------------------------------------------------------


def equal_sentences(count: int) -> tuple[Sentence, ...]:
    """Sentences of the same number of words, so that the mean of two halves is the mean of the whole."""
    names = ["ada", "emmy", "kurt", "alan", "grace"]
    return tuple(
        Sentence((names[i % 5], "saw", names[(i * 3) % 5], "today"), (Span(0, 1, "person"),))
        for i in range(count)
    )


def test_two_accumulated_batches_of_8_are_one_of_16(
    tiny_settings: dict[str, Any], updates: list[int]
) -> None:
    step = Step(types=("person",), train=equal_sentences(16))
    ends, counts = [], []
    for batch_size, accumulation in [(16, 1), (8, 2), (4, 4)]:
        tagger = without_dropout(
            fresh(tiny_settings, epochs=4, batch_size=batch_size, accumulation=accumulation, optimiser="sgd")
        )
        updates.clear()
        tagger.learn(step)
        counts.append(len(updates))
        ends.append(tagger.model.network.state_dict())
    assert counts == [4, 4, 4]
    for other in ends[1:]:
        for key, value in ends[0].items():
            torch.testing.assert_close(other[key], value, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(("windows", "batch", "accumulation"), [(10, 4, 2), (9, 2, 3), (5, 8, 4), (12, 2, 1)])
def test_a_last_group_of_fewer_batches_is_an_update_too(
    windows: int, batch: int, accumulation: int, tiny_settings: dict[str, Any], updates: list[int]
) -> None:
    tagger = fresh(tiny_settings, epochs=2, batch_size=batch, accumulation=accumulation)
    tagger.learn(Step(types=("person",), train=equal_sentences(windows)))
    assert len(updates) == 2 * math.ceil(math.ceil(windows / batch) / accumulation)


def test_taggers_in_one_process_keep_their_own_accumulation(
    tiny_settings: dict[str, Any], updates: list[int]
) -> None:
    step = Step(types=("person",), train=equal_sentences(8))
    one, other = (fresh(tiny_settings, batch_size=2, accumulation=a) for a in (4, 1))
    one.learn(step)
    other.learn(step)
    assert len(updates) == 1 + 4
    one.learn(step)
    assert len(updates) == 1 + 4 + 1


class ScriptedDev:
    """Dev scores as told, with the weights of each epoch kept."""

    def __init__(self, scores: list[float]) -> None:
        self.scores = scores
        self.weights: list[dict[str, torch.Tensor]] = []

    def __call__(self, network: Network) -> dict[str, float]:
        self.weights.append({key: value.clone() for key, value in network.state_dict().items()})
        return {"dev_choice": self.scores[len(self.weights) - 1]}


@pytest.mark.parametrize(
    ("scores", "patience", "ran", "best"),
    [
        ([10, 50, 40, 30, 20, 60], 2, 4, 2),
        ([10, 50, 40, 30, 20, 60], None, 6, 6),
        ([10, 50, 50, 50, 50, 10], None, 6, 5),
        ([10, 20, 30, 40, 50, 60], 1, 6, 6),
        ([0, 0, 0, 0, 0, 0], 3, 4, 4),
    ],
)
def test_training_stops_early_and_ends_with_the_best_epochs_weights(
    scores: list[float],
    patience: int | None,
    ran: int,
    best: int,
    tiny_settings: dict[str, Any],
    tiny_stream: TaskStream,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dev = ScriptedDev(scores)
    monkeypatch.setattr("cfner.training.step.EpochChoice", lambda *_, **__: dev)
    tagger = fresh(tiny_settings, epochs=6, patience=patience, select_on="new")
    state = tagger.learn(tiny_stream[0])
    assert (len(dev.weights), state.best_epoch, len(state.history)) == (ran, best, ran)
    final = tagger.model.network.state_dict()
    assert all(torch.equal(final[key], value) for key, value in dev.weights[best - 1].items())


def test_without_dev_data_the_last_epoch_is_kept(
    tiny_settings: dict[str, Any], tiny_stream: TaskStream
) -> None:
    first = tiny_stream[0]
    tagger = fresh(tiny_settings, epochs=2)
    assert tagger.learn(Step(types=first.types, train=first.train)).best_epoch == 2


@pytest.mark.parametrize("changes", [{"precision": "bf16"}, {"optimiser": "sgd"}, {"matches": "exact"}])
def test_other_settings_learn_too(
    changes: dict[str, Any], tiny_settings: dict[str, Any], tiny_stream: TaskStream
) -> None:
    tagger = fresh(tiny_settings, epochs=2, **changes)
    first, second = (tagger.learn(step).history for step in tiny_stream)
    assert first[-1]["cross_entropy"] < first[0]["cross_entropy"]
    assert all(math.isfinite(value) for row in second for value in row.values())
    assert all(torch.isfinite(value).all() for value in tagger.model.network.state_dict().values())


def test_bf16_computes_in_bf16_and_keeps_weights_in_fp32(
    tiny_settings: dict[str, Any], tiny_stream: TaskStream
) -> None:
    seen: set[torch.dtype] = set()
    tagger = fresh(tiny_settings, precision="bf16")
    body: Any = tagger.model.network.body
    handle = body.bert.encoder.layer[0].output.dense.register_forward_hook(
        lambda module, inputs, output: seen.add(output.dtype) if module.training else None
    )
    tagger.learn(tiny_stream[0])
    handle.remove()
    assert seen == {torch.bfloat16}
    assert {value.dtype for value in tagger.model.network.parameters()} == {torch.float32}


def test_the_papers_preset_can_be_trained(tiny_settings: dict[str, Any], tiny_stream: TaskStream) -> None:
    config = TrainingConfig.build(
        {"encoder": tiny_settings["encoder"], "max_length": 64, "epochs": 2}, preset="paper"
    )
    tagger = ContinualTagger.from_config(config)
    for step in tiny_stream:
        tagger.learn(step)
    assert tagger.types == tiny_stream.types


def test_a_loss_that_is_not_finite_names_step_epoch_batch_and_term(
    tiny_settings: dict[str, Any], tiny_stream: TaskStream
) -> None:
    tagger = fresh(tiny_settings, optimiser="sgd", lr_encoder=1e30, lr_head=1e30, clip=None, warmup=0.0)
    told = r"not finite in step 1, epoch 1, batch \d+, term \w+\. Nothing was saved\. Lower"
    with pytest.raises(TrainingError, match=told):
        tagger.learn(tiny_stream[0])


def test_losses_are_logged_to_tensorboard(
    tiny_settings: dict[str, Any], tiny_stream: TaskStream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    monkeypatch.chdir(tmp_path)
    tagger = fresh(tiny_settings, epochs=2, trackers=("tensorboard",), select_on="new")
    state = tagger.learn(tiny_stream[0])
    tagger.learn(tiny_stream[1])
    (folder,) = {path.parent for path in (tmp_path / "runs" / "cfner").glob("events.*")}
    log = EventAccumulator(str(folder)).Reload()
    logged = [(event.step, event.value) for event in log.Scalars("step 1/dev_f1")]
    assert logged == [(n, pytest.approx(row["dev_f1"])) for n, row in enumerate(state.history, start=1)]
    assert any(tag.startswith("step 2/") for tag in log.Tags()["scalars"])


@pytest.mark.parametrize("method", ["cfner", "podnet"])
def test_frozen_layers_stay_as_they_were_and_the_rest_learns(
    method: str, tiny_settings: dict[str, Any], tiny_stream: TaskStream
) -> None:
    tagger = fresh(tiny_settings, method=method, epochs=2, freeze_layers=1)
    before = {key: value.clone() for key, value in tagger.model.network.body.state_dict().items()}
    for step in tiny_stream:
        tagger.learn(step)
    moved = {k for k, v in tagger.model.network.body.state_dict().items() if not v.equal(before[k])}
    assert moved and all(".layer.1." in key for key in moved)


def test_a_kept_lower_part_trains_as_a_computed_one(
    tiny_settings: dict[str, Any], tiny_stream: TaskStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without dropout the two ways are the same computation."""

    def trained() -> dict[str, torch.Tensor]:
        # AdamW divides by the size of a gradient, and would blow rounding up where it is nearly 0
        tagger = fresh(tiny_settings, epochs=2, freeze_layers=1, precision="fp32", optimiser="sgd")
        for module in tagger.model.network.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
        tagger.learn(tiny_stream[0])
        return tagger.model.network.state_dict()

    kept = trained()
    monkeypatch.setattr("cfner.training.loop.CachedLowerLayers", lambda *_, **__: None)
    computed = trained()
    for key, value in kept.items():
        torch.testing.assert_close(value, computed[key], atol=1e-4, rtol=1e-3)


def test_an_unknown_tracker_is_an_error(tiny_settings: dict[str, Any], tiny_stream: TaskStream) -> None:
    with pytest.raises(ConfigError, match="tensorbored"):
        fresh(tiny_settings, trackers=("tensorbored",)).learn(tiny_stream[0])


# -- several processes -------------------------------------------------------------------------------------

LAUNCHED = """
import hashlib, os, sys
from pathlib import Path
import cfner.runs.stream_run as run
from cfner.cli.main import app
from cfner.objective.matching import ScoreBank

original = run.run_stream
exchange = ScoreBank.exchange
banks = []

def noted(bank, total):
    own = bank.logits.clone()
    exchange(bank, total)
    banks.append(f"{not own.equal(bank.logits)}:{hashlib.sha256(bank.logits.numpy().tobytes()).hexdigest()}")

ScoreBank.exchange = noted

def watched(*args, **kwargs):
    result, tagger = original(*args, **kwargs)
    digest = hashlib.sha256()
    for key, value in sorted(tagger.model.network.state_dict().items()):
        digest.update(key.encode() + value.numpy().tobytes())
    state = tagger.accelerator.state
    report = f"{state.num_processes} {digest.hexdigest()} {','.join(banks)}"
    Path(os.environ["RANKS"], str(state.process_index)).write_text(report)
    return result, tagger

run.run_stream = watched
app(sys.argv[1:])
"""


def in_two_processes(folder: Path, *words: object) -> tuple[list[list[str]], dict[str, Any]]:
    """(what each process says of its weights, the results) of a command that runs in two processes."""
    script, ranks = folder / "launched.py", folder / "ranks"
    script.write_text(LAUNCHED)
    ranks.mkdir()
    # --multi_gpu is accelerate's name for "several processes here"; on CPUs they talk over gloo
    launch = "accelerate.commands.launch --multi_gpu --num_processes 2 --num_machines 1 --mixed_precision no"
    command = [warm.python(), "-m", *launch.split(), "--dynamo_backend", "no", "--main_process_port", "0"]
    extra = {"ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1", "RANKS": str(ranks)}
    done = subprocess.run(
        [*command, str(script), *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
        env={**os.environ, **extra},
    )
    assert done.returncode == 0, done.stderr[:4000]
    reports = [(ranks / str(rank)).read_text().split() for rank in (0, 1)]
    return reports, json.loads(done.stdout)  # printed by one of them only


def test_two_processes_train_one_model(
    tiny_settings: dict[str, Any], tiny_data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    flags = "--first 2 --per-step 2 --min-mentions 1 --epochs 2 --batch-size 7 --method cfner --json"
    reports, results = in_two_processes(
        tmp_path, "train", tiny_data, "--out", out, *flags.split(), "--encoder", tiny_settings["encoder"]
    )
    assert [count for count, *_ in reports] == ["2", "2"]
    assert reports[0] == reports[1]  # the same weights in both, and the same bank after each epoch
    banks = reports[0][2].split(",")
    assert len(banks) == 2 and all(bank.startswith("True:") for bank in banks)  # it had something to tell
    assert len(results["steps"]) == 2
    assert sorted(path.name for path in (out / "steps").iterdir()) == ["0001", "0002"]
    assert ContinualTagger.load(out).types == ("animal", "city", "dish", "person")


def test_two_processes_give_the_figures_of_one(
    tiny_settings: dict[str, Any], tiny_data: Path, tmp_path: Path
) -> None:
    """The default method: half a batch each is one batch, up to the words that each mean is taken over."""
    flags = "--first 2 --per-step 2 --min-mentions 1 --epochs 12 --lr-encoder 0.005 --lr-head 0.01 --json"
    words = [
        "train",
        tiny_data,
        *flags.split(),
        "--set",
        "train_embeddings=true",
        "--encoder",
        tiny_settings["encoder"],
    ]
    reports, two = in_two_processes(tmp_path, *words, "--out", tmp_path / "two", "--batch-size", 4)
    assert reports[0][1] == reports[1][1]
    alone = [*words, "--out", tmp_path / "one", "--batch-size", 8]
    done = CliRunner().invoke(app, list(map(str, alone)))
    assert done.exit_code == 0, done.output
    one = json.loads(done.stdout)
    assert one["last_micro_f1"] > 45 and two["last_micro_f1"] > 45  # both learned: at the start it is 0
    assert abs(one["last_micro_f1"] - two["last_micro_f1"]) < 12  # as far as two seeds are apart
