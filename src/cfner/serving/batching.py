"""Compute waiting requests together, in one thread, in short batches.

The event loop owns the queue, so it needs no lock. It passes one batch at a time to the thread and awaits it.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

from starlette.exceptions import HTTPException

from cfner.network.prediction import Entity
from cfner.serving.admission import Admission, size
from cfner.serving.http_errors import busy, refusal, stopping
from cfner.serving.metrics import Metrics
from cfner.serving.settings import ServeSettings
from cfner.serving.steps import ServedStep

log = logging.getLogger("cfner.serving")
Found = tuple[Entity, ...]


@dataclass(eq=False)
class _Job:
    step: ServedStep
    texts: Sequence[str]
    answer: asyncio.Future[list[Found]]
    left: int  # size of the texts that are not in a batch yet
    due: float
    found: list[Found] = field(default_factory=list)

    def fail(self, error: Exception) -> None:
        if not self.answer.done():  # its client may have disconnected
            self.answer.set_exception(error)


_Turn = tuple[_Job, Sequence[str]]  # a request, and its texts in the current batch


class Batcher:
    def __init__(self, settings: ServeSettings, metrics: Metrics, admission: Admission) -> None:
        self.settings = settings
        self.metrics = metrics
        self.admission = admission
        self.waiting = 0
        self.waiting_characters = 0
        self.failing = False  # whether the last batch failed
        self.closing = False
        self._jobs: deque[_Job] = deque()
        self._wake = asyncio.Event()
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="cfner-tag")

    def refuse_if_full(self, length: int | None) -> None:
        """Refuse at once if the queue is full, knowing only the length of a request."""
        self._refuse_if_too_many(length or 0)
        if length is None:
            return
        try:
            self.admission.refuse_if_late(length, self._unanswered())
        except HTTPException:
            self.admission.ask(length)
            raise

    def _refuse_if_too_many(self, characters: int) -> None:
        if self.closing:
            raise stopping()
        too_long = self.waiting_characters + characters > self.settings.max_waiting_characters
        if self.waiting >= self.settings.max_waiting or (self.waiting and too_long):
            raise busy()

    @contextmanager
    def admitted(self, texts: Sequence[str]) -> Iterator[None]:
        """Reserve a place in the queue, or raise a refusal."""
        characters = sum(map(len, texts))
        self.admission.ask(size(texts))
        self._refuse_if_too_many(characters)
        self.admission.refuse_if_late(size(texts), self._unanswered())
        self.waiting += 1
        self.waiting_characters += characters
        try:
            yield
        finally:
            self.waiting -= 1
            self.waiting_characters -= characters

    async def tag(self, step: ServedStep, texts: Sequence[str]) -> list[Found]:
        """The entities of each text, all from the same step. Cancelling the call removes it from the
        queue."""
        if not texts:
            return []
        answer: asyncio.Future[list[Found]] = asyncio.get_running_loop().create_future()
        self._jobs.append(_Job(step, texts, answer, size(texts), self.admission.due(size(texts))))
        self._wake.set()
        return await answer

    async def run(self) -> None:
        """Compute batch after batch until cancelled."""
        while True:
            await self._wake.wait()
            turns = self._next_turns()
            if turns:
                await self._compute(turns)
            else:
                self._wake.clear()

    def _next_turns(self) -> list[_Turn]:
        """One batch: texts of the oldest request, filled up with other requests for the same step."""
        self._jobs = deque(self._unanswered())
        turns: list[_Turn] = []
        texts_left, characters_left = self.settings.batch_texts, self.admission.batch_size
        for job in self._jobs:
            if job.step is not self._jobs[0].step:
                continue
            taken: list[str] = []
            for text in job.texts[len(job.found) :]:
                # a first text that is too long for any batch is computed alone
                if (turns or taken) and (texts_left < 1 or size([text]) > characters_left):
                    break
                taken.append(text)
                texts_left, characters_left = texts_left - 1, characters_left - size([text])
            if taken:
                job.left -= size(taken)
                turns.append((job, taken))
            if texts_left < 1 or characters_left < 1:
                break
        return turns

    def _unanswered(self) -> list[_Job]:
        """Drop requests whose client disconnected."""
        return [job for job in self._jobs if not job.answer.done()]

    async def _compute(self, turns: list[_Turn]) -> None:
        texts = [text for _, taken in turns for text in taken]
        tag = turns[0][0].step.pipeline.tag
        self.admission.batch_begins(size(texts))
        try:
            found = await asyncio.get_running_loop().run_in_executor(self._worker, tag, texts)
        except Exception:  # the server must survive any error of the model
            self.admission.batch_ends(size(texts), failed=True)
            self.metrics.failed_batches.inc()
            self.failing = True
            if len(turns) > 1:  # only one of the requests may be the cause
                for turn in turns:
                    await self._compute([turn])
                return
            log.exception("a batch of %d texts failed", len(texts))
            detail = "The model failed on this request; see the server's log."
            turns[0][0].fail(refusal(503, detail, retry=1))
            return
        self.admission.batch_ends(size(texts))
        self.failing = False
        self.metrics.batch_texts.observe(len(texts))
        self.metrics.texts.inc(len(texts))
        self.metrics.entities.inc(sum(map(len, found)))
        rest = iter(found)
        for job, taken in turns:
            job.found += itertools.islice(rest, len(taken))
            if len(job.found) == len(job.texts) and not job.answer.done():
                job.answer.set_result(job.found)
        # a long request moves behind newer ones, so that it does not block them
        self._jobs.rotate(-1)

    async def close(self) -> None:
        """Refuse new requests and fail the waiting ones; wait for the current batch."""
        self.closing = True
        for job in self._jobs:
            job.fail(stopping())
        await asyncio.get_running_loop().run_in_executor(None, self._worker.shutdown)
