"""Who is let in, by a clock of our own: the whole queue in virtual time, so that every figure is exact."""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from starlette.exceptions import HTTPException

from cfner.serving.admission import Admission, Cost, size
from cfner.serving.settings import ServeSettings


@dataclass
class Job:
    left: int
    due: float
    came: float
    size: int


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Queue:
    """What the batcher does, with a pretended model: ``truth`` is what a batch really takes."""

    def __init__(self, cost: Cost, truth: Cost | None = None, **settings: float) -> None:
        self.clock = Clock()
        self.truth = truth or cost
        self.admission = Admission(ServeSettings(**settings), cost, self.clock)  # type: ignore[arg-type]
        self.jobs: deque[Job] = deque()
        self.taken: list[tuple[Job, int]] = []
        self.ends = 0.0
        self.times: list[tuple[float, float, float]] = []  # (arrival, seconds to the answer, seconds alone)
        self.refused = 0

    def run(self, arrivals: list[tuple[float, int]]) -> None:
        heapq.heapify(arrivals)
        while arrivals or self.taken or self.jobs:
            if self.taken and (not arrivals or self.ends <= arrivals[0][0]):
                self.clock.now = self.ends
                self._end()
            elif arrivals:
                self.clock.now, characters = heapq.heappop(arrivals)
                self._come(characters)
            if not self.taken and self.jobs:
                self._begin()

    def _come(self, characters: int) -> None:
        self.admission.ask(characters)
        try:
            self.admission.refuse_if_late(characters, self.jobs)
        except HTTPException:
            self.refused += 1
            return
        self.jobs.append(Job(characters, self.admission.due(characters), self.clock.now, characters))

    def _begin(self) -> None:
        room = self.admission.batch_size
        for job in self.jobs:
            part = min(job.left, room)
            if part:
                self.taken.append((job, part))
                job.left, room = job.left - part, room - part
        total = sum(part for _, part in self.taken)
        self.admission.batch_begins(total)
        self.ends = self.clock.now + self.truth(total)

    def _end(self) -> None:
        self.admission.batch_ends(sum(part for _, part in self.taken))
        self.jobs.rotate(-1)
        for job, _ in self.taken:
            if not job.left:
                self.times.append((job.came, self.clock.now - job.came, self._alone(job.size)))
                self.jobs.remove(job)
        self.taken = []

    def _alone(self, characters: int) -> float:
        return self.truth(characters, -(-characters // self.admission.batch_size))


SLOW = Cost(0.002, 0.00005)  # 1,000 characters take 52 ms, nearly all of it for the characters
STEADY = Cost(0.030, 0.000002)  # as on a graphics card: 1,000 characters take 32 ms, 10,000 take 50 ms


def arrivals(per_second: float, seconds: float, sizes: list[int], seed: int = 0) -> list[tuple[float, int]]:
    chance, at, found = random.Random(seed), 0.0, []
    while (at := at + chance.expovariate(per_second)) < seconds:
        found.append((at, chance.choice(sizes)))
    return found


@pytest.mark.parametrize("pace", [0.5, 1.0, 1.9])
@pytest.mark.parametrize("sizes", [[1000], [200, 1000, 3000]])
@pytest.mark.parametrize("cost", [SLOW, STEADY])
def test_overloaded_tenfold_99_of_100_are_answered_in_twice_their_time(
    cost: Cost, sizes: list[int], pace: float
) -> None:
    truth = Cost(cost.fixed * pace, cost.each * pace)
    queue = Queue(cost, truth)
    mean = sum(sizes) / len(sizes)
    # enough in peace to learn the pace, then ten times what a full batch gets done
    calm = [(number * 0.5, 1000) for number in range(60)]
    most = queue.admission.batch_size
    capacity = most / truth(most) / mean
    queue.run([*calm, *((31 + at, characters) for at, characters in arrivals(10 * capacity, 20, sizes))])
    assert queue.refused > 20 * capacity * 7
    assert max(taken for _, taken, _ in queue.times) < 1.2  # of those who came before it was overloaded
    later = [(taken, alone) for at, taken, alone in queue.times if at > 32]
    slowdown = sorted(taken / alone for taken, alone in later)
    assert slowdown[int(0.99 * len(slowdown))] <= 2
    assert sum(alone for _, alone in later) > 0.7 * 19  # and it was not idle meanwhile


@pytest.mark.parametrize("cost", [SLOW, STEADY])
def test_at_half_the_capacity_nobody_is_refused(cost: Cost) -> None:
    queue = Queue(cost)
    queue.run(arrivals(0.5 / cost(1000), 120, [1000]))
    assert queue.refused == 0
    assert max(taken for _, taken, _ in queue.times) < 0.7


def test_a_burst_gets_through_and_waits_half_a_second_at_most() -> None:
    queue = Queue(SLOW)
    queue.run([(number * 1e-4, 1000) for number in range(9)])
    assert queue.refused == 0
    queue = Queue(SLOW)
    queue.run([(number * 1e-4, 1000) for number in range(500)])
    assert queue.refused > 450
    assert max(taken for _, taken, _ in queue.times) < 0.7


def test_a_short_request_does_not_wait_for_a_long_one() -> None:
    queue = Queue(SLOW)
    queue.run([(0.0, 200_000), *((1.0 + number, 200) for number in range(5))])  # the first takes ten seconds
    assert queue.refused == 0
    assert sorted(taken for _, taken, _ in queue.times)[-2] < 1


def test_an_idle_server_refuses_nobody() -> None:
    """Also when it was overloaded a moment ago, or has become slower than it ever was."""
    queue = Queue(SLOW, Cost(0.2, 0.005))
    queue.run(arrivals(1000, 3, [1000]))
    queue.admission.refuse_if_late(1_000_000, [])


def test_a_refusal_says_when_to_come_back() -> None:
    queue = Queue(SLOW)
    queue.admission.batch_begins(500_000)
    with pytest.raises(HTTPException) as refusal:
        queue.admission.refuse_if_late(100, [])
    assert 20 <= int((refusal.value.headers or {})["Retry-After"]) <= 26


def test_costs_are_measured() -> None:
    clock, slowness = Clock(), [5.0, 1.0, 3.0] * 2  # of three calls the fastest counts

    def tag(texts: Sequence[str]) -> None:
        clock.now += slowness.pop() * SLOW(size(texts))

    cost = Cost.measured(tag, clock)
    assert not slowness
    assert (cost.fixed, cost.each) == pytest.approx((SLOW.fixed, SLOW.each))
