"""How far scores can be relied on: precision, recall and expected calibration error, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from cfner.practice.calibrate.held_out import Found, HeldOut

BINS: Final = 10  # of equal width, from 0 to 1
RESAMPLES: Final = 1000
_CELLS: Final = 5_000_000  # sentences x resamples held at a time
_Table = npt.NDArray[np.float64]


class Share(NamedTuple):
    """A figure from 0 to 1, and its 95 % interval from a bootstrap over sentences."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


class Bin(NamedTuple):
    """Mentions whose scores are alike: how many, their mean score, and the share of them that is right."""

    mentions: int
    score: float
    right: float


@dataclass(frozen=True)
class Measured:
    """One type, found in one way. The figures are None where nothing was found (or nothing was to find)."""

    found: int
    precision: Share | None
    recall: Share | None
    error: Share | None  # expected calibration error: how far score and precision are apart, on average
    bins: tuple[Bin, ...]


def measure(held_out: HeldOut, found: Sequence[Found], type_: str, seed: int = 0) -> Measured:
    """``found`` may hold other types, too."""
    mentions = [mention for mention in found if mention.type == type_]
    gold = {
        number: count
        for number, spans in zip(held_out.numbers, held_out.gold, strict=True)
        if (count := sum(span.type == type_ for span in spans))
    }
    rows = {number: row for row, number in enumerate(sorted({*gold, *(m.sentence for m in mentions)}))}
    # per sentence: gold mentions, then per bin: found, right, sum of scores
    table = np.zeros((len(rows), 1 + 3 * BINS))
    for number, count in gold.items():
        table[rows[number], 0] = count
    for mention in mentions:
        at = 1 + min(int(mention.score * BINS), BINS - 1)
        table[rows[mention.sentence], [at, at + BINS, at + 2 * BINS]] += 1, mention.right, mention.score
    value = _figures(table.sum(0)[None])[:, 0]
    low, high = value, value
    if rows:
        low, high = np.nanquantile(_figures(_resampled(table, seed)), [0.025, 0.975], axis=1)
    precision, recall, error = (
        None if np.isnan(v) else Share(float(v), float(a), float(b))
        for v, a, b in zip(value, low, high, strict=True)
    )
    return Measured(len(mentions), precision, recall, error, _bins(table.sum(0)))


def _figures(sums: _Table) -> _Table:
    """[3, R] precision, recall and calibration error of sums [R, 1 + 3 BINS]; not a number where none is."""
    gold, (found, right, scores) = sums[:, 0], np.split(sums[:, 1:], 3, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        total = found.sum(1)
        apart = np.abs(scores - right).sum(1)
        return np.stack([right.sum(1) / total, right.sum(1) / gold, apart / total])


def _resampled(table: _Table, seed: int) -> _Table:
    """[RESAMPLES, columns] sums over sentences drawn with replacement."""
    draw, rows = np.random.default_rng(seed), len(table)
    sums, at_once = [], max(1, _CELLS // rows)
    for start in range(0, RESAMPLES, at_once):
        size = min(at_once, RESAMPLES - start)
        sums.append(draw.multinomial(rows, np.full(rows, 1 / rows), size=size) @ table)
    return np.concatenate(sums)


def _bins(sums: _Table) -> tuple[Bin, ...]:
    found, right, scores = np.split(sums[1:], 3)
    return tuple(
        Bin(int(n), float(s / n), float(r / n)) for n, r, s in zip(found, right, scores, strict=True) if n
    )
