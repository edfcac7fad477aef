"""Where the jobs of a grid run: processes on this machine, or a Ray cluster. Both start the same worker."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from cfner.benchmark.worker import WATCH_PARENT
from cfner.errors import ConfigError
from cfner.interop.machines import connect, environment_for, memory_gib

LOG = "log.txt"


class Backend(Protocol):
    """Starts jobs and reports when they ended. ``slots``: how many run at once."""

    slots: int

    def start(self, folder: Path) -> None: ...

    def ended(self) -> list[tuple[Path, int]]:
        """Jobs that ended since the last call, with their exit codes."""
        ...

    def stop(self) -> None:
        """Stop all jobs; they resume when the grid is started again."""
        ...


def start_worker(folder: Path, environment: dict[str, str], processes: int = 1) -> subprocess.Popen[bytes]:
    """A worker that ends with this process: it reads from a pipe that only this process holds."""
    launch = ["-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", str(processes)]
    worker = ["-m", "cfner.benchmark.worker", str(folder.resolve()), WATCH_PARENT]
    with (folder / LOG).open("ab") as log:
        return subprocess.Popen(
            [sys.executable, *(launch if processes > 1 else []), *worker],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env={**os.environ, **environment},
            start_new_session=True,  # Ctrl+C reaches the grid only, which then stops its workers
        )


@dataclass
class LocalProcesses:
    """``slots`` workers at once. With GPUs each worker gets one (or all of them, with several processes)."""

    slots: int
    threads: int
    devices: Sequence[int] = ()
    processes: int = 1
    _running: dict[Path, tuple[subprocess.Popen[bytes], int | None]] = field(default_factory=dict)

    @classmethod
    def sized(cls, jobs: int | None, processes: int = 1) -> LocalProcesses:
        """By default as many as the machine has room for: one per GPU, or one per core while memory lasts."""
        import torch

        gpus = torch.cuda.device_count()
        fits = max(1, gpus // processes) if gpus else max(1, min(os.cpu_count() or 1, memory_gib() // 3))
        slots = fits if jobs is None else jobs
        # a user who sets this variable runs something else beside the grid
        threads = int(os.environ.get("OMP_NUM_THREADS") or max(1, (os.cpu_count() or 1) // slots))
        return cls(slots, threads, range(gpus) if processes == 1 else (), processes)

    def start(self, folder: Path) -> None:
        taken = {device for _, device in self._running.values()}
        device = next((d for d in self.devices if d not in taken), None)
        process = start_worker(folder, environment_for(self.threads, device), self.processes)
        self._running[folder] = (process, device)

    def ended(self) -> list[tuple[Path, int]]:
        done = [
            (folder, process) for folder, (process, _) in self._running.items() if process.poll() is not None
        ]
        for folder, process in done:
            process.communicate()  # closes the pipe
            del self._running[folder]
        return [(folder, process.returncode) for folder, process in done]

    def stop(self) -> None:
        for process, _ in self._running.values():
            process.terminate()
        for process, _ in self._running.values():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
            process.communicate()
        self._running.clear()


@dataclass
class RayCluster:
    """One Ray task per job. Data and RUNS must be at the same paths on every machine (a shared disk)."""

    slots: int
    _ray: Any
    _task: Any
    _running: dict[Any, Path] = field(default_factory=dict)

    @classmethod
    def at(cls, address: str, *, cores: int = 1, gpus: float = 0, processes: int = 1) -> RayCluster:
        """``address``: of a running cluster, ``auto`` for the one this machine is part of, ``local`` to
        start one here. ``cores`` and ``gpus`` are what each job requests from the cluster."""
        ray = connect(address, "A grid on a Ray cluster")
        slots = int(ray.cluster_resources().get("CPU", 1) // cores)
        if gpus:
            slots = min(slots, int(ray.cluster_resources().get("GPU", 0) // gpus))
        if slots < 1:
            raise ConfigError(
                f"No machine of the cluster has {cores} cores and {gpus:g} GPUs for a job.",
                remedy="Request less with `cores` and `gpus`.",
            )
        task = ray.remote(num_cpus=cores, num_gpus=gpus, max_retries=2)(_ray_job)
        return cls(slots, ray, lambda folder: task.remote(folder, environment_for(cores), processes))

    def start(self, folder: Path) -> None:
        self._running[self._task(str(folder.resolve()))] = folder

    def ended(self) -> list[tuple[Path, int]]:
        if not self._running:
            return []
        ready, _ = self._ray.wait(list(self._running), num_returns=len(self._running), timeout=0)
        return [(self._running.pop(ref), self._exit_code(ref)) for ref in ready]

    def stop(self) -> None:
        for ref in self._running:
            self._ray.cancel(ref, force=True)
        self._running.clear()
        self._ray.shutdown()

    def _exit_code(self, ref: Any) -> int:
        try:
            return int(self._ray.get(ref))
        except self._ray.exceptions.RayError as error:  # its machine failed, or ran out of memory
            sys.stderr.write(f"{error}\n")
            return 1


def _ray_job(folder: str, environment: dict[str, str], processes: int) -> int:
    """Runs on a machine of the cluster."""
    if not Path(folder).is_dir():
        raise FileNotFoundError(f"{folder} does not exist on this machine: RUNS must be on a shared disk")
    with start_worker(Path(folder), environment, processes) as process:
        return process.wait()
