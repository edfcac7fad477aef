"""Would more labels help? Models learn from a quarter, half and all of the new data, and tag the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from cfner.errors import ConfigError
from cfner.evaluation.estimate import Estimate, widening
from cfner.evaluation.intervals import Floats, Interval, f1_of, interval, resampled
from cfner.pages.svg import SERIES, Svg, curve, dot, line, text
from cfner.practice.learn.cross_validation import Plan, counts_with
from cfner.stream.step import Step
from cfner.tagger import ContinualTagger
from cfner.training.progress import Progress

Advice = Literal["label more", "more of the same helps little", "too early to tell"]

SHARES: Final = (0.25, 0.5, 1.0)
FOLDS: Final = 3
_ROW: Final = 15.0  # pixels from one name to the next
LITTLE: Final = 2.0  # F1 points that do not justify labelling twice as much


@dataclass(frozen=True)
class Gain:
    """What the second half of the data added to a type's F1, in points."""

    type: str
    points: Interval
    advice: Advice


@dataclass(frozen=True)
class LearningCurve:
    """``sentences``: the number of training sentences at each point; ``estimates``: the scores there."""

    sentences: tuple[int, ...]
    estimates: tuple[Estimate, ...]
    gains: tuple[Gain, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "sentences": list(self.sentences),
            "estimates": [estimate.to_json() for estimate in self.estimates],
            "gains": [
                {"type": gain.type, "points": gain.points._asdict(), "advice": gain.advice}
                for gain in self.gains
            ],
        }

    def f1(self, type_: str) -> Iterator[tuple[int, Interval]]:
        """(sentences, F1) at each point."""
        for sentences, estimate in zip(self.sentences, self.estimates, strict=True):
            if (row := estimate.of_type(type_)) is not None:
                yield sentences, row.f1


def learning_curve(tagger: ContinualTagger, step: Step, progress: Progress | None = None) -> LearningCurve:
    """Three points, each by cross-validation with three models."""
    plan = Plan.of(step.train, FOLDS, 0)
    if plan is None:
        raise ConfigError(
            f"{len(step.train)} sentences are too few for a learning curve.", remedy="Label some more first."
        )
    counts = [counts_with(tagger, step, plan, share, progress) for share in SHARES]
    seen = plan.share_trained_on(len(step.train))
    estimates = [
        Estimate.of("folds", found, step.types, folds=FOLDS, share=seen, documents=plan.documents)
        for found in counts
    ]
    sentences = tuple(round(share * seen * len(step.train)) for share in SHARES)
    return LearningCurve(sentences, tuple(estimates), tuple(_gains(counts[-2], counts[-1], step.types, seen)))


def _gains(half: Floats, whole: Floats, types: Sequence[str], seen: float) -> Iterator[Gain]:
    """A paired difference: both models tag the same sentences, so common variation cancels."""
    both = np.stack([half, whole], axis=1)
    drawn, total, factor = f1_of(resampled(both, 0)), f1_of(both.sum(0)), widening(FOLDS, seen)
    for index, type_ in enumerate(types):
        if not whole[:, index, 1].any():
            continue
        value, low, high = interval(
            float(total[1, index] - total[0, index]), drawn[:, 1, index] - drawn[:, 0, index]
        )
        points = Interval(value, value - factor * (value - low), value + factor * (high - value))
        yield Gain(type_, points, advice_on(points))


def advice_on(gain: Interval) -> Advice:
    if gain.low > 0:
        return "label more"
    return "more of the same helps little" if gain.high < LITTLE else "too early to tell"


def picture(found: LearningCurve) -> Svg:
    """F1 against sentences, a line per type with its intervals."""
    left, top, width, height, types = 56.0, 48.0, 380.0, 240.0, [gain.type for gain in found.gains]
    most = max(found.sentences)

    def x(sentences: float) -> float:
        return left + width * sentences / most

    def y(f1: float) -> float:
        return top + height * (1 - f1 / 100)

    parts = []
    for mark in range(0, 101, 20):
        parts += [
            line(left, y(mark), left + width, y(mark)),
            text(left - 8, y(mark) + 4, str(mark), anchor="end"),
        ]
    for sentences in found.sentences:
        parts.append(text(x(sentences), top + height + 18, f"{sentences:,}", anchor="middle"))
    parts.append(text(left + width / 2, top + height + 38, "sentences learned from", anchor="middle"))
    ends = []
    for number, type_ in enumerate(types):
        points = [(x(sentences) + 3 * number, f1) for sentences, f1 in found.f1(type_)]
        parts.append(curve([(place, y(f1.value)) for place, f1 in points], number))
        for place, f1 in points:
            parts.append(line(place, y(f1.low), place, y(f1.high), f"v-s{number % SERIES}", 1.2))
            parts.append(dot(place, y(f1.value), number, 3.5))
        ends.append((y(points[-1][1].value), type_))
    lowest = -_ROW
    for wanted, type_ in sorted(ends):  # keep names from overlapping
        lowest = max(wanted, lowest + _ROW)
        parts.append(text(left + width + 3 * len(types) + 12, lowest + 4, type_, room=150))
    title = "F1 of the new types, with 95 % intervals"
    return Svg.titled(title, left + width + 190, top + height + 54, parts)
