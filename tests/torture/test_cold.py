"""The grid as users start it: interpreters of their own, cold, through accelerate and on a real Ray cluster.

`make test` runs the same in children of a warm process (test_grid_processes.py, test_training.py).
"""

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

from counts import TIMED

pytestmark = pytest.mark.skipif(not TIMED, reason="a minute of imports: make torture")

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "RAY_worker_niceness": "0"}
# a password of our own: without one, whoever starts first writes one into the user's folder
ENVIRONMENT |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}


def bench(data: Path, encoder: Path, out: Path, *more: str) -> list[dict[str, Any]]:
    """The results of a grid."""
    command = [sys.executable, "-m", "cfner", "bench", "run", "--data", str(data), "--out", str(out)]
    settings = ["--first", "2", "--per-step", "2", "--min-mentions", "1", "--epochs", "1", "--seeds", "0"]
    everything = [*command, *settings, "--encoder", str(encoder), "--methods", "cfner,finetune", *more]
    done = subprocess.run(
        everything, check=False, env=ENVIRONMENT, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert "finished: cfner, tiny FG-2-PG-2 seed 0" in done.stderr
    runs = json.loads((out / "results.json").read_text())["runs"]
    return [{key: value for key, value in run.items() if key != "measured"} for run in runs]


@pytest.fixture(scope="module")
def local(
    tiny_data: Path, tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory
) -> list[dict[str, Any]]:
    return bench(tiny_data, tiny_encoder, tmp_path_factory.mktemp("local") / "runs", "--jobs", "2")


def test_local_processes_run_a_grid(local: list[dict[str, Any]]) -> None:
    assert [(run["method"], len(run["steps"])) for run in local] == [("cfner", 2), ("finetune", 2)]


def test_a_run_may_have_several_processes(
    tiny_data: Path, tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ENVIRONMENT, "ACCELERATE_USE_CPU", "true")
    runs = bench(tiny_data, tiny_encoder, tmp_path / "runs", "--processes", "2", "--jobs", "1")
    assert [len(run["steps"]) for run in runs] == [2, 2]


def test_a_ray_cluster_gives_the_same_results(
    tiny_data: Path, tiny_encoder: Path, local: list[dict[str, Any]], tmp_path: Path
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
    cluster = subprocess.Popen([*ray, *head, *place], env=ENVIRONMENT, stdout=subprocess.DEVNULL)
    try:
        _wait_for(port, cluster)
        assert bench(tiny_data, tiny_encoder, tmp_path / "runs", "--ray", f"127.0.0.1:{port}") == local
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
