"""Fit a type's calibration on held-out mentions: temperature and bias of its scores, and its shift.

Temperature and bias minimise the log loss of the mentions' scores, so that a score is the share of such
mentions that are right. The shift makes a type stricter until it reaches the requested precision.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import torch

from cfner.network.calibration import COOLEST, HOTTEST, Calibration, TypeCalibration
from cfner.practice.calibrate.held_out import HeldOut

FEWEST: Final = 30  # mentions of a type needed for fitting: see docs/decisions.md
CERTAIN: Final = 0.95  # confidence of a promised precision, for text like the held-out sentences
_CANDIDATES: Final = 30  # shifts that are tried per type
_CLEAR: Final = 1e-3  # log-odds below the word to give up; larger than numerical noise in a batch
_ROUNDS: Final = 6  # passes over all types: words that one gives up may fall to another
_MOST: Final = 8.0  # largest bias, in log-odds
_GRID, _ZOOMS = 5, 7
_NEVER: Final = 1e-6  # keeps the log loss of a wrong, certain score finite


def enough_found(
    held_out: HeldOut, types: Sequence[str], kept: Calibration | None, share: float = 1.0
) -> tuple[str, ...]:
    """The types with enough mentions; ``held_out`` is this ``share`` of all sentences."""
    counts = Counter(mention.type for mention in held_out.found(kept))
    return tuple(type_ for type_ in types if counts[type_] >= share * FEWEST)


def fit(
    held_out: HeldOut, types: Sequence[str], precision: float | None, kept: Calibration | None = None
) -> Calibration:
    """Fit ``types``, with the calibration of other types fixed (``kept``)."""
    figures = dict({} if kept is None else kept.types)
    if precision is not None:
        figures |= _shifts(held_out, types, precision, figures)
    for type_ in types:
        temperature, bias = _scaling(held_out, type_, Calibration(figures))
        decided = figures.get(type_, TypeCalibration())
        figures[type_] = replace(decided, temperature=temperature, bias=bias)
    return Calibration(figures)


def _shifts(
    held_out: HeldOut, types: Sequence[str], precision: float, figures: dict[str, TypeCalibration]
) -> dict[str, TypeCalibration]:
    """Type by type, until no shift changes any more: words that a type gives up may fall to another."""
    found: dict[str, TypeCalibration] = {}
    fitted_beside: dict[str, dict[str, float]] = {}  # the other types' shifts when a type was fitted
    for _ in range(_ROUNDS):
        settled = True
        for type_ in types:
            beside = {name: one.shift for name, one in found.items() if name != type_ and one.shift}
            if fitted_beside.get(type_) != beside:
                found[type_] = _stricter(held_out, type_, precision, figures | found)
                fitted_beside[type_], settled = beside, False
        if settled:
            break
    else:  # no promise for types that still depend on each other
        found = {type_: replace(one, precision=None) for type_, one in found.items()}
    return found


def _stricter(
    held_out: HeldOut, type_: str, precision: float, figures: dict[str, TypeCalibration]
) -> TypeCalibration:
    """The smallest downward shift at which the precision is certain; it is then promised. Otherwise the
    smallest shift that reaches the precision on these mentions, or no shift.
    """
    as_it_is = Calibration({**figures, type_: TypeCalibration()})
    where, margins = held_out.where_found(type_, as_it_is)
    levels = torch.quantile(margins, torch.linspace(0, 1, _CANDIDATES + 1)[:-1])
    reached: float | None = None
    for shift in [0.0, *(-level - _CLEAR for level in sorted(set(levels.tolist())))]:
        tried = Calibration({**figures, type_: TypeCalibration(shift=shift)})
        right = [mention.right for mention in where.found(tried) if mention.type == type_]
        if len(right) < FEWEST:
            break
        if is_certain(sum(right), len(right), precision):
            return TypeCalibration(shift=shift, precision=precision)
        if reached is None and sum(right) >= precision * len(right):
            reached = shift
    return TypeCalibration(shift=reached or 0.0)


def is_certain(right: int, found: int, precision: float) -> bool:
    """Exact binomial test: whether this many right mentions would be unlikely if the precision were lower."""
    chance = sum(
        math.exp(
            _log_choose(found, wrong)
            + _times_log(wrong, 1 - precision)
            + _times_log(found - wrong, precision)
        )
        for wrong in range(found - right + 1)
    )
    return chance <= 1 - CERTAIN


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _times_log(times: int, share: float) -> float:
    return times * math.log(share) if times else 0.0


def _scaling(held_out: HeldOut, type_: str, calibration: Calibration) -> tuple[float, float]:
    """(temperature, bias) with the smallest log loss of the scores of the type's mentions."""
    mentions = held_out.words_of(type_, calibration)
    # Platt's targets: a few mentions that are all right must not give a score of 1
    right = int(mentions.right.sum())
    wrong = len(mentions.right) - right
    target = torch.where(mentions.right, (right + 1) / (right + 2), 1 / (wrong + 2))

    def loss(log_temperature: float, log_odds: float) -> float:
        temperature = math.exp(log_temperature)
        figures = replace(calibration.of(type_), temperature=temperature, bias=log_odds * temperature)
        tried = Calibration({**calibration.types, type_: figures})
        scores = mentions.scores(held_out.decoder(tried))
        scores = scores.clamp(_NEVER, 1 - _NEVER)
        return float(-(target * scores.log() + (1 - target) * (-scores).log1p()).mean())

    log_temperature, log_odds = _smallest(loss, (math.log(COOLEST), math.log(HOTTEST)), (-_MOST, _MOST))
    temperature = math.exp(log_temperature)
    return temperature, log_odds * temperature


def _smallest(
    loss: Callable[[float, float], float], first: tuple[float, float], second: tuple[float, float]
) -> tuple[float, float]:
    """Minimise a smooth function of two numbers: search a grid, then finer grids around the best point."""
    bounds = (first, second)
    best, reach = tuple(sum(limits) / 2 for limits in bounds), [(high - low) / 2 for low, high in bounds]
    for _ in range(_ZOOMS):
        axes = [
            np.clip(middle + step * np.linspace(-1, 1, _GRID), low, high)
            for middle, step, (low, high) in zip(best, reach, bounds, strict=True)
        ]
        best = min(itertools.product(*(axis.tolist() for axis in axes)), key=lambda point: loss(*point))
        reach = [step / 2 for step in reach]
    return best[0], best[1]
