"""Counts per sentence, and 95 % intervals from a bootstrap over sentences.

Mentions of one sentence are found or missed together, so whole sentences are resampled. Counts are summed
before a figure is computed from them: never a mean of F1s.

    counts = sentence_counts(gold, predicted, types)         # [S, T, 3]
    drawn = resampled(counts, seed=0)                        # [R, T, 3]
    interval(f1_of(counts.sum(0))[0], f1_of(drawn)[:, 0])    # of the first type, in percent
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cfner.corpus.sentence import Span

Floats = npt.NDArray[np.float64]

RESAMPLES = 2000
FEWEST_MENTIONS = 10  # with fewer, an interval looks more precise than the data allows
FEWEST_SENTENCES = 4  # with the type: mentions of one sentence are found and missed together
NONE_SEEN = 370  # 3.7 / n: with no event in n sentences, the 97.5 % upper bound of its share (in points x n)
_CELLS = 20_000_000  # sentences x resamples held at a time


class Interval(NamedTuple):
    """A figure in percent or points, and its 95 % interval."""

    value: float
    low: float
    high: float


def sentence_counts(
    gold: Sequence[Collection[Span]], predicted: Sequence[Collection[Span]], types: Sequence[str]
) -> Floats:
    """[S, T, 3] per sentence and type: mentions found exactly, in the gold, predicted."""
    place = {type_: index for index, type_ in enumerate(types)}
    counts = np.zeros((len(gold), len(types), 3))
    for row, (gold_spans, predicted_spans) in enumerate(zip(gold, predicted, strict=True)):
        right, found = set(gold_spans), set(predicted_spans)
        for column, spans in enumerate((right & found, right, found)):
            for span in spans:
                if span.type in place:
                    counts[row, place[span.type], column] += 1
    return counts


def f1_of(counts: Floats) -> Floats:
    """[..., 3] -> [...] in percent; 0 where there is neither a gold nor a predicted mention."""
    return _percent(2 * counts[..., 0], counts[..., 1] + counts[..., 2])


def precision_of(counts: Floats) -> Floats:
    """[..., 3] -> [...] in percent; 0 where nothing was predicted."""
    return _percent(counts[..., 0], counts[..., 2])


def recall_of(counts: Floats) -> Floats:
    """[..., 3] -> [...] in percent; 0 where there is nothing to find."""
    return _percent(counts[..., 0], counts[..., 1])


def resampled(counts: Floats, seed: int, resamples: int = RESAMPLES) -> Floats:
    """[S, ..., 3] -> [R, ..., 3]: sums over sentences drawn with replacement, as many as there are.

    Values along the middle axes (types, two models) share the same draws, so differences are paired. Where
    a draw does not mention a type, its counts are nan. Counted as "nothing lost" instead, such draws would
    hide a loss.
    """
    random = np.random.default_rng(seed)
    size = len(counts)
    table = counts.reshape(size, -1)
    used = table[
        table.any(1)
    ]  # sentences of zeros change no sum: one index in the draw stands for all of them
    shares = np.append(np.full(len(used), 1 / size), 1 - len(used) / size)
    at_a_time = max(1, _CELLS // (len(used) + 1))
    parts = []
    for start in range(0, resamples, at_a_time):
        rows = min(at_a_time, resamples - start)
        times = random.multinomial(size, shares, size=rows)[:, :-1].astype(np.float64)
        parts.append((times @ used).reshape(rows, *counts.shape[1:]))
    drawn = np.concatenate(parts)
    return np.where(drawn[..., 1:2] > 0, drawn, np.nan)


def interval(value: float, drawn: Floats) -> Interval:
    """The middle 95 % of the resampled figures. At least one draw must mention the type."""
    low, high = np.nanpercentile(drawn, [2.5, 97.5])
    return Interval(float(value), float(low), float(high))


def _percent(part: Floats, whole: Floats) -> Floats:
    """nan stays nan; it does not become 0."""
    result: Floats = 100 * part / np.where(whole == 0, 1, whole)
    return result
