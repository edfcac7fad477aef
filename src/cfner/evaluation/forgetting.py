"""The step x type matrix of F1 scores and what follows from it: means over steps, forgetting."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from cfner.errors import StreamError
from cfner.evaluation.scores import Scores
from cfner.evaluation.type_losses import TypeLosses


@dataclass(frozen=True)
class StepMatrix:
    """The scores after each step, each on the test data of all types learned up to then.

    Types are never unlearned: each step's ``types`` contain those of the step before.
    """

    steps: tuple[Scores, ...] = ()

    def __post_init__(self) -> None:
        for number, (before, after) in enumerate(zip(self.steps, self.steps[1:], strict=False), start=2):
            missing = [type_ for type_ in before.types if type_ not in after.types]
            if missing:
                raise StreamError(
                    f"The scores of step {number} lack the type '{missing[0]}', which was learned before.",
                    remedy="Score every step on all types learned so far.",
                )

    def with_step(self, scores: Scores) -> Self:
        """The matrix with one more step."""
        return type(self)((*self.steps, scores))

    @property
    def types(self) -> tuple[str, ...]:
        """All types, in the order in which they were learned."""
        return tuple(dict.fromkeys(type_ for scores in self.steps for type_ in scores.types))

    @property
    def per_type(self) -> tuple[dict[str, float | None], ...]:
        """For each step the F1 of every type in percent; None for types not learned yet."""
        return tuple({type_: scores.f1_of.get(type_) for type_ in self.types} for scores in self.steps)

    @property
    def micro(self) -> tuple[float, ...]:
        return tuple(scores.micro_f1 for scores in self.steps)

    @property
    def macro(self) -> tuple[float, ...]:
        return tuple(scores.macro_f1 for scores in self.steps)

    @property
    def mean_micro(self) -> float:
        """The mean over all steps, the first included."""
        return statistics.fmean(self._scored(self.micro))

    @property
    def mean_macro(self) -> float:
        return statistics.fmean(self._scored(self.macro))

    @property
    def last_micro(self) -> float:
        return self._scored(self.micro)[-1]

    @property
    def last_macro(self) -> float:
        return self._scored(self.macro)[-1]

    @property
    def forgetting(self) -> dict[str, float | None]:
        """Per type: the best F1 of an earlier step minus the last one; negative when the type got better.

        None for types of the last step, which could not be forgotten yet, and for types that the test data
        does not mention.
        """
        *earlier, last = self.per_type or ({},)
        lost: dict[str, float | None] = {}
        for type_, now in last.items():
            before = [f1 for row in earlier if (f1 := row[type_]) is not None]
            seen = self.steps[-1].counts[type_].n_gold > 0
            lost[type_] = max(before) - now if before and now is not None and seen else None
        return lost

    @property
    def mean_forgetting(self) -> float | None:
        """The mean over the types that can have been forgotten; None after a single step."""
        lost = [value for value in self.forgetting.values() if value is not None]
        return statistics.fmean(lost) if lost else None

    @property
    def losses(self) -> TypeLosses:
        """Per type: F1 when learned, F1 at the end, and the difference."""
        return TypeLosses.of(self.steps)

    def to_json(self) -> dict[str, Any]:
        """The figures of each step, and the summary over steps. At least one step is required."""
        steps = [scores.figures() for scores in self.steps]
        return {
            "steps": steps,
            "mean_micro_f1": self.mean_micro,
            "mean_macro_f1": self.mean_macro,
            "last_micro_f1": self.last_micro,
            "last_macro_f1": self.last_macro,
            "forgetting": self.forgetting,
            "mean_forgetting": self.mean_forgetting,
            **self.losses.to_json(),
            "confusion": steps[-1]["confusion"],
        }

    def _scored(self, values: tuple[float, ...]) -> tuple[float, ...]:
        if not values:
            raise StreamError("No step has been scored yet.", remedy="Add scores with with_step(scores).")
        return values


class MeanStd(NamedTuple):
    """A mean over seeds and its standard deviation; no deviation for a single seed."""

    mean: float
    std: float | None


def mean_and_std(values: Sequence[float]) -> MeanStd:
    """Mean and sample standard deviation (divided by n - 1): the seeds are a sample of all possible seeds."""
    if not values:
        raise ValueError("a mean needs at least one value")
    return MeanStd(statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None)
