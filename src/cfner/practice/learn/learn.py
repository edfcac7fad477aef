"""Teach a model that is in use new types, from text labelled with them alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cfner.corpus.sentence import Sentence, Span
from cfner.errors import ConfigError, nearest
from cfner.evaluation.metrics import score
from cfner.evaluation.scores import Counts, Scores
from cfner.files.lock import locked
from cfner.network.prediction import tag
from cfner.practice.learn.agreement import AgreementReport, agreement
from cfner.practice.learn.guard import GuardReport, guard
from cfner.practice.learn.new_data import (
    ComparedText,
    NewData,
    compared_texts,
    labelled_sentences,
    replayed_sentences,
)
from cfner.practice.learn.plan import StepPlan, plan_step, refuse_method
from cfner.runs.unfinished import Workplace
from cfner.store.model_files import FIXED_AT_CREATION
from cfner.stream.manifest import sentences_hash, settings_hash
from cfner.stream.stream import Step
from cfner.tagger import ContinualTagger
from cfner.training.config import given_settings
from cfner.training.progress import Progress

Spans = list[tuple[Span, ...]]


@dataclass(frozen=True)
class Learned:
    """What came of it. ``folder`` holds the new model: where it was asked for, or aside if it was refused."""

    folder: Path
    accepted: bool
    plan: StepPlan
    step: int
    parent: int  # the step that it was learned from
    best_epoch: int
    epochs: tuple[dict[str, float], ...]
    scores: Scores  # of the types that there was data to score
    scored_on: str
    guard: GuardReport | None
    agreement: tuple[AgreementReport, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "folder": str(self.folder),
            "accepted": self.accepted,
            "step": self.step,
            "parent": self.parent,
            "new_types": list(self.plan.new),
            "more_data_for": list(self.plan.more),
            "ignored_types": list(self.plan.ignored),
            "best_epoch": self.best_epoch,
            "epochs": list(self.epochs),
            "scores": self.scores.to_json(),
            "scored_on": self.scored_on,
            "guard": None if self.guard is None else self.guard.to_json(),
            "agreement": [report.to_json() for report in self.agreement],
        }


def learn(
    model: str | Path,
    data: str,
    *,
    out: str | Path | None = None,
    in_place: bool = False,
    types: Sequence[str] | None = None,
    old_labels: str = "error",
    replay: str | Path | None = None,
    guard_data: str | Path | None = None,
    max_forgetting: float = 2.0,
    accept_forgetting: Sequence[str] = (),
    unlabelled: Sequence[str | Path] = (),
    preset: str | None = None,
    config: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    reading: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Learned:
    """Teach ``model`` (a folder of ours, or a Hugging Face checkpoint) the types labelled in ``data``.

    The new model goes to ``out``, or is added to the model with ``in_place``; if the guard refuses it, it is
    kept aside instead. ``settings`` are those of TrainingConfig, over those in the file ``config``;
    ``reading`` those of Corpus.read.
    """
    place = Workplace.choose(model, out, in_place)
    _refuse_limit(max_forgetting)
    fresh = NewData.read(data, **(reading or {}))
    given = given_settings(settings, file=config, preset=preset, fixed=FIXED_AT_CREATION)
    wanted = {"select_on": "new+old", **given}
    tagger = ContinualTagger.open(model, **wanted)
    place.begin(_identity(tagger, fresh, types, old_labels, replay))
    refuse_method(tagger.method, tagger.model.network.head.kind)
    guarded = None
    if guard_data is not None:
        guarded = labelled_sentences(guard_data, tagger.types)
    plan = plan_step(fresh.types, tagger.types, types, old_labels)
    fresh = fresh.only(plan.current)
    known = tuple(t for t in tagger.types if t not in plan.current)
    step = Step(
        types=plan.current,
        train=fresh.train,
        dev=fresh.dev,
        known=known,
        index=max(1, _number(tagger)),
        name=f"learn {', '.join(plan.current)}",
        replay=replayed_sentences(replay, known),
    )
    judge = _Judge(tagger, known, guarded, compared_texts(fresh, unlabelled))
    judge.check_accepted(accept_forgetting)
    first: dict[str, Any] = {}
    if guarded is not None and tagger.saved_step is None:  # a checkpoint, about to become the first step
        first = {"scores": _score_on(tagger, guarded, tagger.types), "scored_on": "the guard's sentences"}
    with locked(place.unfinished):
        tagger = place.start(tagger, wanted, first)
        parent = _number(tagger)
        record = tagger.learn(step, progress, unfinished=place.unfinished)
        report = judge.guard(tagger, max_forgetting, accept_forgetting)
        agreements = judge.agreements(tagger)
        scores, scored_on = _scores(tagger, fresh, plan.current, guarded, known)
        accepted = report is None or not report.refused
        told = {
            "scored_on": scored_on,
            "guard": None if report is None else report.to_json(),
            "agreement": [item.to_json() for item in agreements],
        }
        save = place.accept if accepted else place.refuse
        extras = {"report.json": {"accepted": accepted, **told}}
        folder = save(tagger, {"scores": scores, "scored_on": scored_on, "extras": extras})
    return Learned(
        folder=folder,
        accepted=accepted,
        plan=plan,
        step=_number(tagger),
        parent=parent,
        best_epoch=record.best_epoch or 0,
        epochs=tuple(record.history),
        scores=scores,
        scored_on=scored_on,
        guard=report,
        agreement=agreements,
    )


class _Judge:
    """Asks the old model before the step, the new one after it, and compares."""

    def __init__(
        self,
        tagger: ContinualTagger,
        known: tuple[str, ...],
        guarded: Sequence[Sentence] | None,
        texts: Mapping[str, ComparedText],
    ) -> None:
        self.old_types, self.known, self.guarded, self.texts = tagger.types, known, guarded, texts
        self.guarded_before = None if guarded is None else _spans(tagger, guarded)
        self.before = {name: _spans(tagger, text.sentences) for name, text in texts.items()}

    def check_accepted(self, types: Sequence[str]) -> None:
        """Before hours of training, not after."""
        for type_ in types:
            if type_ not in self.old_types:
                raise ConfigError(
                    f"--accept-forgetting names '{type_}', which the model does not know.",
                    remedy=nearest(type_, self.old_types),
                )

    def guard(
        self, tagger: ContinualTagger, max_forgetting: float, accepted: Sequence[str]
    ) -> GuardReport | None:
        if self.guarded is None or self.guarded_before is None:
            return None
        return guard(
            self.guarded,
            self.guarded_before,
            _spans(tagger, self.guarded),
            self.old_types,
            max_forgetting=max_forgetting,
            accepted=accepted,
        )

    def agreements(self, tagger: ContinualTagger) -> tuple[AgreementReport, ...]:
        return tuple(
            agreement(name, self.before[name], _spans(tagger, text.sentences), self.known, text.labelled)
            for name, text in self.texts.items()
        )


def _refuse_limit(max_forgetting: float) -> None:
    if not 0 <= max_forgetting <= 100:  # not a number is neither
        raise ConfigError(
            f"--max-forgetting cannot be {max_forgetting}.", remedy="Give F1 points, from 0 to 100."
        )


def _identity(
    tagger: ContinualTagger,
    fresh: NewData,
    types: Sequence[str] | None,
    old_labels: str,
    replay: str | Path | None,
) -> str:
    """Names what a call asks for, not what is made of it: a model that has learned it plans otherwise."""
    return settings_hash(
        {
            "config": tagger.config.what_matters(),
            "train": sentences_hash(fresh.train),
            "dev": sentences_hash(fresh.dev),
            "types": None if types is None else sorted(types),
            "old_labels": old_labels,
            "replay": None if replay is None else str(Path(replay).resolve()),
        }
    )


def _number(tagger: ContinualTagger) -> int:
    """The step that the tagger was saved as; 0 if it was not."""
    return int(tagger.saved_step.name) if tagger.saved_step is not None else 0


def _spans(tagger: ContinualTagger, sentences: Sequence[Sentence]) -> Spans:
    found = tag(tagger.model, sentences, batch_size=tagger.config.eval_batch_size)
    return [prediction.spans for prediction in found]


def _gold_and_found(
    tagger: ContinualTagger, sentences: Sequence[Sentence], types: Collection[str]
) -> tuple[Spans, Spans]:
    """Only mentions of ``types``, on both sides: the data does not label the others."""
    found = [tuple(span for span in spans if span.type in types) for spans in _spans(tagger, sentences)]
    return [sentence.only(types).spans for sentence in sentences], found


def _score_on(tagger: ContinualTagger, sentences: Sequence[Sentence], types: Collection[str]) -> Scores:
    """Scores of those of ``types`` that the sentences mention: of the others they say nothing."""
    mentioned = {type_ for sentence in sentences for type_ in sentence.types}
    scored = [type_ for type_ in types if type_ in mentioned]
    return score(*_gold_and_found(tagger, sentences, scored), scored)


def _scores(
    tagger: ContinualTagger,
    fresh: NewData,
    current: Sequence[str],
    guarded: Sequence[Sentence] | None,
    known: Sequence[str],
) -> tuple[Scores, str]:
    """Each type on the data that labels it, and in words what that was."""
    counts: dict[str, Counts] = {}
    said = []
    if guarded is not None and known:
        counts |= _score_on(tagger, guarded, known).counts
        said.append("old types on the guard's sentences")
    sentences, which = (fresh.test, "test") if fresh.test else (fresh.dev, "held-out")
    if sentences:
        counts |= _score_on(tagger, sentences, current).counts
        chosen = "" if fresh.test else " (which also chose the epoch)"
        said.append(f"the step's types on the {which} sentences of the new data{chosen}")
    return Scores(tuple(counts), counts), "; ".join(said) or "nothing"
