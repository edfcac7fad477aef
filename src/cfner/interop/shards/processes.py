"""Workers on this machine: one process and one thread each, so that bytes do not depend on their number."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, Any, Protocol, cast

from cfner.errors import CfnerError
from cfner.interop.machines import environment_for, memory_gib
from cfner.interop.shards.cutting import Shard
from cfner.interop.shards.model_source import ModelSource
from cfner.interop.shards.tagging import Failed, Refused, Settings, Tagged
from cfner.interop.shards.worker import Begin, Request, receive, send

_GIB_PER_WORKER = 2  # torch, a BERT-base and its activations
_KEPT = "Finished parts are kept: run it again to resume."


class Workers(Protocol):
    """Tag shards somewhere. ``slots``: how many shards they take at once."""

    @property
    def slots(self) -> int: ...

    def start(self, shard: Shard) -> None: ...

    def next(self) -> tuple[Shard, Tagged | Refused]:
        """Wait for a shard to be tagged; raises if one cannot be."""
        ...

    def stop(self) -> None: ...


class LocalWorkers:
    """Processes that are started when there are shards for them."""

    def __init__(self, slots: int, model: ModelSource, settings: Settings, devices: Sequence[str]) -> None:
        self.slots, self.model, self.settings, self.devices = slots, model, settings, devices
        self._shards: queue.SimpleQueue[Shard | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[tuple[Shard, Any]] = queue.SimpleQueue()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._threads: list[threading.Thread] = []
        self._waiting = 0  # shards that have no answer yet

    def start(self, shard: Shard) -> None:
        self._waiting += 1
        if self._waiting > len(self._processes) and len(self._processes) < self.slots:
            self._add()
        self._shards.put(shard)

    def next(self) -> tuple[Shard, Tagged | Refused]:
        shard, answer = self._answers.get()
        self._waiting -= 1
        if isinstance(answer, Failed):
            raise CfnerError(answer.message.strip(), where=shard.place, remedy=_KEPT)
        if isinstance(answer, int):
            how = f"was killed by signal {-answer}" if answer < 0 else f"ended with exit code {answer}"
            raise CfnerError(
                f"The worker that tagged this {how}.",
                where=shard.place,
                remedy=f"If memory ran out, use fewer workers (`workers`). {_KEPT}",
            )
        return shard, answer

    def stop(self) -> None:
        for process in self._processes:
            process.kill()  # it writes no files
            self._shards.put(None)
        for thread in self._threads:
            thread.join()

    def _add(self) -> None:
        process = subprocess.Popen(
            [sys.executable, "-m", "cfner.interop.shards.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **environment_for(1)},
            start_new_session=True,  # Ctrl+C reaches only the process that writes the files
        )
        device = self.devices[len(self._processes) % len(self.devices)]
        self._processes.append(process)
        self._threads.append(threading.Thread(target=self._hand_over, args=(process, device), daemon=True))
        self._threads[-1].start()

    def _hand_over(self, process: subprocess.Popen[bytes], device: str) -> None:
        """In a thread per worker: give it shards, and wait for its answers."""
        requests, answers = cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)
        first: tuple[Request, ...] = (Begin(self.model, device, self.settings),)
        with suppress(BrokenPipeError), process:
            while (shard := self._shards.get()) is not None:
                with suppress(BrokenPipeError):  # it has ended; it may have answered why
                    for message in (*first, shard):
                        send(requests, message)
                answer = receive(answers)
                self._answers.put((shard, process.wait() if answer is None else answer))
                first = ()


def local_workers(workers: int | None, model: ModelSource, settings: Settings, device: str) -> LocalWorkers:
    """By default a worker per GPU, or one per core while memory lasts."""
    import torch

    gpus = torch.cuda.device_count() if device in {"auto", "cuda"} else 0
    devices = [f"cuda:{number}" for number in range(gpus)] or [device]
    fits = gpus or max(1, min(os.cpu_count() or 1, memory_gib() // _GIB_PER_WORKER))
    return LocalWorkers(workers or fits, model, settings, devices)
