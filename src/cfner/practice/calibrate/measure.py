"""How reliable scores are: precision, recall and expected calibration error, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final, NamedTuple

import numpy as np

from cfner.evaluation.intervals import Floats, resampled
from cfner.practice.calibrate.held_out import Found, HeldOut

BINS: Final = 10  # of equal width, from 0 to 1


class Share(NamedTuple):
    """A figure from 0 to 1, and its 95 % interval from a bootstrap over sentences."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


class Bin(NamedTuple):
    """A bin of mentions with similar scores: how many, their mean score, and the share that is right."""

    mentions: int
    score: float
    right: float


@dataclass(frozen=True)
class Reliability:
    """The figures of one type. None where nothing was found, or nothing was labelled."""

    found: int
    precision: Share | None
    recall: Share | None
    error: Share | None  # expected calibration error: mean difference of score and precision
    bins: tuple[Bin, ...]


def measure(held_out: HeldOut, found: Sequence[Found], type_: str, seed: int = 0) -> Reliability:
    """``found`` may contain other types too."""
    mentions = [mention for mention in found if mention.type == type_]
    row_of = {number: row for row, number in enumerate(held_out.numbers)}
    # per sentence: right, gold, found; then per bin the sum of scores minus the number right
    table = np.zeros((len(row_of), 3 + BINS))
    for row, spans in enumerate(held_out.gold):
        table[row, 1] = sum(span.type == type_ for span in spans)
    for mention in mentions:
        row = row_of[mention.sentence]
        table[row, [0, 2, 3 + _bin(mention)]] += mention.right, 1, mention.score - mention.right
    value, drawn = _figures(table.sum(0)[None])[:, 0], _figures(resampled(table, seed))
    precision, recall, error = (
        None if np.isnan(figure) else _share(float(figure), draws)
        for figure, draws in zip(value, drawn, strict=True)
    )
    return Reliability(len(mentions), precision, recall, error, _bins(mentions))


def _figures(sums: Floats) -> Floats:
    """[3, R] precision, recall and calibration error of sums [R, 3 + BINS]; nan where there is none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        right, gold, found = sums[:, 0], sums[:, 1], sums[:, 2]
        return np.stack([right / found, right / gold, np.abs(sums[:, 3:]).sum(1) / found])


def _share(value: float, draws: Floats) -> Share:
    finite = draws[np.isfinite(draws)]
    low, high = np.quantile(finite, [0.025, 0.975]) if len(finite) else (0.0, 1.0)
    return Share(value, float(low), float(high))


def _bin(mention: Found) -> int:
    return min(int(mention.score * BINS), BINS - 1)


def _bins(mentions: Sequence[Found]) -> tuple[Bin, ...]:
    together: dict[int, list[Found]] = {}
    for mention in mentions:
        together.setdefault(_bin(mention), []).append(mention)
    return tuple(
        Bin(len(alike), fmean(one.score for one in alike), fmean(one.right for one in alike))
        for _, alike in sorted(together.items())
    )
