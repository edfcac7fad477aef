"""The forgetting guard: whether a new model lost old types, tested statistically.

Both models tag the same labelled sentences. For each old type:

- *lost*: the loss of F1 is above the limit, and significant in a randomisation test;
- *kept*: the upper end of the loss's interval is at most the limit;
- *unchanged*: the method cannot change predictions of the type, and on these sentences it did not;
- *undecided*: none of these; reported with the loss that this guard could have detected.

Without labelled sentences only the agreement of the two models can be measured (``agreement``), not F1.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property

import numpy as np

from cfner.corpus.sentence import Sentence, Span
from cfner.evaluation.intervals import (
    FEWEST_MENTIONS,
    FEWEST_SENTENCES,
    NONE_SEEN,
    RESAMPLES,
    Floats,
    Interval,
    f1_of,
    interval,
    precision_of,
    recall_of,
    resampled,
    sentence_counts,
)
from cfner.evaluation.randomisation import SWAPS, p_values, spread, standardised, swapped_losses
from cfner.practice.learn.guard_report import GuardReport, Shift, TypeReport, Verdict
from cfner.practice.learn.power import CHANCE, Power, power

F1, PRECISION, RECALL = 0, 1, 2  # indices of the figures


def guard(
    sentences: Sequence[Sentence],
    before: Sequence[Collection[Span]],
    after: Sequence[Collection[Span]],
    old_types: Sequence[str],
    *,
    max_forgetting: float = 2.0,
    accepted: Collection[str] = (),
    constant: Collection[str] = (),
    strict: bool = False,
    seed: int = 0,
) -> GuardReport:
    """Judge the predictions of two models on the same labelled sentences, for each of ``old_types``.

    ``accepted``: types that may be lost. ``constant``: types whose predictions the method cannot change. They
    are *unchanged* unless these sentences show a change; the sentences need not mention them.
    """
    gold = [sentence.spans for sentence in sentences]
    sides = [sentence_counts(gold, spans, old_types) for spans in (before, after)]
    unchanged = [t in constant and _only(before, t) == _only(after, t) for t in old_types]
    pair = Paired(*sides, unchanged=unchanged, seed=seed)
    reports = []
    absent = []
    for index, type_ in enumerate(old_types):
        if pair.mentions[index]:
            reports.append(_report(type_, pair, index, max_forgetting, type_ in accepted))
        elif not unchanged[index]:
            absent.append(type_)
    unknown = tuple(sorted({type_ for s in sentences for type_ in s.types} - set(old_types)))
    return GuardReport(
        tuple(reports), len(sentences), max_forgetting, tuple(absent), unknown, tuple(accepted), strict
    )


class Paired:
    """Two models on the same sentences, from [S, T, 3] counts. The figures are F1, precision and recall.

    Types with too little data and types that cannot change are not tested: testing them would only reduce the
    power for the others.
    """

    def __init__(
        self,
        before: Floats,
        after: Floats,
        *,
        unchanged: Sequence[bool] | None = None,
        seed: int = 0,
        swaps: int = SWAPS,
        resamples: int = RESAMPLES,
    ) -> None:
        self.counts, self.seed, self.resamples = (before, after), seed, resamples
        self.mentions = before[..., 1].sum(0).astype(int)
        self.sentences = (before[..., 1] > 0).sum(0)  # that mention the type

        self.unchanged = np.array(unchanged or [False] * len(self.mentions))
        few = (self.mentions < FEWEST_MENTIONS) | (self.sentences < FEWEST_SENTENCES)
        tested = ~(few | self.unchanged)
        self.measured = np.stack([_figures(side.sum(0)) for side in self.counts])  # [2, T, 3]
        chance = swapped_losses(before[:, tested], after[:, tested], _figures, seed, swaps)  # [N, K, 3]
        loss = (self.measured[0] - self.measured[1])[tested]
        self.p = np.ones(self.measured.shape[1:])  # [T, 3]
        self.p[tested, 0] = p_values(loss[:, 0], chance[..., 0])
        # precision and recall only warn, so they are corrected as a separate family
        warned = p_values(loss[:, 1:].ravel(), chance[..., 1:].reshape(len(chance), -1))
        self.p[tested, 1:] = warned.reshape(-1, 2)
        self.chance = np.full((len(chance), len(tested)), -np.inf)  # [N, T] F1, standardised
        self.chance[:, tested] = standardised(chance[..., 0], spread(chance[..., 0]))

    @cached_property
    def drawn(self) -> Floats:
        """[R, 2, T, 3] the figures on bootstrap samples of the sentences."""
        return _figures(resampled(np.stack(self.counts, axis=1), self.seed, self.resamples))

    def side(self, index: int, side: int) -> Interval:
        """F1 of a type, before (0) or after (1)."""
        return interval(self.measured[side, index, F1], self.drawn[:, side, index, F1])

    def loss(self, index: int, figure: int) -> Interval:
        """The loss of a type in one figure, from before to after."""
        value, drawn = self.measured[:, index, figure], self.drawn[:, :, index, figure]
        return interval(value[0] - value[1], drawn[:, 0] - drawn[:, 1])

    def proven_loss(self, index: int) -> Interval:
        """The loss of F1. If a loss is possible, its upper end is at least what this number of sentences can
        exclude: identical predictions on three sentences prove nothing.
        """
        loss = self.loss(index, F1)
        floor = 0.0 if self.unchanged[index] else NONE_SEEN / int(self.sentences[index])
        return loss._replace(high=max(loss.value, loss.high, floor))

    def verdict(self, index: int, limit: float) -> Verdict:
        if self.unchanged[index]:
            return "unchanged"
        if self.mentions[index] < FEWEST_MENTIONS:
            return "too few mentions"
        if self.sentences[index] < FEWEST_SENTENCES:
            return "too few sentences"
        if self.fell(index, F1, limit):
            return "lost"
        return "kept" if self.proven_loss(index).high <= limit else "undecided"

    def fell(self, index: int, figure: int, limit: float) -> bool:
        """Whether the loss is above the limit and significant."""
        lost = self.measured[0, index, figure] - self.measured[1, index, figure]
        return bool(lost > limit and self.p[index, figure] < CHANCE)

    def power(self, index: int, limit: float) -> Power:
        before, after = (side[:, index] for side in self.counts)
        others = np.delete(self.chance, index, axis=1).max(axis=1, initial=-np.inf)
        drawn = self.drawn[:, 0, index, F1] - self.drawn[:, 1, index, F1]
        return power(before, after, others, float(np.nanstd(drawn)), limit, self.seed)


def _report(type_: str, pair: Paired, index: int, limit: float, accepted: bool) -> TypeReport:
    verdict = pair.verdict(index, limit)
    tested = verdict in ("lost", "kept", "undecided")
    return TypeReport(
        type=type_,
        mentions=int(pair.mentions[index]),
        sentences=int(pair.sentences[index]),
        before=pair.side(index, 0),
        after=pair.side(index, 1),
        loss=pair.proven_loss(index),
        precision=_shift(pair, index, PRECISION, limit),
        recall=_shift(pair, index, RECALL, limit),
        p=float(pair.p[index, F1]) if tested else None,
        verdict="accepted" if verdict == "lost" and accepted else verdict,
        power=pair.power(index, limit) if verdict == "undecided" else None,
    )


def _shift(pair: Paired, index: int, figure: int, limit: float) -> Shift:
    before, after = (float(value) for value in pair.measured[:, index, figure])
    return Shift(before, after, pair.loss(index, figure), pair.fell(index, figure, limit))


def _figures(counts: Floats) -> Floats:
    """[..., 3] -> [..., 3]: F1, PRECISION and RECALL."""
    return np.stack([f1_of(counts), precision_of(counts), recall_of(counts)], axis=-1)


def _only(predicted: Sequence[Collection[Span]], type_: str) -> list[set[Span]]:
    return [{span for span in spans if span.type == type_} for spans in predicted]
