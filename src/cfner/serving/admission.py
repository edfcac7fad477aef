"""Who is let into the queue: those who will be answered soon. The others are told at once, not late.

What a request costs is estimated from its length. How long it would wait follows from what is computed now
and what waits already. Usually a request may wait ``max_wait_seconds``, or as long as it takes itself, so
that a burst gets through. When far more is asked for than can be computed, that would make everybody wait
for as long, all the time. Then a request is let in only if it can begin soon, compared with what it takes
itself, and only if nobody who is in already is answered much later for it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from cfner.serving.http_errors import busy
from cfner.serving.settings import ServeSettings

_PER_TEXT: Final = 32  # what a text costs beside its characters, in characters: its window's first and last
_PROBE: Final = "Ada Lovelace lived in London."
_CALM, _PRESSED = 1.0, 0.3  # how long a request may be expected to wait, in times that it takes itself
_COMPANY: Final = 0.3  # how much longer others may make it wait who join its batch
_MEMORY: Final = 1.0  # seconds; how far back what was asked for counts
_LEARNING: Final = 0.1  # weight of the latest batch in the pace


class Waiting(Protocol):
    """A request in the queue: what is left of it to compute, and when it should have been answered."""

    left: int
    due: float


def size(texts: Sequence[str]) -> int:
    """How much there is to compute, in characters."""
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
        """Of a model on this machine. The first calls of a model are slow, so the fastest of three counts."""

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
    """The clock of the queue. Used from the event loop only."""

    def __init__(
        self, settings: ServeSettings, cost: Cost, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.settings = settings
        self.clock = clock
        self._cost = cost
        self._pace = 1.0  # measured over estimated seconds of the latest batches
        self._calm_pace = 1.0  # the same, of batches that were computed in peace
        self._asked, self._asked_at = 0.0, clock()
        self._batch_started: float | None = None
        self._batch_seconds = 0.0

    @property
    def load(self) -> float:
        """Seconds of work that were asked for, lately, in a second; more than 1 cannot be done."""
        return self._asked * math.exp((self._asked_at - self.clock()) / _MEMORY) / _MEMORY

    @property
    def overloaded(self) -> bool:
        """Whether more is asked for than can be done, and than may wait."""
        return self.load > 1 + 2 * self.settings.max_wait_seconds

    @property
    def batch_size(self) -> int:
        """Characters that are computed in ``batch_seconds``."""
        each = self._cost.each * self._pace
        left = self.settings.batch_seconds - self._cost.fixed * self._pace
        return max(1, min(self.settings.batch_characters, int(left / each)))

    def ask(self, characters: int) -> None:
        """Count what is asked for, whether or not it is let in."""
        share = characters / self.settings.batch_characters  # of a batch that others fill up
        # one request alone is never an overload
        seconds = min(self._pace * (share * self._cost.fixed + characters * self._cost.each), _MEMORY)
        self._asked, self._asked_at = self.load * _MEMORY + seconds, self.clock()

    def due(self, characters: int) -> float:
        """When a request that comes now should be answered, if it is let in."""
        alone = self._alone(characters)
        if self.overloaded:
            return self.clock() + (1 + _PRESSED + _COMPANY) * alone
        return self.clock() + alone + max(_CALM * alone, self.settings.max_wait_seconds)

    def refuse_if_late(self, characters: int, queue: Iterable[Waiting]) -> None:
        """Raise a refusal if a request of this size could not be answered in time."""
        waiting = [job for job in queue if job.left > 0]
        if not waiting and self._batch_started is None:
            return  # nothing to do: whatever it takes, it cannot begin sooner
        now, running = self.clock(), self._rest_of_batch()
        # turns are taken, so of a longer request at most as much comes first as of this one, and a batch
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
        # one hiccup of the machine is not its pace
        pace = min(max(seconds / self._cost(characters), self._pace / 4), 4 * self._pace)
        self._pace += _LEARNING * (pace - self._pace)
        if self.load < 0.5:
            self._calm_pace += _LEARNING * (pace - self._calm_pace)

    def _alone(self, characters: int) -> float:
        """Seconds that a request takes on a server that does nothing else."""
        return self._time(characters) * (self._calm_pace / self._pace if self.overloaded else 1)

    def _time(self, characters: int) -> float:
        batches = math.ceil(characters / self.batch_size) or 1
        return self._pace * self._cost(characters, batches)

    def _rest_of_batch(self) -> float:
        if self._batch_started is None:
            return 0.0
        so_far = self.clock() - self._batch_started
        return max(self._batch_seconds - so_far, so_far / 4)  # one that takes too long takes longer still
