"""One seed, one model: whatever the hash seed of the process and the number of loader workers."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from cfner.corpus.corpus import Corpus
from cfner.runs.stream_run import run_stream
from cfner.store.model_folder import ModelFolder
from cfner.training.progress import Silent
from cfner.training.unfinished_step import FILE
from children import Work, fork, weights_of
from counts import tell, times

REPETITIONS = times(20, quick=2, short=0)

RUN = """
import json, sys
from pathlib import Path
from cfner.cli.main import app
from cfner.tagger import ContinualTagger
data, out, encoder, workers = sys.argv[1:]
settings = [x for pair in ("max_length=32", f"workers={workers}") for x in ("--set", pair)]
stream = ["--first", "2", "--per-step", "2", "--min-mentions", "1", "--epochs", "2", "--encoder", encoder]
app(["train", data, "--out", out, "--json", *stream, *settings], standalone_mode=False)
texts = ["alan turing saw the heron in oslo", "a stew with emmy and old kurt"]
found = ContinualTagger.load(out).predict(texts)
Path(out, "predictions").write_text(repr(found))
"""


def _bits(out: Path) -> dict[str, Any]:
    results = json.loads((out / "results.json").read_text())["runs"][0]
    folder = ModelFolder(out)
    return {
        "weights": weights_of(out),
        "results": {key: value for key, value in results.items() if key != "measured"},
        "manifest": json.loads((out / "run.json").read_text())["manifest"]["hash"],
        "labels": [folder.step(name).read_json("labels.json") for name in folder.names()],
        "histories": [folder.step(name).read_json("step.json")["history"] for name in folder.names()],
        "predictions": hashlib.sha256((out / "predictions").read_bytes()).hexdigest(),
    }


@pytest.mark.skipif(not REPETITIONS, reason="a minute of imports: make torture")
def test_repetitions_do_not_differ_in_a_bit(tiny_data: Path, tiny_encoder: Path, tmp_path: Path) -> None:
    first: dict[str, Any] | None = None
    for number in range(REPETITIONS):
        out = tmp_path / f"run-{number}"
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": str(number * 7919)}
        workers = str(number % 3)
        done = subprocess.run(
            [sys.executable, "-c", RUN, str(tiny_data), str(out), str(tiny_encoder), workers],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        bits = _bits(out)
        first = first or bits
        assert bits == first, f"PYTHONHASHSEED={number * 7919}, workers={workers}"
        shutil.rmtree(out)
    tell(f"{REPETITIONS} repetitions, 0 differing bits")


def test_loader_workers_make_no_difference(tiny_corpus: Corpus, tiny_encoder: Path, tmp_path: Path) -> None:
    """The same, forked from one process: only the hash seed is the same throughout."""
    found = []
    for workers in range(3):
        work, out = Work.of(tiny_corpus, tiny_encoder, workers=workers), tmp_path / f"workers-{workers}"
        child = fork(lambda told, w=work, o=out: w.run(o, told) and None)
        assert child.end() == 0, child.lines
        found.append(weights_of(out))
    assert found[0] == found[1] == found[2]


class Stops(Silent):
    """Stops after so many epochs, counted over all steps."""

    def __init__(self, epochs: int | None = None) -> None:
        self.left = epochs

    def epoch(self, number: int, figures: dict[str, float]) -> None:
        if self.left is not None:
            self.left -= 1
            if not self.left:
                raise KeyboardInterrupt


@pytest.mark.parametrize("steps_done", [0, 1])
def test_a_changed_number_of_threads_is_recorded_and_warned_of(
    steps_done: int,
    tiny_corpus: Corpus,
    tiny_encoder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    work, out = Work.of(tiny_corpus, tiny_encoder), tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        stopping = Stops(steps_done * work.config.epochs + 2)
        run_stream(work.stream, work.config, out, progress=stopping)
    assert (out / FILE).is_file() and len(ModelFolder(out).names()) == steps_done
    before = torch.get_num_threads()
    monkeypatch.setattr(torch, "get_num_threads", lambda: before + 1)
    run_stream(work.stream, work.config, out, resume=True)
    assert any(f"with {before + 1} thread(s), started with {before}" in said for said in caplog.messages)
    recorded = ModelFolder(out).step(steps_done + 1).read_json("step.json")
    assert recorded["threads"] == [before, before + 1]
    assert recorded["versions"]["threads"] == before + 1
    caplog.clear()
    run_stream(work.stream, work.config, out, resume=True)
    assert "thread" not in caplog.text
