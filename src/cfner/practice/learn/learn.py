"""Teach an existing model new types, from text labelled only with them."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cfner.corpus.in_memory import Data
from cfner.corpus.sentence import Sentence
from cfner.errors import ConfigError
from cfner.practice.evaluate.steps import keep_scores, score_steps
from cfner.practice.learn.advice import what_to_try
from cfner.practice.learn.attempts import places_of_attempts
from cfner.practice.learn.cross_validation import Scoring, cross_validate, refuse_folds
from cfner.practice.learn.guard_report import GuardReport
from cfner.practice.learn.inputs import Inputs
from cfner.practice.learn.judge import Judge
from cfner.practice.learn.learned import Learned
from cfner.practice.learn.new_data import (
    HELD_OUT,
    NewData,
    mentioning,
    refuse_share,
    replayed_sentences,
)
from cfner.practice.learn.plan import plan_step, refuse_method
from cfner.practice.learn.types_found import HANDFUL, TypesFound, not_reminded
from cfner.practice.learn.unlabelled import Given, Texts, UnlabelledText
from cfner.runs.cost import Cost, disk_of
from cfner.runs.run_step import run_step
from cfner.runs.unfinished import UnfinishedModel
from cfner.store.model_files import FIXED_AT_CREATION
from cfner.store.model_folder import ModelFolder
from cfner.store.open import known_types
from cfner.stream.manifest import sentences_hash, settings_hash
from cfner.stream.step import Step
from cfner.tagger import ContinualTagger
from cfner.training.config import given_settings
from cfner.training.progress import Progress

_log = logging.getLogger(__name__)


def learn(
    model: str | Path,
    data: Data,
    *,
    out: str | Path | None = None,
    in_place: bool = False,
    types: Sequence[str] | None = None,
    old_labels: str = "error",
    replay: Data | None = None,
    guard: Data | None = None,
    max_forgetting: float = 2.0,
    accept_forgetting: Sequence[str] = (),
    folds: int | None = None,
    min_new_f1: float | None = None,
    strict: bool = False,
    unlabelled: Sequence[Given] = (),
    preset: str | None = None,
    config: str | Path | Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    reading: Mapping[str, Any] | None = None,
    unchecked: bool = False,
    progress: Progress | None = None,
) -> Learned:
    """As ``cfner.learn``; ``settings`` of TrainingConfig and options for reading as one dictionary each."""
    place = UnfinishedModel(model, out, in_place)
    refuse_limit(max_forgetting)
    refuse_strict(strict, guard, min_new_f1)
    refuse_folds(folds)
    _refuse_least(min_new_f1)
    options = dict(reading or {})
    share = options.pop("dev_share", HELD_OUT)
    refuse_share(share)
    inputs = Inputs.read(data, options, unlabelled, guard, replay)
    new_data, texts = inputs.new, inputs.texts
    given = given_settings(settings, file=config, preset=preset, fixed=FIXED_AT_CREATION)
    known_before = known_types(model)  # to report errors before reading the weights
    findings = () if known_before is None else inputs.checked(types, known_before, unchecked)
    tagger = ContinualTagger.open(model, **given)
    if known_before is None:
        findings = inputs.checked(types, tagger.types, unchecked)
    call = _identity(tagger, new_data, types, old_labels, inputs.replay, texts)
    place.refuse_learned(call)
    refuse_method(tagger.method, tagger.model)
    guarded = None if guard is None else mentioning(inputs.guard, tagger.types, guard)
    plan = plan_step(new_data.types, tagger.types, types, old_labels)
    new_data = new_data.only(plan.current)
    scoring = Scoring.of(new_data, tagger.config.select_on != "last", folds, share)
    new_data, parts = scoring.data, scoring.parts
    known = tuple(t for t in tagger.types if t not in plan.current)
    text = _divided(tagger, texts, new_data, guarded)
    left_out = inputs.not_used(plan.current, known, text)
    for line in (*(f"{finding.severity}: {finding.in_words()}" for finding in findings), *left_out):
        _log.warning(line)
    step = Step(
        types=plan.current,
        train=new_data.train,
        dev=new_data.dev,
        known=known,
        index=max(1, step_number(tagger)),
        name=f"learn {', '.join(plan.current)}",
        replay=replayed_sentences(inputs.replay, known, replay),
        unlabelled=text.pool,
    )
    forgettable = _not_reminded(tagger, step)
    if forgettable:
        _log.warning(_warning(forgettable))
    judge = Judge(
        tagger,
        new_data,
        plan.current,
        guarded,
        text,
        max_forgetting=max_forgetting,
        accepted=accept_forgetting,
        tested=scoring.tested,
        min_new_f1=min_new_f1,
        strict=strict,
        guard_name=inputs.guard_name,
        beside=places_of_attempts(place.target, model),
    )
    with place.steps_so_far(tagger, call, judge.of_old_model()):
        parent = step_number(tagger)
        score_earlier_steps(place.folder, judge, tagger)
        if parts is not None:
            judge.estimate = cross_validate(tagger, step, parts, place.folder, progress, choice_share=share)
            if not step.dev:
                step = replace(step, stop_after=judge.estimate.epoch)
        record, judged = run_step(place.folder, tagger, step, judge, progress)
        stored = place.publish(judged.accepted)
    return Learned(
        folder=as_given(model if out is None else out, stored.folder.parent.parent, judged.accepted),
        accepted=judged.accepted,
        plan=plan,
        step=int(stored.name),
        parent=parent,
        best_epoch=record.best_epoch or 0,
        epochs=tuple(record.history),
        scores=judged.scores,
        scored_on=judged.scored_on,
        guard=judged.guard,
        agreement=judged.agreement,
        estimate=judged.estimate,
        below=judged.below,
        promise=tagger.method.promise,
        reminders=record.facts["data"].get("reminders"),
        not_reminded=forgettable,
        what_to_try=_remedies(judged.guard, tagger, step),
        calibrated=carried_calibration(tagger),
        device=str(tagger.device),
        cost=Cost(disk_of(stored), judge.seconds_before, judged.seconds_after),
        findings=findings,
        left_out=left_out,
    )


def score_earlier_steps(folder: Path, judge: Judge, tagger: ContinualTagger) -> None:
    """Score all steps of a model on the guard's sentences, so that the new step's scores are comparable."""
    if judge.guarded is None or judge.guard_set is None:
        return
    score_steps(
        folder,
        judge.guarded,
        judge.guard_set,
        batch_size=tagger.config.eval_batch_size,
        device=str(tagger.device),
        kept=keep_scores(ModelFolder(folder), judge.guard_set),
    )


def _divided(
    tagger: ContinualTagger, texts: Texts, new_data: NewData, guarded: Sequence[Sentence] | None
) -> UnlabelledText:
    if not tagger.method.reads_unlabelled or not tagger.config.unlabelled_ratio:
        return UnlabelledText.only_compared(texts)
    return UnlabelledText.divide(texts, new_data.train, (*new_data.dev, *new_data.test, *(guarded or ())))


def _remedies(report: GuardReport | None, tagger: ContinualTagger, step: Step) -> tuple[str, ...]:
    if report is None or not (report.refused or report.doubtful):
        return ()
    return what_to_try(tagger.method, unlabelled=bool(step.unlabelled), replay=bool(step.replay))


def _not_reminded(tagger: ContinualTagger, step: Step) -> tuple[str, ...]:
    """Old types that may be forgotten because no text mentions them. For unlabelled text, training itself
    reports what the old model finds in the chosen sentences.
    """
    if step.unlabelled or not tagger.method.reads_unlabelled or tagger.method.adds_experts:
        return ()
    found = TypesFound.by_model(tagger, step.train, step.known)
    return not_reminded(step.known, [found, TypesFound.labelled(step.replay)])


def _warning(types: Sequence[str]) -> str:
    return (
        f"Nothing in the new data reminds the model of {', '.join(types)}: it finds fewer than {HANDFUL} "
        "mentions there, so it may forget them. Give it text without labels, like the text that it reads "
        "every day (`unlabelled`). With `guard` the loss is measured."
    )


def as_given(target: str | Path, made: Path, accepted: bool) -> Path:
    """The path of the new model; relative if the given path was."""
    if accepted:
        return Path(target)
    return made if Path(target).is_absolute() else Path(os.path.relpath(made))


def refuse_limit(max_forgetting: float) -> None:
    if not 0 <= max_forgetting <= 100:  # also false for NaN
        raise ConfigError(
            f"`max_forgetting` must be from 0 to 100 F1 points, got {max_forgetting}.",
            remedy="Give F1 points, from 0 to 100.",
        )


def _refuse_least(f1: float | None) -> None:
    if f1 is not None and not 0 <= f1 <= 100:
        raise ConfigError(f"`min_new_f1` cannot be {f1}.", remedy="Give F1 points, from 0 to 100.")


def refuse_strict(strict: bool, guard: Data | None, least: float | None = None) -> None:
    if strict and guard is None and least is None:
        raise ConfigError(
            "`strict` was given, but nothing to judge the model by.",
            remedy="Give sentences labelled with old types (`guard`), or `min_new_f1`.",
        )


def _identity(
    tagger: ContinualTagger,
    new_data: NewData,
    types: Sequence[str] | None,
    old_labels: str,
    replay: Sequence[Sentence],
    texts: Texts,
) -> str:
    """Hash of the call's inputs, not of the plan: once the types are learned, the same call would be planned
    differently.
    """
    return settings_hash(
        {
            "config": tagger.config.what_matters(),
            "train": sentences_hash(new_data.train),
            "dev": sentences_hash(new_data.dev),
            "types": None if types is None else sorted(types),
            "old_labels": old_labels,
            "replay": sentences_hash(replay),
            "unlabelled": [sentences_hash(text) for text in texts.values()],
        }
    )


def carried_calibration(tagger: ContinualTagger) -> tuple[str, ...]:
    """The types whose calibration is older than the step that was just trained."""
    calibration = tagger.model.calibration
    return () if calibration is None else tuple(calibration.types)


def step_number(tagger: ContinualTagger) -> int:
    """The number of the tagger's saved step; 0 if it is not saved."""
    return int(tagger.saved_step.name) if tagger.saved_step is not None else 0
