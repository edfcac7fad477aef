"""Is one method really better than another? A paired bootstrap over the test sentences.

The test sentences are resampled with replacement, 1000 times. Each draw is the same for all methods and
seeds, so methods are compared on the same sentences. The statistic is that of the tables: F1 as a mean over
the steps, and over the seeds that two methods share. It measures the uncertainty of a difference between
these trained models; the deviation over seeds measures how much training itself varies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cfner.benchmark.report.reading import SentenceCounts

RESAMPLES = 1000
SEED = 20221207
Floats = NDArray[np.float64]


Kind = Literal["micro", "macro"]
Resampled = Mapping[Kind, Floats]  # mean-over-steps F1 in percent [1 + draws]: measured, then of each draw
Scores = Mapping[str, Mapping[int, Resampled]]  # by method and seed


@dataclass(frozen=True)
class Difference:
    """A method's score minus another's, in points: as measured, with a 95 % interval and a two-sided p."""

    value: float
    low: float
    high: float
    p: float

    @property
    def sure(self) -> bool:
        return self.p < 0.05


def draws(sentences: int, resamples: int = RESAMPLES, seed: int = SEED) -> NDArray[np.float32]:
    """How often each sentence is drawn: [1 + resamples, sentences]. The first row is the original data."""
    random = np.random.default_rng(seed)
    weights = np.ones((1 + resamples, sentences), dtype=np.float32, order="F")  # read column by column
    for row in range(1, 1 + resamples):
        drawn = random.integers(0, sentences, sentences)
        weights[row] = np.bincount(drawn, minlength=sentences)
    return weights


def resampled(counts: SentenceCounts, weights: NDArray[np.float32]) -> Resampled:
    """Scores of every draw. A type that is not learned yet counts in micro F1 only, as false positives."""
    micro = np.zeros(len(weights))
    macro = np.zeros(len(weights))
    for step, learned in enumerate(counts.learned):
        here = counts.step == step
        # only sentences with counts; many have no mention
        used, rows = np.unique(counts.sentence[here], return_inverse=True)
        table = np.zeros((3, len(counts.types), len(used)), dtype=np.float32)
        for number, kind in enumerate((counts.found, counts.gold, counts.predicted)):
            np.add.at(table[number], (counts.type[here], rows), kind[here])
        # integers below 2**24: exact in float32, in any order of addition
        sums = table.reshape(-1, len(used)) @ weights.T[used]
        found, gold, predicted = sums.reshape(3, len(counts.types), len(weights)).astype(np.float64)
        micro += _f1(found.sum(0), gold.sum(0) + predicted.sum(0))
        known = slice(0, int(learned))
        macro += _f1(found[known], gold[known] + predicted[known]).mean(0)
    return {"micro": micro / len(counts.learned), "macro": macro / len(counts.learned)}


def _f1(found: Floats, both: Floats) -> Floats:
    """Percent; 0 where there is neither a gold nor a predicted mention, as in the scores."""
    result: Floats = np.divide(200 * found, both, out=np.zeros_like(found), where=both > 0)
    return result


def difference(one: Sequence[Floats], other: Sequence[Floats]) -> Difference:
    """From the scores [1 + draws] of two methods, a pair for each seed that they share."""
    apart = np.mean([a - b for a, b in zip(one, other, strict=True)], axis=0)
    measured, drawn = float(apart[0]), apart[1:]
    low, high = np.percentile(drawn, [2.5, 97.5])
    against = min(int((drawn <= 0).sum()), int((drawn >= 0).sum()))
    p = min(1.0, 2 * (1 + against) / (1 + len(drawn)))  # 1 +: the measured difference counts as a draw
    return Difference(measured, float(low), float(high), p)


def compare(scores: Scores, one: str, other: str, kind: Kind) -> Difference | None:
    """None where two methods share fewer than two seeds: one seed does not show how training varies."""
    seeds = sorted(scores[one].keys() & scores[other].keys())
    pairs = [[scores[method][seed][kind] for seed in seeds] for method in (one, other)]
    return difference(*pairs) if len(seeds) > 1 else None
