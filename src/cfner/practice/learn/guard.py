"""The forgetting guard: what a new model lost of the old types, and whether that is certain.

With labelled sentences of old types: F1 before and after, per type, with intervals from a paired bootstrap
over sentences (both models are scored on the same resampled sentences, so that what is common to both
cancels), and a sign test of the errors, since resampling a handful of sentences shows no doubt at all.
Without: only how far the two models agree, which is not F1 and is never called so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from cfner.corpus.sentence import Sentence, Span
from cfner.evaluation.intervals import RESAMPLES, Interval, f1_of, interval, resampled, sentence_counts

Verdict = Literal["kept", "forgotten", "accepted", "unclear", "too few mentions", "too few sentences"]

FEWEST_MENTIONS = 10  # below this, a bootstrap pretends to know more than the data can tell
FEWEST_SENTENCES = 4  # that hold the type; mentions of one sentence are lost and found together
_CHANCE = 0.05  # a loss is certain if errors this lopsided would come by chance less often


@dataclass(frozen=True)
class TypeReport:
    """One old type before and after. ``loss`` is before minus after: positive when it got worse."""

    type: str
    mentions: int
    before: Interval
    after: Interval
    loss: Interval
    verdict: Verdict


@dataclass(frozen=True)
class GuardReport:
    """F1 of old types before and after, on labelled sentences. ``refused`` if a type is surely forgotten."""

    types: tuple[TypeReport, ...]
    sentences: int
    max_forgetting: float
    absent: tuple[str, ...]  # old types that the guard data does not mention: nothing can be said
    unknown: tuple[str, ...]  # types of the guard data that the old model does not know: set aside
    kind: str = "f1"

    @property
    def forgotten(self) -> tuple[str, ...]:
        return tuple(report.type for report in self.types if report.verdict == "forgotten")

    @property
    def refused(self) -> bool:
        return bool(self.forgotten)

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "refused": self.refused,
            "sentences": self.sentences,
            "max_forgetting": self.max_forgetting,
            "resamples": RESAMPLES,
            "types": [
                asdict(report) | {key: getattr(report, key)._asdict() for key in ("before", "after", "loss")}
                for report in self.types
            ],
            "absent": list(self.absent),
            "unknown": list(self.unknown),
        }


def guard(
    sentences: Sequence[Sentence],
    before: Sequence[Collection[Span]],
    after: Sequence[Collection[Span]],
    old_types: Sequence[str],
    *,
    max_forgetting: float = 2.0,
    accepted: Collection[str] = (),
    seed: int = 0,
) -> GuardReport:
    """Judge what two models predict of the same labelled sentences, for each of ``old_types``."""
    gold = [sentence.spans for sentence in sentences]
    counts = np.stack([sentence_counts(gold, spans, old_types) for spans in (before, after)], axis=1)
    mentions = counts[:, 0, :, 1].sum(0)
    holding = (counts[:, 0, :, 1] > 0).sum(0)
    measured = f1_of(counts.sum(0))
    drawn = f1_of(resampled(counts, seed))
    errors = [_errors(gold, spans) for spans in (before, after)]
    reports = []
    for index, type_ in enumerate(old_types):
        if not mentions[index]:
            continue
        loss = interval(measured[0, index] - measured[1, index], drawn[:, 0, index] - drawn[:, 1, index])
        verdict = _uncertain(loss, int(mentions[index]), int(holding[index]), max_forgetting)
        if loss.low > max_forgetting and _surely_worse(*(e.get(type_, _Errors()) for e in errors)):
            verdict = "accepted" if type_ in accepted else "forgotten"
        reports.append(
            TypeReport(
                type_,
                int(mentions[index]),
                interval(measured[0, index], drawn[:, 0, index]),
                interval(measured[1, index], drawn[:, 1, index]),
                loss,
                verdict,
            )
        )
    absent = tuple(t for t, count in zip(old_types, mentions, strict=True) if not count)
    unknown = tuple(sorted({type_ for s in sentences for type_ in s.types} - set(old_types)))
    return GuardReport(tuple(reports), len(sentences), max_forgetting, absent, unknown)


def _uncertain(loss: Interval, mentions: int, sentences: int, limit: float) -> Verdict:
    """What to say of a type unless its loss is certain."""
    if mentions < FEWEST_MENTIONS:
        return "too few mentions"
    if sentences < FEWEST_SENTENCES:
        return "too few sentences"
    return "kept" if loss.high <= limit else "unclear"


@dataclass
class _Errors:
    """Of one type: (sentence, span) that were missed, and that were predicted where no mention is near."""

    missed: set[tuple[int, Span]] = field(default_factory=set)
    stray: set[tuple[int, Span]] = field(default_factory=set)


def _errors(gold: Sequence[Collection[Span]], predicted: Sequence[Collection[Span]]) -> dict[str, _Errors]:
    """By type. A mention that was found with another end is missed, and not a stray prediction besides."""
    errors: dict[str, _Errors] = defaultdict(_Errors)
    for row, (right, found) in enumerate(zip(gold, predicted, strict=True)):
        for span in set(right) - set(found):
            errors[span.type].missed.add((row, span))
        for span in set(found) - set(right):
            if not _touches(span, right):
                errors[span.type].stray.add((row, span))
    return errors


def _surely_worse(before: _Errors, after: _Errors) -> bool:
    """Whether more errors are new than mended, by more than chance: among the missed, the strays or both."""
    missed = len(after.missed - before.missed), len(before.missed - after.missed)
    stray = len(after.stray - before.stray), len(before.stray - after.stray)
    both = missed[0] + stray[0], missed[1] + stray[1]
    return any(new > mended and _sign_test(new, mended) < _CHANCE for new, mended in (missed, stray, both))


def _touches(span: Span, others: Collection[Span]) -> bool:
    return any(o.type == span.type and o.overlaps(span) for o in others)


def _sign_test(new: int, mended: int) -> float:
    """How often chance alone divides so many errors so unevenly: exact, two-sided."""
    if not new + mended:
        return 1.0
    steps = np.arange(1, min(new, mended) + 1)
    logs = np.cumsum(np.log(new + mended - steps + 1) - np.log(steps))  # of the binomial coefficients
    logs = np.concatenate([[0.0], logs]) - (new + mended) * np.log(2)
    return min(1.0, 2 * float(np.exp(logs).sum()))
