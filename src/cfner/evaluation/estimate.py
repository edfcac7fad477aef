"""How well the model finds new types: F1, precision and recall with intervals, on held-out sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from cfner.corpus.sentence import Sentence, Span
from cfner.evaluation.intervals import (
    FEWEST_MENTIONS,
    FEWEST_SENTENCES,
    NONE_SEEN,
    Floats,
    Interval,
    f1_of,
    interval,
    precision_of,
    recall_of,
    resampled,
    sentence_counts,
)

How = Literal["test", "held-out", "folds"]


@dataclass(frozen=True)
class TypeEstimate:
    """One type. ``precision`` is None where nothing was predicted."""

    type: str
    mentions: int  # in the sentences that it was scored on
    sentences: int  # of those, how many contain the type
    f1: Interval
    precision: Interval | None
    recall: Interval

    @property
    def is_enough(self) -> bool:
        return self.mentions >= FEWEST_MENTIONS and self.sentences >= FEWEST_SENTENCES

    def to_json(self) -> dict[str, Any]:
        figures = {name: getattr(self, name) for name in ("f1", "precision", "recall")}
        told = {name: None if value is None else value._asdict() for name, value in figures.items()}
        return asdict(self) | told | {"enough": self.is_enough}


@dataclass(frozen=True)
class Estimate:
    """``how``: the model itself, scored on a test split; or models trained on a part of the new sentences and
    scored on the rest (one held-out part, or each fold once).
    """

    how: How
    sentences: int  # that were scored
    types: tuple[TypeEstimate, ...]
    folds: int = 1
    share: float = 1.0  # the share of the new sentences that the scored models were trained on
    epoch: int | None = None  # chosen on the folds, if one is chosen
    documents: bool = False  # True: each document is in one fold only

    @classmethod
    def of(
        cls,
        how: How,
        counts: Floats,
        types: Sequence[str],
        *,
        folds: int = 1,
        share: float = 1.0,
        epoch: int | None = None,
        documents: bool = False,
        seed: int = 0,
    ) -> Estimate:
        """From counts per sentence and type [S, T, 3], all folds together."""
        drawn, total, holding = resampled(counts, seed), counts.sum(0), (counts[..., 1] > 0).sum(0)
        factor = widening(folds, share)
        rows = tuple(
            _type(type_, total[index], int(holding[index]), drawn[:, index], factor)
            for index, type_ in enumerate(types)
            if total[index, 1]  # a type without a gold mention cannot be scored
        )
        return cls(how, len(counts), rows, folds, share, epoch, documents)

    def of_type(self, type_: str) -> TypeEstimate | None:
        return next((row for row in self.types if row.type == type_), None)

    def below(self, least: float, types: Sequence[str], *, strict: bool = False) -> tuple[str, ...]:
        """Types with an F1 below ``least``. If strict: types whose interval begins below it, and types with
        too few mentions.
        """
        failed = []
        for type_ in types:
            row = self.of_type(type_)
            if row is None or not row.is_enough:
                if strict:
                    failed.append(type_)
            elif (row.f1.low if strict else row.f1.value) < least:
                failed.append(type_)
        return tuple(failed)

    def figures(self) -> str:
        """F1 of each type in one line."""
        rows = (
            f"{row.type} {row.f1.value:.1f} [{row.f1.low:.1f}, {row.f1.high:.1f}]"
            + ("" if row.is_enough else " (too few mentions)")
            for row in self.types
        )
        return ", ".join(rows)

    def in_words(self) -> str:
        """What was scored, and how to read it."""
        if self.how == "test":
            return f"the model itself, on {self.sentences:,} sentences that it was not trained on"
        if self.how == "held-out":
            saw = f"a model that was trained on {self.share:.0%} of the new sentences, scored on the rest"
        else:
            saw = (
                f"{self.folds} models that each saw {self.folds - 1} in {self.folds} of your sentences, "
                "scored on the rest"
            )
        return f"{saw}: slightly pessimistic, because the model itself learned from all of them"

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {
            "types": [row.to_json() for row in self.types],
            "in_words": self.in_words(),
        }


def found_by(sentences: Sequence[Sentence], found: Sequence[Sequence[Span]], types: Sequence[str]) -> Floats:
    """Counts per sentence and type [S, T, 3]. Predictions of other types are ignored: the data lacks them."""
    return sentence_counts([sentence.spans for sentence in sentences], found, types)


def from_json(told: Mapping[str, Any]) -> Estimate:
    """The estimate that ``to_json`` wrote; anything else raises a KeyError, a TypeError or a ValueError."""

    def read(value: Mapping[str, Any] | None) -> Interval | None:
        if value is None:
            return None
        ends = [float(value[end]) for end in ("value", "low", "high")]
        if not all(0 <= end <= 100 for end in ends):  # false for nan too
            raise ValueError(f"an interval of {ends}")
        return Interval(*ends)

    rows = []
    for row in told["types"]:
        f1, recall = read(row["f1"]), read(row["recall"])
        if f1 is None or recall is None:
            raise ValueError("a type without F1 or recall")
        rows.append(
            TypeEstimate(
                str(row["type"]),
                int(row["mentions"]),
                int(row["sentences"]),
                f1,
                read(row["precision"]),
                recall,
            )
        )
    if told["how"] not in {"test", "held-out", "folds"}:
        raise ValueError(f"'how' is {told['how']!r}")
    epoch = told.get("epoch")
    return Estimate(
        told["how"],
        int(told["sentences"]),
        tuple(rows),
        int(told["folds"]),
        float(told["share"]),
        None if epoch is None else int(epoch),
        bool(told["documents"]),
    )


def widening(folds: int, share: float) -> float:
    """How much to widen an interval from resampled sentences, because the final model is not one of the
    models that were scored (Nadeau and Bengio 2003): sqrt(1 + folds * scored / trained on).

    For K folds that is sqrt(1 + K / (K - 1)); for the model itself 1.
    """
    return float(np.sqrt(1 + folds * (1 - share) / share))


def _type(type_: str, total: Floats, holding: int, drawn: Floats, factor: float) -> TypeEstimate:
    def widened(figure: Floats, draws: Floats) -> Interval:
        value, low, high = interval(float(figure), draws)
        low, high = value - factor * (value - low), value + factor * (high - value)
        # resampling sentences that are all right, or all wrong, would give an interval of width zero
        unseen = NONE_SEEN / holding
        low = min(low, value - unseen) if value >= 100 else low
        high = max(high, value + unseen) if value <= 0 else high
        return Interval(value, max(0.0, low), min(100.0, high))

    return TypeEstimate(
        type_,
        int(total[1]),
        holding,
        widened(f1_of(total), f1_of(drawn)),
        widened(precision_of(total), precision_of(drawn)) if total[2] else None,
        widened(recall_of(total), recall_of(drawn)),
    )
