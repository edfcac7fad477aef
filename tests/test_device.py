"""What a model is computed on. There is no graphics card here: it is pretended that there are two."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from cfner.batches.loader import TokenBatch
from cfner.cli.main import main
from cfner.errors import ConfigError
from cfner.interop.export import export_model, open_for_prediction
from cfner.network.device import choose_device
from cfner.network.network import Network
from cfner.store.open import open_model
from cfner.stream.stream import TaskStream
from cfner.tagger import ContinualTagger
from cfner.training.config import TrainingConfig
from cfner.training.environment import make_accelerator, precision_used
from commands import COMMANDS

CARD = torch.device("cuda:0")


@pytest.fixture
def cards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    monkeypatch.delenv("ACCELERATE_USE_CPU", raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)


@pytest.fixture
def moved(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """What is sent where, in order; all of it stays on the processor."""
    events: list[tuple[str, Any]] = []
    place = {"at": torch.device("cpu")}

    def network_to(network: Network, device: Any) -> Network:
        events.append(("network", device))
        place["at"] = device
        return network

    def batch_to(batch: TokenBatch, device: Any, non_blocking: bool = False) -> TokenBatch:
        events.append(("batch", device))
        return batch

    monkeypatch.setattr(Network, "to", network_to)
    monkeypatch.setattr(Network, "device", property(lambda _: place["at"]))
    monkeypatch.setattr(TokenBatch, "to", batch_to)
    return events


def test_auto_prefers_a_card_then_mps_then_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert choose_device() == torch.device("cpu")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert choose_device("auto") == torch.device("mps")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert choose_device("auto") == choose_device("cuda") == CARD
    assert choose_device("cpu") == torch.device("cpu")


def test_each_of_several_processes_has_its_own_card(cards: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert choose_device("auto") == choose_device("cuda") == torch.device("cuda:1")
    assert choose_device("cuda:0") == CARD
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    assert choose_device("auto") == torch.device("cpu")


@pytest.mark.parametrize("name", ["gpu", "cuda:x", "", "cuda:2", "mps"])
def test_what_is_not_here_is_an_error_that_says_what_is(name: str, cards: None) -> None:
    with pytest.raises(ConfigError, match="cpu, cuda:0, cuda:1"):
        choose_device(name)


def test_the_model_is_there_before_its_inputs_and_results_come_back(
    cards: None, moved: list[tuple[str, Any]], two_steps: Path
) -> None:
    expected = [("network", CARD), ("batch", CARD)]
    tagger = ContinualTagger.load(two_steps)
    found = tagger.predict("today ada saw the badger in new york")
    assert tagger.device == CARD and found.entities
    assert moved[0] == expected[0] and set(moved[1:]) == {expected[1]}
    del moved[:]
    assert open_model(two_steps, device="cuda:1").network.device == torch.device("cuda:1")
    assert moved == [("network", torch.device("cuda:1"))]


COMPUTING = {
    "predict": ["predict", "{model}", "ada", "--out", "{tmp}/found.jsonl"],
    "evaluate": ["evaluate", "{model}", "{data}", "--json"],
    "calibrate": ["calibrate", "{model}", "{data}/dev.txt", "--json"],
    "diff": ["diff", "{model}", "{data}", "--json"],
    "check": ["check", "{data}", "--model", "{model}", "--old-labels", "use", "--no-timing", "--json"],
    "explain": ["explain", "{model}", "{data}"],
    "learn": ["learn", "{model}", "{data}", "--out", "{tmp}/out", "--old-labels", "use"],
    "train": ["train", "{data}", "--out", "{tmp}/out", "--min-mentions", "1", "--encoder", "{encoder}"],
    "demo": ["demo", "--size", "20", "--out", "{tmp}/out", "--encoder", "{encoder}"],
    "serve": ["serve", "{model}"],
    "bench run": ["bench", "run", "--data", "{data}", "--out", "{tmp}/out", "--min-mentions", "1"],
    "consolidate": ["consolidate", "{model}", "{data}/train.txt", "--out", "{tmp}/out"],
    "bench yardstick": ["bench", "yardstick", "{tmp}"],
    "bench league": ["bench", "league", "--data", "{data}", "--out", "{tmp}/out"],
    "bench reproduce": ["bench", "reproduce", "figure-tsne", "--data", "{data}", "--out", "{tmp}/out"],
}


def test_every_command_that_computes_takes_a_device() -> None:
    assert {path for path, flags in COMMANDS.items() if "--device" in flags} == set(COMPUTING)


Say = Callable[..., str]


@pytest.fixture
def say(
    two_steps: Path,
    tiny_data: Path,
    tiny_encoder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Say:
    places = {"model": two_steps, "data": tiny_data, "encoder": tiny_encoder, "tmp": tmp_path}

    def run(command: str, device: str) -> str:
        words = [word.format(**places) for word in COMPUTING[command]]
        monkeypatch.setattr(sys, "argv", ["cfner", *words, "--device", device])
        try:
            main()
        except SystemExit as end:
            assert end.code in (0, 2)
        said = capsys.readouterr()
        return said.out + said.err

    return run


@pytest.mark.parametrize("command", ["predict", "evaluate", "diff", "check"])
def test_the_device_is_chosen_and_reported(
    command: str, say: Say, cards: None, moved: list[tuple[str, Any]]
) -> None:
    said = say(command, "cuda:1")
    assert moved[0] == ("network", torch.device("cuda:1"))
    assert ("batch", torch.device("cuda:1")) in moved and ("batch", torch.device("cpu")) not in moved
    assert ("tagged on cuda:1" in said) if command == "predict" else json.loads(said)["device"] == "cuda:1"


@pytest.mark.parametrize(
    "command",
    [command for command in COMPUTING if not command.startswith("bench") and command != "explain"],
)
def test_a_device_that_is_not_here_is_refused(command: str, say: Say) -> None:
    assert "Error: The device 'cuda:7' is not available. Available: cpu" in say(command, "cuda:7")


def test_training_is_where_the_model_is(tiny_encoder: Path, tiny_stream: TaskStream, tmp_path: Path) -> None:
    tagger = ContinualTagger.from_pretrained(str(tiny_encoder), epochs=1, device="cpu")
    record = tagger.learn(tiny_stream[0])
    assert tagger.accelerator.device == tagger.device == torch.device("cpu")
    assert record.facts["device"] == "cpu"


def test_accelerate_is_told_what_was_chosen(cards: None, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[bool, str | None]] = []

    class Accelerator:
        log_with = ()

        def __init__(self, *, cpu: bool, **_: Any) -> None:
            import os

            told.append((cpu, os.environ.get("ACCELERATE_TORCH_DEVICE")))

    monkeypatch.setattr("cfner.training.environment.Accelerator", Accelerator)
    for device in ("cpu", "cuda:1"):
        make_accelerator(TrainingConfig(device=device, precision="fp32"))
    assert told == [(True, None), (False, "cuda:1")]


def test_precision_is_that_of_the_chosen_device(cards: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: True)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
    assert precision_used(TrainingConfig(device="cuda")) == "bf16"
    assert precision_used(TrainingConfig(device="cpu")) == "fp32"


def test_the_device_is_the_users_alone(tiny_encoder: Path, tiny_stream: TaskStream, tmp_path: Path) -> None:
    tagger = ContinualTagger.from_pretrained(str(tiny_encoder), epochs=1, device="cpu")
    tagger.learn(tiny_stream[0])
    tagger.save(tmp_path / "model")
    assert ContinualTagger.load(tmp_path / "model").config.device == "auto"
    assert "device" not in tagger.config.what_matters()


def test_onnx_is_computed_on_the_processor(two_steps: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot run on 'cuda'"):
        open_for_prediction(two_steps, runtime="onnx", device="cuda")
    pytest.importorskip("onnxruntime")
    export_model(two_steps, tmp_path / "onnx", "onnx")
    with pytest.raises(ConfigError, match="cannot run on 'mps'"):
        open_for_prediction(tmp_path / "onnx", device="mps")
    assert open_for_prediction(tmp_path / "onnx").network.device == torch.device("cpu")
