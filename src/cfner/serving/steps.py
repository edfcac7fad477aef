"""The steps in memory: the folder's current one, which is followed, and a few others on demand.

A separate thread loads and checks one step at a time. A new current step is loaded next, however many
requests wait for other steps. A request keeps its step, so all its texts are answered by the same one.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from cfner.errors import CfnerError
from cfner.interop.export import open_for_prediction
from cfner.serving.http_errors import busy, refusal
from cfner.serving.metrics import Metrics
from cfner.serving.pipeline import Pipeline
from cfner.serving.schemas import StepFacts
from cfner.serving.step_list import StepList, read_steps
from cfner.store.model_folder import ModelFolder
from cfner.store.open import ModelRef, is_model_folder

log = logging.getLogger("cfner.serving")
_PROBE: Final = "Ada Lovelace lived in London."
_FIRST_RETRY, _LAST_RETRY = 2.0, 300.0  # seconds before loading a failed step again
_Key = tuple[int, str]  # a step's number and hash, since a different step may get the same number


@dataclass(frozen=True, eq=False)
class ServedStep:
    number: int
    hash: str
    pipeline: Pipeline

    @property
    def key(self) -> _Key:
        return self.number, self.hash


class Steps:
    """Loads the current step; raises if it cannot be loaded."""

    def __init__(
        self,
        source: str,
        kept: int,
        metrics: Metrics,
        device: str = "auto",
        min_score: float | None = None,
        runtime: str | None = None,
    ) -> None:
        ref = ModelRef.parse(source)
        self.source, self.metrics = ref.source, metrics
        self.pinned = ref.step  # the only step to serve, whatever is current in the folder
        self._load = partial(_load, device=device, min_score=min_score, runtime=runtime)
        self.name = Path(ref.source).name or ref.source
        self.has_steps = is_model_folder(ref.source)
        self.current = self._load(ref.source, ref.step)
        self.list = self._described()
        self.problem: str | None = None
        self._kept = kept
        self._others: OrderedDict[_Key, ServedStep] = OrderedDict()  # least recently used first
        self._loading: dict[_Key, asyncio.Task[ServedStep | None]] = {}  # requested, but not in memory yet
        self._turn = asyncio.Lock()  # held by the load in progress
        self._failed: dict[int, float] = {}  # step -> when it may be tried again
        self._refused: _Key | None = None  # a current step that could not be loaded
        self._retry_after, self._retry_at = _FIRST_RETRY, 0.0
        self._loader = ThreadPoolExecutor(1, thread_name_prefix="cfner-load")
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="cfner-look")

    @property
    def facts(self) -> list[StepFacts]:
        return self.list.steps

    def _described(self) -> StepList:
        if self.has_steps:
            return read_steps(self.source)
        types = list(self.current.pipeline.model.labels.types)
        one = StepFacts(step=1, name=self.name, kind="checkpoint", hash="", types=types, learned=types)
        return StepList([one], [])

    async def get(self, number: int | None) -> ServedStep:
        """The step to answer with; loads it if it is not in memory."""
        current = self.current
        if number is None or number == current.number:
            return current
        keys = {facts.step: (facts.step, facts.hash) for facts in self.facts}
        if number not in keys:
            raise refusal(
                404, f"There is no step {number}. Steps here: {', '.join(map(str, keys)) or 'none'}."
            )
        if any(facts.pruned for facts in self.facts if facts.step == number):
            raise refusal(404, f"The weights of step {number} were removed to free the disk.")
        step = self._others.get(keys[number])
        if step is not None:
            self._others.move_to_end(keys[number])
        elif self._failed.get(number, 0.0) <= time.monotonic():
            # shielded: other requests may wait for the same step when this client disconnects
            step = await asyncio.shield(self._load_of(keys[number]))
        if step is None:
            raise refusal(503, f"Step {number} cannot be loaded; see the server's log.", retry=1)
        return step

    def _load_of(self, key: _Key) -> asyncio.Task[ServedStep | None]:
        """The shared load of this step. Loads are counted, not requests, because clients may disconnect."""
        if key not in self._loading:
            if len(self._loading) >= self._room:
                raise busy()
            self._loading[key] = asyncio.ensure_future(self._load_other(key))
        return self._loading[key]

    async def _load_other(self, key: _Key) -> ServedStep | None:
        """None if it cannot be loaded. The reason is logged here, because no client may be waiting any
        more."""
        number, _ = key
        try:
            async with (
                self._turn
            ):  # not in the thread's queue, so that a new current step does not wait behind it
                step = await self._in_thread(number)
        except Exception as error:  # an error in one step must not affect the others
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
            except Exception as error:  # whatever is wrong with the folder, the old step is still served
                before = self.problem
                self._trouble("The model folder cannot be read.")
                if self.problem != before:  # log once, not every second
                    _log_failure("the model folder cannot be read", error)

    async def look(self) -> None:
        """Load the folder's current step if it has changed."""
        loop = asyncio.get_running_loop()
        stored = await loop.run_in_executor(self._reader, ModelFolder(self.source).step, self.pinned)
        number, seen = int(stored.name), (int(stored.name), stored.hash)
        self.list = await loop.run_in_executor(self._reader, read_steps, self.source, self.list)
        for replaced in set(self._others) - self._keys:  # deleted, or a different step with the same number
            del self._others[replaced]
        if seen == self.current.key:
            self.problem = self._refused = None
            return
        if seen != self._refused:
            self._retry_after = _FIRST_RETRY
        elif time.monotonic() < self._retry_at:
            return
        try:
            fresh = await self._in_thread(number)
        except Exception as error:  # the old step is still served
            _log_failure(f"step {number} became current but cannot be loaded", error)
            self.metrics.failed_reloads.inc()
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
        if self._kept:  # for comparing with it
            self._keep(old.key, old)
        self.metrics.reloads.inc()
        log.info("now serving step %d", fresh.number)

    def _trouble(self, what: str) -> None:
        self.problem = f"{what} Step {self.current.number} is still served; see the log."

    @property
    def _room(self) -> int:
        """How many steps may be kept besides the current one; as many may be loading."""
        return max(self._kept, 1)

    @property
    def _keys(self) -> set[_Key]:
        return {(facts.step, facts.hash) for facts in self.facts}

    def _keep(self, key: _Key, step: ServedStep) -> None:
        if key not in self._keys or step.number == self.current.number:  # it changed during the load
            return
        self._others[key] = step
        self._others.move_to_end(key)
        while len(self._others) > self._room:
            self._others.popitem(last=False)

    async def _in_thread(self, number: int) -> ServedStep:
        return await asyncio.get_running_loop().run_in_executor(self._loader, self._load, self.source, number)

    def close(self) -> None:
        for load in self._loading.values():
            load.cancel()
        for thread in (self._reader, self._loader):
            thread.shutdown(wait=True, cancel_futures=True)


def _log_failure(what: str, error: Exception) -> None:
    """One line for known errors, a traceback for others."""
    log.error("%s: %s", what, error, exc_info=None if isinstance(error, CfnerError) else error)


def _load(
    source: str, number: int | None, device: str, min_score: float | None, runtime: str | None
) -> ServedStep:
    """Load a step, check its seal, and let it tag a text; a step that fails is not served."""
    if is_model_folder(source):
        # fix the step first, because the current one may change during the load
        stored = ModelFolder(source).step(number)
        chosen, seal = int(stored.name), stored.hash
        model = open_for_prediction(source, chosen, runtime, device=device)
    else:
        chosen, seal, model = 1, "", open_for_prediction(source, None, runtime, device=device)
    pipeline = Pipeline(model, min_score)
    pipeline.tag([_PROBE])
    return ServedStep(chosen, seal, pipeline)
