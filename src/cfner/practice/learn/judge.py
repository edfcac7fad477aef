"""Judge a new model: forgetting, agreement and scores.

Each text is tagged once by the old model and once by the new one; everything else is computed from these
predictions.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cfner.corpus.sentence import Sentence, Span
from cfner.errors import ConfigError, nearest
from cfner.evaluation.estimate import Estimate, found_by
from cfner.evaluation.metrics import score_labelled
from cfner.evaluation.scores import Scores
from cfner.practice.learn.agreement import AgreementReport, agreement
from cfner.practice.learn.attempts import earlier_attempts, fingerprint
from cfner.practice.learn.guard import guard
from cfner.practice.learn.guard_report import GuardReport
from cfner.practice.learn.new_data import NewData
from cfner.practice.learn.types_found import SAMPLE, sampled
from cfner.practice.learn.unlabelled import UnlabelledText
from cfner.runs.cost import timed_find
from cfner.runs.run_step import Judgement
from cfner.store.step_files import REPORT
from cfner.stream.sentence_set import SentenceSet
from cfner.tagger import ContinualTagger

Spans = Sequence[tuple[Span, ...]]


@dataclass(frozen=True)
class LearnJudgement(Judgement):
    guard: GuardReport | None = None
    agreement: tuple[AgreementReport, ...] = ()
    seconds_after: float = 0.0  # per sentence of the new data
    estimate: Estimate | None = None  # of the step's types
    below: tuple[str, ...] = ()  # those below the requested F1

    @property
    def accepted(self) -> bool:
        return not self.below and (self.guard is None or not self.guard.refused)


class Judge:
    """Runs the old model when created, and the new one when called.

    ``new_data`` has only the labels of the types in ``current``. ``guarded`` are sentences labelled with old
    types, from ``guard_name``; ``unlabelled`` is text to compare the two models on. ``tested`` are sentences
    of the new data that score the new types; without them ``estimate`` may be set before the new model is
    judged. ``beside``: where to look for earlier attempts on the same guard.
    """

    def __init__(
        self,
        old: ContinualTagger,
        new_data: NewData,
        current: Sequence[str],
        guarded: Sequence[Sentence] | None,
        unlabelled: UnlabelledText,
        *,
        max_forgetting: float,
        accepted: Sequence[str],
        tested: Sequence[Sentence] = (),
        min_new_f1: float | None = None,
        strict: bool = False,
        guard_name: str = "",
        beside: Collection[Path] = (),
    ) -> None:
        _refuse_unknown(accepted, old.types)
        self.old_types, self.current = old.types, current
        self.kept = tuple(type_ for type_ in old.types if type_ not in current)
        self.new_data, self.guarded = new_data, guarded
        self.max_forgetting, self.accepted = max_forgetting, accepted
        self.tested, self.min_new_f1, self.strict = tested, min_new_f1, strict
        self.estimate: Estimate | None = None
        self.beside = beside
        # a known type that is trained again may win words of another
        fixed = old.method.keeps_predictions and current and self.kept == self.old_types
        self.constant = self.kept if fixed else ()
        # held-out sentences if there are any, because the student was trained to agree on the rest
        self.own = new_data.dev or sampled(new_data.train, SAMPLE)
        self.unlabelled, self.promise = unlabelled, old.method.promise
        self.guard_set = None if guarded is None else SentenceSet.of(guarded, guard_name)
        self.guarded_before = None if guarded is None else old.find(guarded)
        self.own_before, self.seconds_before = timed_find(old, self.own)
        self.texts_before = {name: old.find(text) for name, text in unlabelled.compared.items()}

    def of_old_model(self) -> Judgement | None:
        """The scores to save with a checkpoint that becomes the first step; None without labelled
        sentences."""
        if self.guarded is None or self.guarded_before is None:
            return None
        scores = score_labelled(self.guarded, self.guarded_before, self.old_types)
        return Judgement(scores, self.guard_set)

    def __call__(self, new: ContinualTagger) -> LearnJudgement:
        guarded_after = None if self.guarded is None else new.find(self.guarded)
        own_after, seconds_after = timed_find(new, self.own)
        report = self._guard(guarded_after)
        agreements = self._agreements(own_after, new)
        scores = self._score(guarded_after, new)
        scored_on = self.guard_set
        estimate = self._estimate(new)
        below = self._below(estimate)
        stored = {
            "accepted": not below and (report is None or not report.refused),
            "promise": self.promise,
            "scored_on": None if scored_on is None else scored_on.to_json(),
            "guard": None if report is None else report.to_json(),
            "agreement": [item.to_json() for item in agreements],
            "new_types": None if estimate is None else estimate.to_json(),
        }
        return LearnJudgement(
            scores, scored_on, {REPORT: stored}, report, agreements, seconds_after, estimate, below
        )

    def _estimate(self, new: ContinualTagger) -> Estimate | None:
        if not self.tested:
            return self.estimate
        return Estimate.of("test", found_by(self.tested, new.find(self.tested), self.current), self.current)

    def _below(self, estimate: Estimate | None) -> tuple[str, ...]:
        if self.min_new_f1 is None:
            return ()
        if estimate is None:  # nothing shows that they reach the required F1
            return tuple(self.current) if self.strict else ()
        return estimate.below(self.min_new_f1, self.current, strict=self.strict)

    def _guard(self, after: Spans | None) -> GuardReport | None:
        if self.guarded is None or self.guarded_before is None or after is None:
            return None
        report = guard(
            self.guarded,
            self.guarded_before,
            after,
            self.old_types,
            max_forgetting=self.max_forgetting,
            accepted=self.accepted,
            constant=self.constant,
            strict=self.strict,
        )
        mark = fingerprint(self.guarded, self.guarded_before)
        return replace(report, fingerprint=mark, earlier_attempts=earlier_attempts(mark, self.beside))

    def _agreements(self, own_after: Spans, new: ContinualTagger) -> tuple[AgreementReport, ...]:
        which = "held-out" if self.new_data.dev else "training"
        where = f"the new text ({which} sentences of {self.new_data.name})"
        labelled = [sentence.spans for sentence in self.own]
        seen = not self.new_data.dev
        reports = [agreement(where, self.own_before, own_after, self.kept, labelled, trained_on=seen)]
        for name, text in self.unlabelled.compared.items():
            seen = name in self.unlabelled.trained_on
            found = self.texts_before[name], new.find(text)
            reports.append(agreement(name, *found, self.kept, trained_on=seen))
        return tuple(reports)

    def _score(self, guarded_after: Spans | None, new: ContinualTagger) -> Scores:
        """Scores on the guard's sentences only, of all types that they mention."""
        if self.guarded is None or guarded_after is None:
            return Scores((), {})
        return score_labelled(self.guarded, guarded_after, new.types)


def _refuse_unknown(accepted: Sequence[str], known: Sequence[str]) -> None:
    """Report wrong type names before training, not after."""
    for type_ in accepted:
        if type_ not in known:
            raise ConfigError(
                f"`accept_forgetting` names '{type_}', which the model does not know.",
                remedy=nearest(type_, known),
            )
