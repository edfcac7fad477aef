"""Agreement of two models on the old types of a text. It needs no labels: it shows that the new model still
predicts what the old one did, not that either is right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from cfner.corpus.sentence import Span


@dataclass(frozen=True)
class TypeAgreement:
    """Mentions of one old type: found by the old model, by the new one, and by both."""

    type: str
    old: int
    new: int
    both: int

    @property
    def agreement(self) -> float | None:
        """Percent, both against the mean of old and new; None if neither found any."""
        return 200 * self.both / (self.old + self.new) if self.old + self.new else None


@dataclass(frozen=True)
class AgreementReport:
    """Agreement on one text, called ``where``. ``trained_on``: the new model may have been trained to agree
    on it, so the figure is optimistic.
    """

    where: str
    sentences: int
    types: tuple[TypeAgreement, ...]
    trained_on: bool = False
    kind: str = "agreement"

    @property
    def agreement(self) -> float | None:
        return TypeAgreement(
            "",
            sum(t.old for t in self.types),
            sum(t.new for t in self.types),
            sum(t.both for t in self.types),
        ).agreement

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "where": self.where,
            "sentences": self.sentences,
            "trained_on": self.trained_on,
            "agreement": self.agreement,
            "types": [
                {"type": t.type, "old": t.old, "new": t.new, "both": t.both, "agreement": t.agreement}
                for t in self.types
            ],
        }


def agreement(
    where: str,
    old: Sequence[Collection[Span]],
    new: Sequence[Collection[Span]],
    old_types: Sequence[str],
    labelled: Sequence[Collection[Span]] | None = None,
    *,
    trained_on: bool = False,
) -> AgreementReport:
    """Compare predictions mention by mention.

    ``labelled``: mentions that the new data labels. Predictions that overlap one are left out, because there
    the new labels replace the old model's predictions.
    """
    marked = labelled if labelled is not None else [()] * len(old)
    tallies = {key: Counter[str]() for key in ("old", "new", "both")}
    for before, after, gold in zip(old, new, marked, strict=True):
        first, second = _clear(before, gold), _clear(after, gold)
        for key, spans in (("old", first), ("new", second), ("both", first & second)):
            tallies[key].update(span.type for span in spans)
    types = tuple(
        TypeAgreement(t, tallies["old"][t], tallies["new"][t], tallies["both"][t]) for t in old_types
    )
    return AgreementReport(where, len(old), types, trained_on)


def _clear(spans: Collection[Span], gold: Collection[Span]) -> set[Span]:
    return {span for span in spans if not any(span.overlaps(g) for g in gold)}
