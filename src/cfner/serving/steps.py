"""The steps in memory: the current one, followed as the folder's pointer moves, and a few others on demand.

Loading and checking happen in a thread of their own, one step at a time. What became current is loaded next,
however many requests wait for other steps. A request holds the step that it was given, so all its texts are
answered by that one, whatever becomes current meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cfner.errors import CfnerError
from cfner.serving.http_errors import busy, unknown_step, unusable_step
from cfner.serving.metrics import Metrics
from cfner.serving.pipeline import Pipeline
from cfner.serving.schemas import StepFacts
from cfner.serving.step_list import numbers_and_hashes, read_steps
from cfner.store.model_folder import ModelFolder
from cfner.store.open import is_model_folder, open_model

log = logging.getLogger("cfner.serving")
_PROBE: Final = "Ada Lovelace lived in London."
_FIRST_RETRY, _LAST_RETRY = 2.0, 300.0  # seconds until a step that could not be loaded is tried again
_Key = tuple[int, str]  # a step's number and hash: another one may get the same number


@dataclass(frozen=True, eq=False)
class ServedStep:
    number: int
    hash: str
    pipeline: Pipeline

    @property
    def key(self) -> _Key:
        return self.number, self.hash


class Steps:
    """Made by ``Steps.open``, which loads the current step or raises why it cannot be."""

    def __init__(
        self, source: str, current: ServedStep, facts: list[StepFacts], kept: int, metrics: Metrics
    ) -> None:
        self.source = source
        self.current = current
        self.facts = facts
        self.metrics = metrics
        self.has_steps = is_model_folder(source)
        self.problem: str | None = None
        self._kept = kept
        self._others: OrderedDict[_Key, ServedStep] = OrderedDict()  # the latest used last
        self._loading: dict[_Key, asyncio.Task[ServedStep | None]] = {}  # asked for, and not in memory yet
        self._turn = asyncio.Lock()  # held by the one of them that is being loaded
        self._failed: dict[int, float] = {}  # step -> when it may be tried again
        self._refused: tuple[int, str] | None = None
        self._retry_after, self._retry_at = _FIRST_RETRY, 0.0
        self._loader = ThreadPoolExecutor(1, thread_name_prefix="cfner-load")
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="cfner-look")

    @classmethod
    def open(cls, source: str, kept: int, metrics: Metrics) -> Steps:
        current = _load(source, None)
        return cls(source, current, _describe(source, current), kept, metrics)

    async def get(self, number: int | None) -> ServedStep:
        """The step to answer with; loads it if it is not in memory."""
        current = self.current
        if number is None or number == current.number:
            return current
        key = self._described(number)
        if self._failed.get(number, 0.0) > time.monotonic():
            raise unusable_step(number)
        if key in self._others:
            self._others.move_to_end(key)
            return self._others[key]
        # shielded: others may be waiting for the same step when this client goes away
        step = await asyncio.shield(self._load_of(key))
        if step is None:
            raise unusable_step(number)
        return step

    def _described(self, number: int) -> _Key:
        for facts in self.facts:
            if facts.step == number:
                return number, facts.hash
        raise unknown_step(number, [facts.step for facts in self.facts])

    def _load_of(self, key: _Key) -> asyncio.Task[ServedStep | None]:
        """The one load of this step. Those who ask may leave, so it is the loads that are counted."""
        if key not in self._loading:
            if len(self._loading) >= self._room:
                raise busy()
            self._loading[key] = asyncio.ensure_future(self._load_other(key))
        return self._loading[key]

    async def _load_other(self, key: _Key) -> ServedStep | None:
        """None if it cannot be loaded: nobody may be left to hear why, so it is told here."""
        number, _ = key
        try:
            async with self._turn:  # not in the thread's queue, where what became current would be behind it
                step = await self._in_thread(number)
        except Exception as error:  # whatever is wrong with it, the other steps are not to suffer
            _log_failure(f"step {number} cannot be loaded", error)
            self._failed[number] = time.monotonic() + _FIRST_RETRY
            return None
        finally:
            del self._loading[key]
        self._keep(key, step)
        return step

    async def watch(self, seconds: float) -> None:
        """Follow the folder until cancelled."""
        while self.has_steps:
            await asyncio.sleep(seconds)
            try:
                await self.look()
            except Exception as error:  # whatever a damaged folder makes of us, the old step goes on
                before = self.problem
                self._trouble("The model folder cannot be read.")
                if self.problem != before:  # once, not every second
                    _log_failure("the model folder cannot be read", error)

    async def look(self) -> None:
        """Compare the folder with what is served, and load what became current."""
        loop = asyncio.get_running_loop()
        folder = ModelFolder(self.source)
        stored = await loop.run_in_executor(self._reader, folder.step)
        number, seen = int(stored.name), (int(stored.name), stored.hash)
        there = await loop.run_in_executor(self._reader, numbers_and_hashes, folder)
        described = [(facts.step, facts.hash) for facts in self.facts]
        if there != described:
            self.facts = await loop.run_in_executor(self._reader, read_steps, Path(self.source))
            for replaced in set(described) - set(there):  # gone, or another step under the same number
                self._others.pop(replaced, None)
        if seen == (self.current.number, self.current.hash):
            self.problem = self._refused = None
            return
        if seen == self._refused and time.monotonic() < self._retry_at:
            return
        if seen != self._refused:
            self._retry_after = _FIRST_RETRY
        try:
            fresh = await self._in_thread(number)
        except Exception as error:  # the old step goes on being served
            _log_failure(f"step {number} became current but cannot be loaded", error)
            self.metrics.reloads["failed"] += 1
            self._trouble(f"Step {number} is current in the folder but cannot be loaded.")
            self._refused, self._retry_at = seen, time.monotonic() + self._retry_after
            self._retry_after = min(2 * self._retry_after, _LAST_RETRY)
            return
        self._swap(fresh)

    def _swap(self, fresh: ServedStep) -> None:
        old, self.current = self.current, fresh
        self.problem = self._refused = None
        self._failed.pop(fresh.number, None)
        self._others.pop(fresh.key, None)
        if self._kept:  # the one that people compare with
            self._keep(old.key, old)
        self.metrics.reloads["ok"] += 1
        log.info("now serving step %d", fresh.number)

    def _trouble(self, what: str) -> None:
        self.problem = f"{what} Step {self.current.number} goes on being served; the log says why."

    @property
    def _room(self) -> int:
        """How many steps may be kept beside the current one, and as many may be on their way."""
        return max(self._kept, 1)

    def _keep(self, key: _Key, step: ServedStep) -> None:
        gone = key not in {(facts.step, facts.hash) for facts in self.facts}
        if gone or step.number == self.current.number:  # since its load began
            return
        self._others[key] = step
        self._others.move_to_end(key)
        while len(self._others) > self._room:
            self._others.popitem(last=False)

    async def _in_thread(self, number: int) -> ServedStep:
        return await asyncio.get_running_loop().run_in_executor(self._loader, _load, self.source, number)

    def close(self) -> None:
        for load in self._loading.values():
            load.cancel()
        for thread in (self._reader, self._loader):
            thread.shutdown(wait=True, cancel_futures=True)


def _log_failure(what: str, error: Exception) -> None:
    """One line for what we know how to say; a traceback for what we do not."""
    log.error("%s: %s", what, error, exc_info=None if isinstance(error, CfnerError) else error)


def _load(source: str, number: int | None) -> ServedStep:
    """Load a step, its seal checked, and let it tag a text: one that cannot is not served."""
    if is_model_folder(source):
        # what is current may change while it is being loaded: settle the step first
        stored = ModelFolder(source).step(number)
        chosen, seal = int(stored.name), stored.hash
        model = open_model(source, chosen)
    else:
        chosen, seal, model = 1, "", open_model(source)
    model.network.requires_grad_(False)
    pipeline = Pipeline(model)
    pipeline.tag([_PROBE])
    return ServedStep(chosen, seal, pipeline)


def _describe(source: str, current: ServedStep) -> list[StepFacts]:
    if is_model_folder(source):
        return read_steps(Path(source))
    types = list(current.pipeline.types)
    name = Path(source).name or source
    return [StepFacts(step=1, name=name, kind="checkpoint", hash="", types=types, learned=types)]
