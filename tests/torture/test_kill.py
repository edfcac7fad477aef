"""Kill a training run at random moments, again and again; it must always go on, and end where it would have.

Short by default (`make torture QUICK=1`); `make torture` kills more often.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cfner.corpus.corpus import Corpus
from cfner.corpus.writers import write_sentences
from cfner.model.store import ModelFolder

KILLS = 10 if os.environ.get("CFNER_TORTURE") == "quick" else 100


def _command(data: Path, out: Path, encoder: str) -> list[str]:
    settings = [
        "--set",
        "checkpoint_minutes=0",
        "--set",
        "max_length=32",
        "--epochs",
        "4",
        "--min-mentions",
        "1",
    ]
    stream = ["--first", "2", "--per-step", "1", "--encoder", encoder, "--resume", "--json"]
    return [sys.executable, "-m", "cfner.cli.main", "train", str(data), "--out", str(out), *stream, *settings]


def _weights(out: Path) -> list[str]:
    """The hash of every step's weights: the seal of a step also covers how long it took."""
    folder = ModelFolder(out)
    return [folder.step(name).read_json("seal.json")["files"]["model.safetensors"] for name in folder.names()]


@pytest.fixture
def data(tiny_corpus: Corpus, tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    for split in ("train", "dev", "test"):
        write_sentences(getattr(tiny_corpus, split), folder / f"{split}.conll")
    return folder


def test_a_killed_run_always_goes_on(data: Path, tiny_encoder: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    undisturbed = tmp_path / "undisturbed"
    started = time.monotonic()
    subprocess.run(
        _command(data, undisturbed, str(tiny_encoder)), check=True, capture_output=True, env=environment
    )
    duration = time.monotonic() - started
    moments, kills, round_ = random.Random(0), 0, 0
    while kills < KILLS:
        round_ += 1
        out = tmp_path / f"killed-{round_}"
        while True:
            run = subprocess.Popen(
                _command(data, out, str(tiny_encoder)),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
            )
            try:
                # most of a run is imports; aim at what comes after them
                _, errors = run.communicate(timeout=duration * moments.uniform(0.4, 1.0))
            except subprocess.TimeoutExpired:
                run.send_signal(signal.SIGKILL)
                run.communicate()
                kills += 1
                if ModelFolder(out).exists():
                    ModelFolder(out).verify(ModelFolder(out).step())  # what was acknowledged is whole
                continue
            assert run.returncode == 0, errors.decode()
            break
        assert _weights(out) == _weights(undisturbed)
        kept = json.loads((out / "results.json").read_text())["runs"][0]
        fresh = json.loads((undisturbed / "results.json").read_text())["runs"][0]
        assert {k: v for k, v in kept.items() if k != "measured"} == {
            k: v for k, v in fresh.items() if k != "measured"
        }
