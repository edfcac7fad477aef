"""Runs a grid: jobs go to a backend as slots become free; a failed job does not stop the others."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from cfner.benchmark.backends import LOG, Backend
from cfner.benchmark.grid import GridFolder, Job
from cfner.benchmark.worker import ERROR, RESULT
from cfner.files.json_files import write_json_atomic
from cfner.files.lock import locked

_LOOK_EVERY = 0.25  # seconds


@dataclass
class Standing:
    """The state of a grid, for a live view."""

    slots: int
    waiting: list[Job]
    running: dict[Path, Job] = field(default_factory=dict)
    finished: list[Job] = field(default_factory=list)
    failed: list[Job] = field(default_factory=list)
    took: list[float] = field(default_factory=list)  # seconds of the finished ones
    began: dict[Path, float] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return len(self.waiting) + len(self.running) + len(self.finished) + len(self.failed)

    def seconds_left(self) -> float | None:
        """From the mean time of finished jobs; None before the first has finished."""
        if not self.took:
            return None
        mean = sum(self.took) / len(self.took)
        now = time.monotonic()
        running = sum(max(0.0, mean - (now - self.began[folder])) for folder in self.running)
        return (running + mean * len(self.waiting)) / self.slots


class Watcher(Protocol):
    def look(self, standing: Standing) -> None: ...

    def ended(self, job: Job, error: str | None) -> None: ...


def run_grid(folder: GridFolder, jobs: Sequence[Job], backend: Backend, watcher: Watcher) -> Standing:
    """Run the jobs that are left. Results are written whenever a cell ends."""
    standing = Standing(backend.slots, list(jobs))
    with locked(folder.path):
        folder.write_results()
        try:
            while standing.waiting or standing.running:
                _start_what_can(standing, backend)
                watcher.look(standing)
                for place, code in backend.ended():
                    _end(standing, place, code, watcher)
                    folder.write_results()
                time.sleep(_LOOK_EVERY)
        finally:
            backend.stop()
            folder.write_results()
    watcher.look(standing)
    return standing


def _start_what_can(standing: Standing, backend: Backend) -> None:
    for job in list(standing.waiting):
        if len(standing.running) >= backend.slots:
            return
        if job.needs is not None and not (job.needs / RESULT).is_file():
            continue
        standing.waiting.remove(job)
        standing.running[job.folder] = job
        standing.began[job.folder] = time.monotonic()
        backend.start(job.folder)


def _end(standing: Standing, place: Path, code: int, watcher: Watcher) -> None:
    job = standing.running.pop(place)
    began = standing.began.pop(place)
    if code == 0 and (place / RESULT).is_file():
        standing.finished.append(job)
        standing.took.append(time.monotonic() - began)
        watcher.ended(job, None)
        return
    error = _error_of(job, code)
    told = f"The first step, which it shares with others, failed: {error}"
    left = [other for other in standing.waiting if other.needs == place]
    standing.waiting = [other for other in standing.waiting if other.needs != place]
    for other in left:
        write_json_atomic(other.folder / ERROR, {"error": told, "traceback": ""})
    for failed, why in ((job, error), *((other, told) for other in left)):
        standing.failed.append(failed)
        watcher.ended(failed, why)


def _error_of(job: Job, code: int) -> str:
    """The error that the worker wrote; if it could not, its exit code and last lines of output."""
    file = job.folder / ERROR
    if not file.is_file():
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        log = job.folder / LOG
        last = log.read_text(encoding="utf-8", errors="replace").splitlines()[-3:] if log.is_file() else []
        write_json_atomic(file, {"error": f"The worker {how}. {' / '.join(last)}".strip(), "traceback": ""})
    return str(json.loads(file.read_text(encoding="utf-8"))["error"])
