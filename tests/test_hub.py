"""A name on the hub is fetched there, and read as a folder of strangers is read. The hub is a small one."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
from pathlib import Path
from typing import Any

import pytest

import warm
from small_hub import SmallHub, small_hub
from strangers import ORDERS, make_checkpoint

TEXT = "ada saw the otter in new york"
NAME = "someone/tagger"


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return make_checkpoint(tmp_path / "models" / NAME, "bert", ORDERS["BIO"])


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def cfner(*arguments: str, hub: SmallHub | None, home: Path) -> subprocess.CompletedProcess[str]:
    """A process of its own: huggingface_hub reads its settings once."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
    settings = {"HF_HOME": str(home)} | ({"HF_ENDPOINT": hub.address} if hub else {"HF_HUB_OFFLINE": "1"})
    return subprocess.run(
        [warm.python(), "-m", "cfner", *arguments],
        env=kept | settings,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def answer(model: str, *, hub: SmallHub | None, home: Path) -> Any:
    done = cfner("predict", model, TEXT, "--json", hub=hub, home=home)
    assert done.returncode == 0, done.stderr
    return [json.loads(line)["entities"] for line in done.stdout.splitlines()]


def refusal(hub: SmallHub, home: Path) -> str:
    done = cfner("predict", NAME, TEXT, hub=hub, home=home)
    assert done.returncode == 2, done.stdout
    assert "Traceback" not in done.stderr
    return " ".join(done.stderr.split())


def change_config(checkpoint: Path, **values: object) -> None:
    path = checkpoint / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def test_it_answers_as_its_folder_does_and_later_without_the_hub(checkpoint: Path, home: Path) -> None:
    for unwanted in ("modeling.py", "pytorch_model.bin", "onnx/model.safetensors", "model.fp16.safetensors"):
        (checkpoint / unwanted).parent.mkdir(exist_ok=True)
        (checkpoint / unwanted).write_bytes(b"neither code nor other weights are fetched")
    expected = answer(str(checkpoint), hub=None, home=home)
    with small_hub(checkpoint.parents[1]) as hub:
        assert answer(NAME, hub=hub, home=home) == expected
        assert sorted(hub.fetched) == [
            "config.json",
            "model.safetensors",
            "tokenizer.json",
            "tokenizer_config.json",
        ]
    assert answer(NAME, hub=None, home=home) == expected


def test_a_hub_that_is_gone_does_not_matter_once_it_is_fetched(checkpoint: Path, home: Path) -> None:
    with small_hub(checkpoint.parents[1]) as hub:
        expected = answer(NAME, hub=hub, home=home)
    assert answer(NAME, hub=hub, home=home) == expected


def test_a_name_that_nobody_has(checkpoint: Path, home: Path) -> None:
    with small_hub(checkpoint.parents[1]) as hub:
        done = cfner("predict", "someone/nothing", TEXT, hub=hub, home=home)
    assert done.returncode == 2
    assert "'someone/nothing' could not be loaded" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_what_is_refused_in_a_folder_is_refused_from_the_hub(checkpoint: Path, home: Path) -> None:
    change_config(checkpoint, attn_implementation="someone/kernel")
    with small_hub(checkpoint.parents[1]) as hub:
        assert "which is third-party code" in refusal(hub, home)


class Malicious:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("executed",)


@pytest.mark.parametrize("case", ["honest", "malicious", "deep", "kernel", "adapter"])
def test_old_checkpoints_have_pickled_weights_of_which_only_tensors_are_read(
    case: str, checkpoint: Path, home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import torch
    from safetensors.torch import load_file

    monkeypatch.chdir(tmp_path)
    expected = answer(str(checkpoint), hub=None, home=home) if case == "honest" else None
    torch.save(load_file(checkpoint / "model.safetensors"), checkpoint / "pytorch_model.bin")
    (checkpoint / "model.safetensors").unlink()
    if case == "malicious":
        (checkpoint / "pytorch_model.bin").write_bytes(pickle.dumps(Malicious(), protocol=2))
    if case == "deep":
        change_config(checkpoint, num_hidden_layers=1_000_000)
    if case == "kernel":
        change_config(checkpoint, attn_implementation="someone/kernel")
    if case == "adapter":
        (checkpoint / "adapter_config.json").write_text('{"base_model_name_or_path": "someone/else"}')
    with small_hub(checkpoint.parents[1]) as hub:
        if case == "honest":
            assert answer(NAME, hub=hub, home=home) == expected
        else:
            said = {
                "malicious": "could not be loaded",
                "deep": "The setting 'num_hidden_layers' cannot be 1000000",
                "kernel": "third-party code",
                "adapter": "an adapter",
            }
            assert said[case] in refusal(hub, home)
    assert not (tmp_path / "executed").exists()
