"""The grid's command line with workers in processes of their own (cold ones, and a real Ray: in torture)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import warm
from cfner.benchmark.backends import RayCluster
from cfner.errors import ConfigError

ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}


def bench(data: Path, encoder: Path, out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = [warm.python(), "-m", "cfner", "bench", "run", "--data", str(data), "--out", str(out)]
    settings = ["--first", "2", "--per-step", "2", "--min-mentions", "1", "--epochs", "1", "--seeds", "0"]
    everything = [*command, *settings, "--encoder", str(encoder), "--methods", "cfner,finetune", *more]
    return subprocess.run(
        everything, check=False, env=ONE_THREAD, capture_output=True, text=True, timeout=300
    )


def results(out: Path) -> list[dict[str, Any]]:
    runs = json.loads((out / "results.json").read_text())["runs"]
    return [{key: value for key, value in run.items() if key != "measured"} for run in runs]


@pytest.fixture(scope="module")
def local(tiny_data: Path, tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("local") / "runs"
    done = bench(tiny_data, tiny_encoder, out, "--jobs", "2")
    assert done.returncode == 0, done.stderr
    assert "finished: cfner, tiny FG-2-PG-2 seed 0" in done.stderr
    return out


def test_local_processes_run_a_grid(local: Path, tiny_data: Path, tiny_encoder: Path) -> None:
    assert [run["method"] for run in results(local)] == ["cfner", "finetune"]
    before = results(local)
    again = bench(tiny_data, tiny_encoder, local)
    assert again.returncode == 0 and "2 of 2 runs were finished before" in again.stderr
    assert results(local) == before


def test_a_worker_ends_with_the_grid_that_started_it(
    tiny_data: Path, tiny_encoder: Path, local: Path, tmp_path: Path
) -> None:
    """Killed without warning, the grid leaves nothing behind that would be in the way of the next start."""
    folder = next((local / "cells").iterdir())
    (tmp_path / "job.json").write_text((folder / "job.json").read_text())
    worker = [warm.python(), "-m", "cfner.benchmark.worker", str(tmp_path), "--until-stdin-ends"]
    start = f"import subprocess, time; subprocess.Popen({worker!r}, stdin=subprocess.PIPE)"
    code = f"{start}; print(); time.sleep(60)"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    parent = subprocess.Popen([sys.executable, "-u", "-c", code], env=ONE_THREAD, **pipes)
    assert parent.stdout is not None and parent.stdout.readline() == b"\n"
    parent.kill()
    assert parent.stderr is not None
    parent.stderr.read()  # ends when the last holder of the pipe does, and the worker is one
    assert not (tmp_path / "result.json").exists()


def test_a_run_may_have_several_processes(
    tiny_data: Path, tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ONE_THREAD, "ACCELERATE_USE_CPU", "true")
    done = bench(tiny_data, tiny_encoder, tmp_path / "runs", "--processes", "2", "--jobs", "1")
    assert done.returncode == 0, done.stderr
    runs = results(tmp_path / "runs")
    assert [len(run["steps"]) for run in runs] == [2, 2]
    assert runs[0]["steps"][0] == runs[1]["steps"][0]  # the first step is shared


class OneMachine:
    """What the grid asks of Ray, done here: a task is a thread, as a real cluster would give it a process."""

    exceptions = SimpleNamespace(RayError=RuntimeError)

    def __init__(self) -> None:
        self.asked: dict[str, Any] = {}
        self.threads = ThreadPoolExecutor(2)

    def init(self, **settings: Any) -> None:
        self.asked |= settings

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 2.0}

    def remote(self, **resources: Any) -> Any:
        self.asked |= resources
        return lambda work: SimpleNamespace(remote=lambda *given: self.threads.submit(work, *given))

    def wait(self, tasks: list[Any], *, num_returns: int, timeout: float) -> tuple[list[Any], list[Any]]:
        return [task for task in tasks if task.done()], [task for task in tasks if not task.done()]

    def get(self, task: Any) -> Any:
        try:
            return task.result()
        except FileNotFoundError as error:
            raise RuntimeError(str(error)) from error


def test_ray_is_asked_for_a_job_and_says_how_it_ended(
    local: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = OneMachine()
    monkeypatch.setitem(sys.modules, "ray", machine)
    monkeypatch.setattr(sys, "executable", warm.python())
    cluster = RayCluster.at("local")
    assert cluster.slots == 2 and machine.asked["num_cpus"] == 1
    done = next((local / "cells").iterdir())
    job, nowhere, codes = tmp_path / "job", tmp_path / "nowhere", {}
    job.mkdir()
    (job / "job.json").write_text((done / "job.json").read_text())
    for folder in (job, nowhere):
        cluster.start(folder)
    while len(codes) < 2:
        codes |= dict(cluster.ended())
        time.sleep(0.05)
    assert codes == {job: 0, nowhere: 1}
    assert "RUNS must be on a shared disk" in capsys.readouterr().err
    made, before = (json.loads((folder / "result.json").read_text()) for folder in (job, done))
    assert made.pop("measured") and before.pop("measured")
    assert made == before
    with pytest.raises(ConfigError, match="No machine of the cluster has 3 cores"):
        RayCluster.at("local", cores=3)


def test_a_cluster_that_is_not_there_is_an_error(tiny_data: Path, tiny_encoder: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    done = bench(tiny_data, tiny_encoder, tmp_path / "runs", "--ray", "127.0.0.1:1")
    assert done.returncode == 2 and "There is no Ray cluster at" in done.stderr
    assert "Traceback" not in done.stderr
