"""Admission control: accept requests that can be answered soon, and refuse the others at once.

The cost of a request is estimated from its length, and its wait from the current batch and the queue. Usually
a request may wait ``max_wait_seconds``, or its own computing time if longer, so that bursts get through.
Under overload that would make every request wait that long. Then a request is accepted only if it can start
soon, relative to its own computing time, and does not delay queued requests much.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from cfner.serving.http_errors import busy
from cfner.serving.settings import ServeSettings

_PER_TEXT: Final = 32  # fixed cost of a text in characters, for the special tokens of its window
_PROBE: Final = "Ada Lovelace lived in London."
_CALM, _PRESSED = 1.0, 0.3  # longest expected wait, in multiples of the request's own time
_COMPANY: Final = 0.3  # how much longer requests that join its batch may make it wait
_MEMORY: Final = 1.0  # seconds over which the load is averaged
_LEARNING: Final = 0.1  # weight of the latest batch in the pace


class Waiting(Protocol):
    """A request in the queue: how much of it is left to compute, and its deadline."""

    left: int
    due: float


def size(texts: Sequence[str]) -> int:
    """The cost in characters."""
    return sum(map(len, texts)) + _PER_TEXT * len(texts)


@dataclass
class Cost:
    """Seconds that a batch takes: ``fixed``, and ``each`` for every character of its size."""

    fixed: float
    each: float

    @classmethod
    def measured(
        cls, tag: Callable[[Sequence[str]], object], clock: Callable[[], float] = time.perf_counter
    ) -> Cost:
        """Measure a model on this machine. The first calls are slow, so the fastest of three counts."""

        def seconds(texts: Sequence[str]) -> float:
            started = clock()
            tag(texts)
            return clock() - started

        one, many = [_PROBE], [_PROBE] * 16
        short, long = (min(seconds(texts) for _ in range(3)) for texts in (one, many))
        each = max((long - short) / (size(many) - size(one)), 1e-9)
        return cls(max(short - each * size(one), 0.0), each)

    def __call__(self, characters: float, batches: int = 1) -> float:
        return batches * self.fixed + characters * self.each


class Admission:
    """Estimates waiting times. Use it from the event loop only."""

    def __init__(
        self, settings: ServeSettings, cost: Cost, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.settings = settings
        self.clock = clock
        self._cost = cost
        self._pace = 1.0  # measured over estimated seconds of the latest batches
        self._calm_pace = 1.0  # the same, for batches without other load
        self._asked, self._asked_at = 0.0, clock()
        self._batch_started: float | None = None
        self._batch_seconds = 0.0

    @property
    def load(self) -> float:
        """Recent load: seconds of work requested per second; more than 1 is overload."""
        return self._asked * math.exp((self._asked_at - self.clock()) / _MEMORY) / _MEMORY

    @property
    def overloaded(self) -> bool:
        """Whether the load is more than can be computed and queued."""
        return self.load > 1 + 2 * self.settings.max_wait_seconds

    @property
    def batch_size(self) -> int:
        """The number of characters computed in ``batch_seconds``."""
        each = self._cost.each * self._pace
        left = self.settings.batch_seconds - self._cost.fixed * self._pace
        return max(1, min(self.settings.batch_characters, int(left / each)))

    def ask(self, characters: int) -> None:
        """Count a request, whether or not it is accepted."""
        share = characters / self.settings.batch_characters  # of a batch shared with other requests
        # a single request is never an overload
        seconds = min(self._pace * (share * self._cost.fixed + characters * self._cost.each), _MEMORY)
        self._asked, self._asked_at = self.load * _MEMORY + seconds, self.clock()

    def due(self, characters: int) -> float:
        """The deadline of a request that arrives now, if it is accepted."""
        alone = self._alone(characters)
        if self.overloaded:
            return self.clock() + (1 + _PRESSED + _COMPANY) * alone
        return self.clock() + alone + max(_CALM * alone, self.settings.max_wait_seconds)

    def refuse_if_late(self, characters: int, queue: Iterable[Waiting]) -> None:
        """Raise a refusal if a request of this size could not be answered in time."""
        waiting = [job for job in queue if job.left > 0]
        if not waiting and self._batch_started is None:
            return  # the server is idle: the request can start at once
        now, running = self.clock(), self._rest_of_batch()
        # requests are interleaved: of a longer one, at most this one's size and one batch are computed first
        turn = characters + self.batch_size
        answered = now + running + self._time(characters + sum(min(job.left, turn) for job in waiting))
        late = answered - self.due(characters)
        if self.overloaded:
            late += _COMPANY * self._alone(characters)
        if self.overloaded and waiting:
            all_done = now + running + self._time(characters + sum(job.left for job in waiting))
            late = max(late, all_done - min(job.due for job in waiting))
        if late > 0:
            raise busy(late)

    def batch_begins(self, characters: int) -> None:
        self._batch_started = self.clock()
        self._batch_seconds = self._pace * self._cost(characters)

    def batch_ends(self, characters: int, *, failed: bool = False) -> None:
        if self._batch_started is None or failed:
            self._batch_started = None
            return
        seconds, self._batch_started = self.clock() - self._batch_started, None
        # one slow batch does not change the pace much
        pace = min(max(seconds / self._cost(characters), self._pace / 4), 4 * self._pace)
        self._pace += _LEARNING * (pace - self._pace)
        if self.load < 0.5:
            self._calm_pace += _LEARNING * (pace - self._calm_pace)

    def _alone(self, characters: int) -> float:
        """Seconds that a request takes on an otherwise idle server."""
        return self._time(characters) * (self._calm_pace / self._pace if self.overloaded else 1)

    def _time(self, characters: int) -> float:
        batches = math.ceil(characters / self.batch_size) or 1
        return self._pace * self._cost(characters, batches)

    def _rest_of_batch(self) -> float:
        if self._batch_started is None:
            return 0.0
        so_far = self.clock() - self._batch_started
        return max(
            self._batch_seconds - so_far, so_far / 4
        )  # an overdue batch is expected to take longer still
