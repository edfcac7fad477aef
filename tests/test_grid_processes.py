"""The grid's command line with real workers: local processes, and a real Ray cluster on this machine."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from cfner.corpus.corpus import Corpus
from cfner.corpus.writers import write_sentences

ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "RAY_worker_niceness": "0"}
# a password of our own: without one, whoever starts first writes one into the user's folder
ONE_THREAD |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}


@pytest.fixture(scope="module")
def data(tiny_corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("processes") / "tiny"
    folder.mkdir()
    for split in ("train", "dev", "test"):
        write_sentences(tiny_corpus.split_named(split), folder / f"{split}.jsonl", format="jsonl")
    return folder


def bench(data: Path, encoder: Path, out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cfner", "bench", "run", "--data", str(data), "--out", str(out)]
    settings = ["--first", "2", "--per-step", "2", "--min-mentions", "1", "--epochs", "1", "--seeds", "0"]
    everything = [*command, *settings, "--encoder", str(encoder), "--methods", "cfner,finetune", *more]
    return subprocess.run(
        everything, check=False, env=ONE_THREAD, capture_output=True, text=True, timeout=300
    )


def results(out: Path) -> list[dict[str, Any]]:
    runs = json.loads((out / "results.json").read_text())["runs"]
    return [{key: value for key, value in run.items() if key != "measured"} for run in runs]


@pytest.fixture(scope="module")
def local(data: Path, tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("local") / "runs"
    done = bench(data, tiny_encoder, out, "--jobs", "2")
    assert done.returncode == 0, done.stderr
    assert "finished: cfner, tiny FG-2-PG-2 seed 0" in done.stderr
    return out


def test_local_processes_run_a_grid(local: Path, data: Path, tiny_encoder: Path) -> None:
    assert [run["method"] for run in results(local)] == ["cfner", "finetune"]
    before = results(local)
    again = bench(data, tiny_encoder, local)
    assert again.returncode == 0 and "2 of 2 runs were finished before" in again.stderr
    assert results(local) == before


def test_a_worker_ends_with_the_grid_that_started_it(
    data: Path, tiny_encoder: Path, local: Path, tmp_path: Path
) -> None:
    """Killed without warning, the grid leaves nothing behind that would be in the way of the next start."""
    folder = next((local / "cells").iterdir())
    (tmp_path / "job.json").write_text((folder / "job.json").read_text())
    worker = [sys.executable, "-m", "cfner.benchmark.worker", str(tmp_path), "--until-stdin-ends"]
    code = f"import subprocess, time; subprocess.Popen({worker!r}, stdin=subprocess.PIPE); time.sleep(60)"
    parent = subprocess.Popen([sys.executable, "-c", code], env=ONE_THREAD, stderr=subprocess.PIPE)
    parent.kill()
    assert parent.stderr is not None
    parent.stderr.read()  # ends when the last holder of the pipe does, and the worker is one
    assert not (tmp_path / "result.json").exists()


def test_a_run_may_have_several_processes(
    data: Path, tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ONE_THREAD, "ACCELERATE_USE_CPU", "true")
    done = bench(data, tiny_encoder, tmp_path / "runs", "--processes", "2", "--jobs", "1")
    assert done.returncode == 0, done.stderr
    runs = results(tmp_path / "runs")
    assert [len(run["steps"]) for run in runs] == [2, 2]
    assert runs[0]["steps"][0] == runs[1]["steps"][0]  # the first step is shared


def test_a_ray_cluster_gives_the_same_results(
    data: Path, tiny_encoder: Path, local: Path, tmp_path: Path
) -> None:
    pytest.importorskip("ray")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ray = [sys.executable, "-m", "ray.scripts.scripts"]
    # a folder of its own, so that no other cluster of this user is touched; short, for it names sockets
    sessions = tempfile.mkdtemp(prefix="ray")
    head = ["start", "--head", f"--port={port}", "--num-cpus=2", "--include-dashboard=false", "--block"]
    place = ["--node-ip-address=127.0.0.1", f"--temp-dir={sessions}", "--disable-usage-stats"]
    cluster = subprocess.Popen([*ray, *head, *place], env=ONE_THREAD, stdout=subprocess.DEVNULL)
    try:
        _wait_for(port, cluster)
        done = bench(data, tiny_encoder, tmp_path / "runs", "--ray", f"127.0.0.1:{port}")
        assert done.returncode == 0, done.stderr
        assert results(tmp_path / "runs") == results(local)
    finally:
        cluster.terminate()
        cluster.wait(30)
        shutil.rmtree(sessions, ignore_errors=True)


def _wait_for(port: int, cluster: subprocess.Popen[bytes]) -> None:
    for _ in range(300):
        with socket.socket() as door:
            if door.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert cluster.poll() is None, "the cluster did not start"
        time.sleep(0.2)
    raise AssertionError("the cluster did not start in a minute")


def test_a_cluster_that_is_not_there_is_an_error(data: Path, tiny_encoder: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    done = bench(data, tiny_encoder, tmp_path / "runs", "--ray", "127.0.0.1:1")
    assert done.returncode == 2 and "There is no Ray cluster at" in done.stderr
    assert "Traceback" not in done.stderr
