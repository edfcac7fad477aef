"""Stop a grid at random moments, again and again: its results must be those of a grid that nobody stopped."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from cfner.corpus.corpus import Corpus
from cfner.corpus.writers import write_sentences

STOPS = 5 if os.environ.get("CFNER_TORTURE") == "quick" else 30
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)


def _grid(data: Path, encoder: Path, out: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "cfner.cli.main", "bench", "run", "--data", str(data), "--out", str(out)]
    stream = ["--first", "2", "--per-step", "1", "--min-mentions", "1", "--seeds", "0,1", "--epochs", "3"]
    methods = ["--methods", "cfner, extendner, lucir", "--jobs", "2"]
    settings = ["--encoder", str(encoder), "--set", "checkpoint_minutes=0"]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    quiet = subprocess.DEVNULL
    return subprocess.Popen(
        [*command, *stream, *methods, *settings], env=environment, stdout=quiet, stderr=quiet
    )


def _runs(out: Path) -> list[dict[str, Any]]:
    runs = json.loads((out / "results.json").read_text())["runs"]
    return [{key: value for key, value in run.items() if key != "measured"} for run in runs]


def test_a_grid_that_is_stopped_ends_with_the_same_results(
    tiny_corpus: Corpus, tiny_encoder: Path, tmp_path: Path
) -> None:
    data = tmp_path / "tiny"
    data.mkdir()
    for split in ("train", "dev", "test"):
        write_sentences(tiny_corpus.split_named(split), data / f"{split}.jsonl", format="jsonl")
    began = time.monotonic()
    assert _grid(data, tiny_encoder, tmp_path / "calm").wait() == 0
    whole = time.monotonic() - began
    draw = random.Random(0)
    stops = 0
    stormy = tmp_path / "stormy"
    while stops < STOPS:
        grid = _grid(data, tiny_encoder, stormy)
        try:
            # short enough that a grid is stopped many times before it ends
            grid.wait(draw.uniform(0.05, 0.5) * whole)
            break
        except subprocess.TimeoutExpired:
            grid.send_signal(SIGNALS[stops % len(SIGNALS)])
            grid.wait(60)
            stops += 1
    assert stops >= min(STOPS, 3)  # or the grid ended before it was stopped at all
    assert _grid(data, tiny_encoder, stormy).wait() == 0
    assert _runs(stormy) == _runs(tmp_path / "calm")
    print(f"{stops} stops, results identical")
