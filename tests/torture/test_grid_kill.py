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

import warm
from cfner.corpus.corpus import Corpus
from cfner.corpus.writers import write_sentences
from counts import TIMED, tell, times

STOPS = times(30, quick=2, short=1)
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)


def _grid(data: Path, encoder: Path, out: Path) -> subprocess.Popen[bytes]:
    python = sys.executable if TIMED else warm.python()
    command = [python, "-m", "cfner", "bench", "run", "--data", str(data), "--out", str(out)]
    stream = ["--first", "2", "--per-step", "1", "--min-mentions", "1", "--seeds", "0,1", "--epochs", "3"]
    methods = ["--methods", "cfner, extendner, lucir", "--jobs", "2"]
    settings = ["--encoder", str(encoder), "--set", "checkpoint_minutes=0"]
    # a shell that runs the tests in its background lets them, and so the grid, ignore it
    signal.signal(signal.SIGINT, signal.default_int_handler)
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    return subprocess.Popen(
        [*command, *stream, *methods, *settings],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
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
    stops = grids = 0
    while stops < STOPS:  # a grid that ended in spite of all is followed by another
        stormy = tmp_path / f"stormy-{grids}"
        while stops < STOPS and not _ends(
            _grid(data, tiny_encoder, stormy), draw.uniform(0.05, 0.4) * whole, stops
        ):
            stops += 1
        assert _grid(data, tiny_encoder, stormy).wait() == 0
        assert _runs(stormy) == _runs(tmp_path / "calm")
        grids += 1
    tell(f"{stops} stops of {grids} grids, all results identical to those of one that nobody stopped")


def _ends(grid: subprocess.Popen[bytes], seconds: float, number: int) -> bool:
    """Whether it ended before its time was up; if not, it is stopped, each time in another way."""
    try:
        grid.wait(seconds)
        return True
    except subprocess.TimeoutExpired:
        grid.send_signal(SIGNALS[number % len(SIGNALS)])
        grid.wait(60)
        return False
