"""Scores and the sentences that they were measured on, as saved with a step."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from cfner.evaluation.scores import Scores
from cfner.stream.sentence_set import SentenceSet

NOT_RECORDED = "the sentences are not recorded"


@dataclass(frozen=True)
class Measured:
    """``on`` is None where an earlier version of cfner did not record the sentences. ``said`` is what it
    wrote about them.
    """

    scores: Scores
    on: SentenceSet | None = None
    said: str = ""

    @property
    def label(self) -> str:
        if self.on is not None:
            return self.on.label
        return f"{NOT_RECORDED} ({self.said})" if self.said else NOT_RECORDED

    def comparable(self) -> Scores:
        """The scores of the types that the sentences mention: the other types cannot be scored on them."""
        if self.on is None:
            return self.scores
        return self.scores.without([t for t in self.scores.counts if t not in self.on.mentions])

    def renamed(self, types: Collection[str], into: str) -> Measured:
        """The same figures where ``types`` are called ``into``, in the model and in the sentences."""

        def name(type_: str) -> str:
            return into if type_ in types else type_

        scores, on = self.scores, self.on
        told = Scores(
            tuple(name(t) for t in scores.types),
            {name(t): counts for t, counts in scores.counts.items()},
            scores.confusions,
        )
        if on is not None:
            mentions = {name(t): count for t, count in on.mentions.items()}
            on = SentenceSet(on.hash, on.sentences, mentions, on.name)
        return Measured(told, on, self.said)

    def to_json(self) -> dict[str, Any]:
        on = {} if self.on is None else {"set": self.on.to_json()}
        return {**self.scores.to_json(), **on, **({"scored_on": self.said} if self.said else {})}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Measured:
        """Reads what any version's ``to_json`` wrote; raises a KeyError or a ValueError for anything else."""
        on = SentenceSet.from_json(data["set"]) if "set" in data else None
        return Measured(Scores.from_json(data), on, str(data.get("scored_on", "")))


def over_all(scored: Collection[str], known: Collection[str]) -> bool:
    """Whether a mean over the types ``scored`` covers all types that a model knows."""
    return bool(known) and set(known) <= set(scored)
