"""The power of a guard: the smallest loss that it would detect, and how many mentions it would need.

Cases are simulated from the guard's own predictions. Before and after are swapped at random, so that nothing
is lost but the two models differ as much as in reality. Then mentions that the new model found are turned
into misses, in random order, until the verdict is *lost*.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log10

import numpy as np
import numpy.typing as npt

from cfner.evaluation.intervals import NONE_SEEN, Floats, f1_of
from cfner.evaluation.randomisation import TIE, share_reached, spread, standardised

Ints = npt.NDArray[np.int64]

CASES = 100
SEEN_IN = 0.8  # of the cases
CHANCE = 0.05
_SWAPS = 500
_TWO_SIDED, _ONE_SIDED = 1.96, 0.84  # of the normal distribution: a 95 % interval, and 80 % of the cases


@dataclass(frozen=True)
class Power:
    """``seen``: the smallest loss that is detected in 80 % of the cases; None if not even a complete loss is.
    ``mentions``: about how many mentions are needed so that a type without loss is *kept* in 80 % of the
    cases; None if the limit is 0.
    """

    seen: float | None
    mentions: int | None


def power(before: Floats, after: Floats, others: Floats, error: float, limit: float, seed: int = 0) -> Power:
    """The power for one type, from [S, 3] counts. ``others`` [N]: the largest standardised loss of the other
    types in each swap of the guard's test. ``error``: the standard error of the loss.
    """
    return Power(_seen(before, after, others, limit, seed), _mentions(before, error, limit))


def _mentions(counts: Floats, error: float, limit: float) -> int | None:
    """The standard error shrinks with the square root of the mentions; the interval's floor with the
    sentences."""
    if not limit:
        return None
    mentions, sentences = counts[:, 1].sum(), (counts[:, 1] > 0).sum()
    times = max(((_TWO_SIDED + _ONE_SIDED) * error / limit) ** 2, NONE_SEEN / limit / sentences)
    needed = float(mentions * times)
    digits: int = 10 ** max(0, int(log10(max(needed, 1))) - 1)  # rounded to two digits
    return ceil(needed / digits) * digits


def _seen(before: Floats, after: Floats, others: Floats, limit: float, seed: int) -> float | None:
    random = np.random.default_rng(seed)
    used = (before[:, 1] > 0) | (before != after).any(1)
    cases = _Cases(before[used], after[used], random)
    sides = random.choice([-1.0, 1.0], (_SWAPS, int(used.sum())))
    # the fewest misses with the verdict lost: more than `low`, at most `high`
    low, high = np.zeros(CASES, dtype=np.int64), cases.found + 1
    while (open_ := high - low > 1).any():
        tried = np.where(open_, (low + high) // 2, low)
        lost = cases.lost(tried, sides, others, limit)
        high, low = np.where(open_ & lost, tried, high), np.where(open_ & ~lost, tried, low)
    first = np.sort(np.where(high > cases.found, np.inf, high))
    enough = first[ceil(SEEN_IN * CASES) - 1]
    return cases.points(int(enough)) if np.isfinite(enough) else None


class _Cases:
    """Pairs of equally good models: [C, S, 3] counts of both, and the order in which each loses mentions."""

    def __init__(self, before: Floats, after: Floats, random: np.random.Generator) -> None:
        swap = random.integers(0, 2, (CASES, len(before), 1)).astype(bool)
        self.before, self.after = np.where(swap, after, before), np.where(swap, before, after)
        sentences, found = np.arange(len(before)), self.after[..., 0].astype(np.int64)
        self.found = found.sum(1)
        self.order = [random.permutation(np.repeat(sentences, row)) for row in found]

    def lost(self, misses: Ints, sides: Floats, others: Floats, limit: float) -> npt.NDArray[np.bool_]:
        """[C]: whether the verdict is *lost* after this many misses in each case."""
        after = self._after(misses)
        apart = (self.before - after) / 2
        middle = (self.before + after).sum(1) / 2  # [C, 3]
        moved = np.einsum("ns,csk->nck", sides, apart, optimize=True)
        drawn = f1_of(middle + moved) - f1_of(middle - moved)  # [N, C]
        measured = f1_of(self.before.sum(1)) - f1_of(after.sum(1))
        errors = spread(drawn)
        reached = standardised(measured, errors)
        own = (1 + (standardised(drawn, errors) >= reached - TIE).sum(0)) / (1 + len(sides))
        any_type = 1 - (1 - own) * (1 - share_reached(others, reached))
        result: npt.NDArray[np.bool_] = (measured > limit) & (any_type < CHANCE)
        return result

    def points(self, misses: int) -> float:
        """The loss of F1 that this many misses cause, averaged over the cases."""
        fewer = np.minimum(misses, self.found)
        totals = self.after.sum(1)
        left = totals - np.stack([fewer, np.zeros_like(fewer), fewer], 1)
        return float((f1_of(totals) - f1_of(left)).mean())

    def _after(self, misses: Ints) -> Floats:
        after = self.after.copy()
        for case, (order, count) in enumerate(zip(self.order, misses, strict=True)):
            missed = np.bincount(order[:count], minlength=after.shape[1])
            after[case, :, 0] -= missed
            after[case, :, 2] -= missed
        return after
