"""Files tagged on a real Ray cluster of several nodes, one of which is killed while it works."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from counts import TIMED

psutil = pytest.importorskip("psutil")  # accelerate requires it; it has no types

ENVIRONMENT = {
    **os.environ,
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "RAY_raylet_start_wait_time_s": "120",
    "RAY_health_check_period_ms": "1000",  # a dead node is found after five seconds
}
FILES, TEXTS = 16, 800  # in each file


@pytest.mark.skipif(not TIMED, reason="more than a minute: make torture")
def test_a_node_dies_and_nothing_is_lost_or_doubled(two_steps: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    texts = tmp_path / "texts"
    texts.mkdir()
    for name in range(FILES):
        lines = ({"id": f"{name}-{n}", "text": "today ada saw the badger in oslo"} for n in range(TEXTS))
        (texts / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    words = [sys.executable, "-m", "cfner", "predict", str(two_steps), str(texts / "*.jsonl"), "--out"]
    with cluster() as (address, nodes):
        out = tmp_path / "cluster"
        run = subprocess.Popen(
            [*words, str(out), "--on", "ray", "--address", address],
            env=ENVIRONMENT,
            stderr=subprocess.PIPE,
            text=True,
        )
        until = time.monotonic() + 120
        while not (len(list(out.glob("*.jsonl"))) > 2 and is_tagging(nodes[0])):
            assert run.poll() is None and time.monotonic() < until, run.communicate()[1]
            time.sleep(0.02)
        kill(nodes[0])
        finished = len(list(out.glob("*.jsonl")))
        said = run.communicate(timeout=120)[1]
    assert run.returncode == 0, said
    assert f"{FILES * TEXTS} sentences of {FILES} files tagged" in said
    assert finished < FILES - 4  # most of the work was done after it
    subprocess.run([*words, str(tmp_path / "here"), "--workers", "1"], env=ENVIRONMENT, check=True)
    for name in range(FILES):
        there = (out / f"{name}.jsonl").read_bytes()
        assert there == (tmp_path / "here" / f"{name}.jsonl").read_bytes()
        assert [json.loads(line)["id"] for line in there.splitlines()] == [
            f"{name}-{n}" for n in range(TEXTS)
        ]


def is_tagging(node: subprocess.Popen[bytes]) -> bool:
    """Ray gives a process the name of its task."""
    with suppress(psutil.Error):
        return any(
            "_tag" in " ".join(one.cmdline()) for one in psutil.Process(node.pid).children(recursive=True)
        )
    return False


def kill(node: subprocess.Popen[bytes]) -> None:
    """All processes of a node at once, as if its machine had lost power."""
    parts = psutil.Process(node.pid).children(recursive=True)
    for part in (*parts, psutil.Process(node.pid)):
        with suppress(psutil.NoSuchProcess):
            part.kill()
    assert not psutil.wait_procs(parts, timeout=20)[1]


@contextmanager
def cluster() -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """The address of a head without cores, and two nodes with one core each: processes of their own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"127.0.0.1:{port}"
    # a folder of its own, so that no other cluster of this user is touched; short, for it names sockets
    sessions = tempfile.mkdtemp(prefix="ray")
    usual = ["--node-ip-address=127.0.0.1", "--object-store-memory=80000000", "--disable-usage-stats"]
    processes: list[subprocess.Popen[bytes]] = []

    def start(*words: str) -> None:
        ray = [sys.executable, "-m", "ray.scripts.scripts", "start", *words, *usual, "--block"]
        process = subprocess.Popen(ray, env=ENVIRONMENT, stdout=subprocess.PIPE, start_new_session=True)
        processes.append(process)
        assert process.stdout is not None
        assert any(b"Ray runtime started" in line for line in process.stdout), "a node did not start"

    try:
        start(
            "--head", f"--port={port}", "--num-cpus=0", "--include-dashboard=false", f"--temp-dir={sessions}"
        )
        start(f"--address={address}", "--num-cpus=1")
        start(f"--address={address}", "--num-cpus=1")
        yield address, processes[1:]
    finally:
        for process in reversed(processes):
            try:
                os.killpg(process.pid, signal.SIGTERM)
                process.wait(20)
            except ProcessLookupError:
                pass
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
        shutil.rmtree(sessions, ignore_errors=True)
