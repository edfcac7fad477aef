"""Children forked from a warm process: torch and the corpus are loaded, so each costs only its own work.

A child tells its parent what it has done through a pipe, line by line. What it told is acknowledged: it must
still be true after the child was killed.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from cfner.corpus.corpus import Corpus
from cfner.runs.stream_run import run_stream
from cfner.store.model_folder import ModelFolder
from cfner.stream.stream import TaskStream
from cfner.tagger import ContinualTagger
from cfner.training.config import TrainingConfig
from cfner.training.progress import Silent

torch.set_num_threads(1)  # a forked child has no other threads

Tell = Callable[[str], None]


@dataclass
class Child:
    """A forked process. ``lines`` are what it told so far."""

    pid: int
    pipe: int
    lines: list[str] = field(default_factory=list)
    code: int | None = None  # negative: the signal that ended it
    _rest: bytes = b""

    def read(self, until: float) -> bool:
        """Wait for more lines until that moment (of time.monotonic); False when there are none to come."""
        wait = max(0.0, until - time.monotonic())
        if not select.select([self.pipe], [], [], wait)[0]:
            return True
        part = os.read(self.pipe, 1 << 16)
        *lines, self._rest = (self._rest + part).split(b"\n")
        self.lines += [line.decode() for line in lines]
        return bool(part)

    def wait_for(self, beginning: str, seconds: float = 60.0, *, nth: int = 1) -> bool:
        """Until it tells so (for the nth time); False if it ended without."""
        until = time.monotonic() + seconds
        while sum(line.startswith(beginning) for line in self.lines) < nth:
            if time.monotonic() > until:
                self.kill()
                raise AssertionError(f"the child is silent; it told {self.lines}")
            if not self.read(until):
                return False
        return True

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        self.end()

    def end(self, seconds: float = 120.0) -> int:
        """Wait for its end; its exit code, or the negative number of the signal."""
        until = time.monotonic() + seconds
        while self.code is None:
            alive = self.read(until)
            if alive and time.monotonic() < until:
                continue
            if alive:
                os.kill(self.pid, signal.SIGKILL)
            _, status = os.waitpid(self.pid, 0)
            self.code = os.waitstatus_to_exitcode(status)
            os.close(self.pipe)
            assert not alive, f"the child did not end; it told {self.lines}"
        return self.code


def fork(work: Callable[[Tell], None]) -> Child:
    """Run ``work`` in a child; it exits with 0, or with 1 after telling the traceback."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return Child(pid, reading)
    os.close(reading)

    def tell(line: str) -> None:
        os.write(writing, line.replace("\n", " | ").encode() + b"\n")

    try:
        gc.disable()  # the parent's garbage is not the child's business
        work(tell)
        os._exit(0)
    except BaseException as error:
        tell(f"error {type(error).__name__}: {error}")
        tell(traceback.format_exc()[-3000:])
        os._exit(1)


def command(words: list[object], said: Path) -> None:
    """In a child, as from the command line; what it says as errors goes to a file."""
    from cfner.cli.main import main

    sys.argv = ["cfner", *map(str, words)]
    with said.open("w") as sys.stderr, Path(os.devnull).open("w") as sys.stdout:
        try:
            main()
        except SystemExit as end:
            sys.stderr.flush()
            os._exit(int(end.code or 0))


@dataclass(frozen=True)
class Work:
    """A run of a stream, with what a child is to do in it."""

    stream: TaskStream
    config: TrainingConfig

    @classmethod
    def of(cls, corpus: Corpus, encoder: Path, **settings: Any) -> Work:
        """Two steps of two types each, on a corpus so small that all of it takes a fraction of a second."""
        small = Corpus(corpus.name, corpus.train[:24], corpus.dev[:6], corpus.test[:6])
        stream = TaskStream.split(small, first=2, per_step=2, min_mentions=1)
        usual = {"epochs": 3, "batch_size": 4, "max_length": 32, "checkpoint_minutes": 0, "lr_encoder": 1e-3}
        return cls(stream, TrainingConfig.build({"encoder": str(encoder), **usual, **settings}))

    def run(self, out: Path, tell: Tell, progress: Silent | None = None) -> ContinualTagger:
        """Begin or go on; each saved step and each kept epoch is told as soon as it is."""
        tell_of_saving(tell)
        _, tagger = run_stream(
            self.stream, self.config, out, resume=(out / "run.json").is_file(), progress=progress
        )
        return tagger


def tell_of_saving(tell: Tell) -> None:
    """In a child: let it tell of every step saved and every epoch kept. A child is not asked to undo it."""
    from cfner.training.unfinished_step import UnfinishedStep

    add, keep = ModelFolder.add, UnfinishedStep.write_if_due

    def told_add(self: ModelFolder, write: Callable[[Path], None]) -> Any:
        tell("saving")
        step = add(self, write)
        tell(f"saved {step.name} {step.hash}")
        return step

    def told_keep(self: UnfinishedStep, *parts: Any) -> None:
        tell("keeping")
        keep(self, *parts)
        tell(f"kept {self.identity} {parts[-1].epoch}")

    ModelFolder.add = told_add  # type: ignore[method-assign]
    UnfinishedStep.write_if_due = told_keep  # type: ignore[method-assign]


def weights_of(out: Path) -> list[str]:
    """The hash of every step's weights: the seal of a step also covers how long it took."""
    folder = ModelFolder(out)
    return [folder.step(name).read_json("seal.json")["files"]["model.safetensors"] for name in folder.names()]
