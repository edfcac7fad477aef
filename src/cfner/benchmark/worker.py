"""Runs one job of a grid in a separate process: ``python -m cfner.benchmark.worker FOLDER``.

The folder contains ``job.json``. The worker writes ``result.json`` (with ``counts.npz`` and ``features.npz``
for a cell), or ``error.json``. While it runs, ``progress.json`` says how far it is. A stopped job resumes
where it was.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
import threading
import time
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from cfner.benchmark.cells import Cell
from cfner.benchmark.features import word_features
from cfner.errors import CfnerError, ConfigError
from cfner.files.atomic import atomic_file
from cfner.files.json_files import write_arrays, write_json, write_json_atomic
from cfner.methods.files import load_file
from cfner.runs.mentions import counts_of_run
from cfner.runs.stream_run import RunResult, run_stream
from cfner.tagger import ContinualTagger

JOB, RESULT, ERROR, PROGRESS = "job.json", "result.json", "error.json", "progress.json"
COUNTS: Final = "counts.npz"
WATCH_PARENT: Final = "--until-stdin-ends"
FIRST: Final = "first"


def progress_in(folder: Path) -> dict[str, Any]:
    """A job's last progress; empty before the first, or if a power cut damaged the file."""
    try:
        return dict(json.loads((folder / PROGRESS).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}


class FileProgress:
    """Writes the progress of the job to a file, at most once a second."""

    def __init__(self, folder: Path, steps: int) -> None:
        self.file = folder / PROGRESS
        earlier: float = progress_in(folder).get("seconds", 0.0)  # includes earlier starts of the same job
        self.began = time.monotonic() - earlier
        self.said = 0.0
        self.now: dict[str, Any] = {"steps": steps}

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    def start(self, name: str, epochs: int, batches: int) -> None:
        self.now |= {"step": name, "epochs": epochs, "batches": batches, "epoch": 0, "batch": 0}
        self._say()

    def batch(self, loss: float, sentences: int) -> None:
        self.now["batch"] += 1
        if time.monotonic() - self.said > 1.0:
            self._say()

    def epoch(self, number: int, figures: dict[str, float]) -> None:
        self.now |= {"epoch": number, "batch": 0}
        self._say()

    def end(self) -> None:
        self._say()

    def _say(self) -> None:
        self.said = time.monotonic()
        with atomic_file(self.file, flushed=False) as partial:
            write_json(partial, {**self.now, "seconds": self.seconds})


def run_job(folder: Path) -> None:
    job = json.loads((folder / JOB).read_text(encoding="utf-8"))
    for file in job["cell"]["uses"]:
        load_file(file)
    cell = Cell.from_json(job["cell"])
    stream = cell.stream(cell.source.read())
    first_only = job["kind"] == FIRST
    found = cell.first_step_key(stream) if first_only else cell.key(stream)
    if found != job["key"]:
        raise ConfigError(
            "The data, the encoder or a method's file changed since this run was planned.",
            where=str(cell.source.path),
            remedy="Start the grid again: it plans from scratch and keeps valid results.",
        )
    if first_only:
        stream = replace(stream, types_per_step=stream.types_per_step[:1], slices=stream.slices[:1])
    progress = FileProgress(folder, len(stream))
    shared = None if first_only or job["first"] is None else Path(job["first"]) / "run"
    result, tagger = run_stream(
        stream, cell.config, folder / "run", resume=True, progress=progress, keep_mentions=True, first=shared
    )
    if tagger.accelerator.is_main_process:
        _write_result(folder, job, cell, result, tagger, progress.seconds)


def _write_result(
    folder: Path, job: dict[str, Any], cell: Cell, result: RunResult, tagger: ContinualTagger, seconds: float
) -> None:
    measured = result.to_json()["measured"] | {"seconds": seconds}
    if job["kind"] == FIRST:
        write_json_atomic(folder / RESULT, {"key": job["key"], "measured": measured})
        return
    stream = result.stream
    last = stream.test_up_to(len(stream) - 1)
    sentences = sum(1 for sentence in last if len(sentence))
    write_arrays(folder / COUNTS, counts_of_run(folder / "run", stream.types_per_step, sentences))
    write_arrays(folder / "features.npz", word_features(tagger, last))
    if job["first"] is not None:  # the time of the shared first step counts for this method too
        shared = json.loads((Path(job["first"]) / RESULT).read_text(encoding="utf-8"))["measured"]
        measured["seconds"] += shared["seconds"]
        measured["peak_memory"] = max(measured["peak_memory"], shared["peak_memory"])
    run = {
        "key": job["key"],
        **result.to_json(),
        "method": cell.method,
        "parameters": cell.config.parameters,
        "labels": cell.division.labels,
        "measured": measured,
    }
    write_json_atomic(folder / RESULT, run)
    if not job["keep_models"]:
        shutil.rmtree(folder / "run")


def main(arguments: list[str]) -> int:
    folder = Path(arguments[0])
    logging.basicConfig(format="%(message)s")  # standard error is the job's log
    logging.getLogger("cfner").setLevel(logging.INFO)
    if WATCH_PARENT in arguments:
        threading.Thread(target=_end_with_parent, daemon=True).start()
    (folder / ERROR).unlink(missing_ok=True)
    try:
        run_job(folder)
    except Exception as error:  # any error is recorded, and must not stop other runs
        text = str(error) if isinstance(error, CfnerError) else f"{type(error).__name__}: {error}"
        write_json_atomic(folder / ERROR, {"error": text, "traceback": traceback.format_exc()})
        traceback.print_exc()
        return 1
    return 0


def _end_with_parent() -> None:
    """The parent holds the other end of stdin; when the parent ends for any reason, this process ends."""
    while os.read(sys.stdin.fileno(), 4096):  # not stdin.read: it would hold a lock when the worker ends
        pass
    os._exit(75)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
