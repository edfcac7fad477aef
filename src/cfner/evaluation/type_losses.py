"""What each type has lost since it was learned: F1 when learned, at the end, and the difference."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from cfner.evaluation.scores import Scores

ENOUGH_MENTIONS: Final = 30  # in the test data; with fewer, a type's F1 is too noisy for a mean over types
MANY_MENTIONS: Final = 100  # for a figure about a single type


class WorstType(NamedTuple):
    """The type with the largest loss, and that loss in points of F1."""

    type: str
    lost: float


@dataclass(frozen=True)
class TypeLosses:
    """F1 of each type in percent; None for types that the test data never mentions.

    ``when_learned``: after the step that introduced the type. ``at_the_end``: after the last step.
    ``lost``: the difference, negative when the type got better; also None for types of the last step, which
    could not lose anything yet. ``mentions``: how often the test data mentions each type.
    """

    when_learned: Mapping[str, float | None]
    at_the_end: Mapping[str, float | None]
    lost: Mapping[str, float | None]
    mentions: Mapping[str, int]

    @classmethod
    def of(cls, steps: Sequence[Scores]) -> TypeLosses:
        """From the scores after each step, each on the test data of all types learned up to then."""
        learned_in: dict[str, int] = {}
        for number, scores in enumerate(steps):
            for type_ in scores.types:
                learned_in.setdefault(type_, number)
        mentions = {type_: steps[-1].counts[type_].n_gold for type_ in learned_in}
        when = {t: steps[number].counts[t].f1 if mentions[t] else None for t, number in learned_in.items()}
        end = {t: steps[-1].counts[t].f1 if mentions[t] else None for t in learned_in}
        earlier = {t for t, number in learned_in.items() if number < len(steps) - 1}
        lost = {t: _less(when[t], end[t]) if t in earlier else None for t in learned_in}
        return cls(when, end, lost, mentions)

    def last_macro(self, least: int = ENOUGH_MENTIONS) -> float | None:
        """Macro F1 after the last step, over the types with at least so many test mentions."""
        return _mean(self.at_the_end[type_] for type_ in self._with(least))

    def mean_when_learned(self, least: int = ENOUGH_MENTIONS) -> float | None:
        """This mean and the next two are over the same types: those with a loss and at least ``least`` test
        mentions. The third is the first minus the second."""
        return _mean(self.when_learned[type_] for type_ in self._that_can_lose(least))

    def mean_at_the_end(self, least: int = ENOUGH_MENTIONS) -> float | None:
        return _mean(self.at_the_end[type_] for type_ in self._that_can_lose(least))

    def mean_lost(self, least: int = ENOUGH_MENTIONS) -> float | None:
        return _mean(self.lost[type_] for type_ in self._that_can_lose(least))

    def worst_type(self, least: int = MANY_MENTIONS) -> WorstType | None:
        """Among types with at least ``least`` test mentions; of equal losses the type learned first."""
        found = (WorstType(t, lost) for t in self._with(least) if (lost := self.lost[t]) is not None)
        return max(found, key=lambda worst: worst.lost, default=None)

    def to_json(self) -> dict[str, Any]:
        worst, worst_30 = self.worst_type(), self.worst_type(ENOUGH_MENTIONS)
        return {
            "last_macro_f1_30": self.last_macro(),
            "when_learned": dict(self.when_learned),
            "at_the_end": dict(self.at_the_end),
            "lost": dict(self.lost),
            "mean_when_learned": self.mean_when_learned(),
            "mean_at_the_end": self.mean_at_the_end(),
            "mean_lost": self.mean_lost(),
            "worst_type": None if worst is None else worst._asdict(),
            "worst_type_30": None if worst_30 is None else worst_30._asdict(),
        }

    def _with(self, least: int) -> list[str]:
        return [type_ for type_, count in self.mentions.items() if count >= least]

    def _that_can_lose(self, least: int) -> list[str]:
        return [type_ for type_ in self._with(least) if self.lost[type_] is not None]


def _less(value: float | None, other: float | None) -> float | None:
    return None if value is None or other is None else value - other


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None
