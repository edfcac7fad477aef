"""Estimate the scores of new types by cross-validation, before the model itself learns.

Only the counts per sentence are stored, in a file of the unfinished model, so a call that was stopped resumes
with the next fold.
"""

from __future__ import annotations

import logging
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from cfner.corpus.sentence import Sentence, mention_counts
from cfner.errors import ConfigError, ModelError
from cfner.evaluation.estimate import Estimate, found_by
from cfner.evaluation.intervals import Floats
from cfner.files.json_files import read_json, write_json_atomic
from cfner.practice.learn.folds import divided, has_documents
from cfner.practice.learn.new_data import HELD_OUT, NewData, held_out
from cfner.runs.unfinished import ESTIMATE
from cfner.stream.manifest import settings_hash
from cfner.stream.step import Step
from cfner.tagger import ContinualTagger
from cfner.training.config import TrainingConfig
from cfner.training.progress import Progress, Silent

_log = logging.getLogger(__name__)

USUAL_FOLDS: Final = 5
ENOUGH_TO_HOLD_OUT: Final = 300  # mentions of each type from which one held-out part is enough
FEWEST_SENTENCES: Final = 20  # needed for an estimate


@dataclass(frozen=True)
class Plan:
    """Parts of the training sentences, each scored by a model that learns from the other parts."""

    parts: tuple[tuple[int, ...], ...]
    documents: bool

    def share_trained_on(self, sentences: int) -> float:
        """The share of all sentences that a model learns from if it leaves out one part."""
        return 1 - sum(map(len, self.parts)) / len(self.parts) / sentences

    @classmethod
    def of(cls, train: Sequence[Sentence], folds: int | None, share: float) -> Plan | None:
        """``folds``: None for the default number, or for one held-out part (of that share) if there are
        enough mentions; 0 for no estimate. Returns None if there are too few sentences.
        """
        refuse_folds(folds)
        if folds == 0 or len(train) < FEWEST_SENTENCES:
            return None
        rarest = min(mention_counts(train).values(), default=0)
        if folds is None and rarest >= ENOUGH_TO_HOLD_OUT and 0 < share < 1:
            number = max(2, round(1 / share))
            parts = divided(train, number)
            return cls((tuple(parts[0]),), has_documents(train, number)) if len(parts) > 1 else None
        number = folds or USUAL_FOLDS
        parts = divided(train, number)
        return cls(tuple(map(tuple, parts)), has_documents(train, number)) if len(parts) > 1 else None


@dataclass(frozen=True)
class Scoring:
    """Which of the new data trains the model, and which scores its new types: either ``tested`` scores the
    model itself, or ``parts`` of the training sentences score models of the estimate, or there is no
    estimate.
    """

    data: NewData
    tested: tuple[Sentence, ...]
    parts: Plan | None

    @classmethod
    def of(cls, data: NewData, chooses: bool, folds: int | None, share: float) -> Scoring:
        """``chooses``: whether dev sentences choose the epoch; if so, they do not score it too."""
        tested = data.test or (() if chooses else data.dev)
        parts = None if tested else Plan.of(data.train, folds, share)
        if chooses and parts is None:  # otherwise the folds choose the epoch
            data = data.with_dev(share)
        return cls(data, tested, parts)

    @property
    def folds(self) -> int:
        return 0 if self.parts is None else len(self.parts.parts)


def refuse_folds(folds: int | None) -> None:
    if folds is not None and (folds < 0 or folds == 1):
        raise ConfigError(
            f"The new data cannot be divided into {folds} folds.",
            remedy="Give 2 or more, 0 for no estimate, or leave it out.",
        )


def cross_validate(
    tagger: ContinualTagger,
    step: Step,
    plan: Plan,
    folder: Path,
    progress: Progress | None = None,
    *,
    choice_share: float = HELD_OUT,
) -> Estimate:
    """For each part, let a copy of the tagger learn ``step`` without it, and tag it.

    If an epoch is chosen and there is no dev split, each model holds out some of its training sentences for
    that. Results are stored in ``folder``, the folder of the unfinished model.
    """
    config, watcher = tagger.config.model_copy(update={"trackers": ()}), progress or Silent()
    kept = _Kept(folder / ESTIMATE)
    folds: list[_Fold] = []
    for number, part in enumerate(plan.parts, start=1):
        one = _without(step, part, number, len(plan.parts), config, choice_share)
        held = [step.train[index] for index in part]
        name = settings_hash(
            {"config": config.what_matters(), "data": one.data, "parent": tagger.parent_hash}
        )
        found = kept.get(name, (len(held), len(step.types)))
        if found is None:
            found = _learned(tagger.fork(config), one, held, watcher, folder)
            if tagger.accelerator.is_main_process:
                kept.put(name, found)
        folds.append(found)
        if number == 1 and len(plan.parts) > 1:
            _log.info(_first(found.counts, step.types, len(plan.parts)))
    chosen = config.select_on != "last" and (step.dev or choice_share)
    return Estimate.of(
        "folds" if len(folds) > 1 else "held-out",
        np.concatenate([fold.counts for fold in folds]),
        step.types,
        folds=len(folds),
        share=plan.share_trained_on(len(step.train)),
        epoch=statistics.median_low(fold.epoch for fold in folds) if chosen else None,
        documents=plan.documents,
    )


def counts_with(
    tagger: ContinualTagger, step: Step, plan: Plan, share: float, progress: Progress | None = None
) -> Floats:
    """Counts per sentence and type of models that each learn from ``share`` of their training sentences;
    sentences in the order of the plan's parts.
    """
    config, watcher = tagger.config.model_copy(update={"trackers": ()}), progress or Silent()
    counts = []
    for number, part in enumerate(plan.parts, start=1):
        one = _without(step, part, number, len(plan.parts), config, HELD_OUT)
        chosen = one.train if share >= 1 else _share_of(one.train, share)
        name = f"{share:.0%} of the sentences, {number} of {len(plan.parts)}"
        held = [step.train[index] for index in part]
        counts.append(
            _learned(tagger.fork(config), replace(one, train=chosen, name=name), held, watcher).counts
        )
    return np.concatenate(counts)


def _share_of(train: Sequence[Sentence], share: float) -> tuple[Sentence, ...]:
    """A share of the sentences, with the same share of each type."""
    pieces = round(1 / share)
    return tuple(train[index] for index in divided(train, pieces)[0])


def _learned(
    student: ContinualTagger,
    step: Step,
    held: Sequence[Sentence],
    progress: Progress,
    folder: Path | None = None,
) -> _Fold:
    record = student.learn(step, progress, unfinished=folder)
    return _Fold(found_by(held, student.find(held), step.types), record.best_epoch or 0)


def _without(
    step: Step, part: Sequence[int], number: int, of: int, config: TrainingConfig, share: float
) -> Step:
    scored = {step.train[index].key for index in part}  # copies in other documents are left out too
    train = tuple(sentence for sentence in step.train if sentence.key not in scored)
    dev = step.dev
    if config.select_on != "last" and not dev and share:
        train, dev = held_out(train, share)
    name = f"estimate {number} of {of}" if of > 1 else "estimate"
    return replace(step, train=train, dev=dev, name=name)


@dataclass(frozen=True)
class _Fold:
    counts: Floats
    epoch: int


class _Kept:
    """Finished folds of this call, by a hash of their inputs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.folds: dict[str, Any] = {}
        if path.is_file():
            stored = read_json(path)
            self.folds = stored if isinstance(stored, dict) else {}

    def get(self, name: str, shape: tuple[int, int]) -> _Fold | None:
        stored = self.folds.get(name)
        if not isinstance(stored, Mapping):
            return None
        try:
            counts = np.asarray(stored["counts"], dtype=np.float64).reshape(-1, shape[1], 3)
            fold = _Fold(counts, int(stored["epoch"]))
        except (KeyError, TypeError, ValueError) as error:
            raise self._damaged() from error
        if fold.counts.shape != (*shape, 3):
            raise self._damaged()
        return fold

    def put(self, name: str, fold: _Fold) -> None:
        self.folds[name] = {"counts": fold.counts.astype(int).tolist(), "epoch": fold.epoch}
        write_json_atomic(self.path, self.folds)

    def _damaged(self) -> ModelError:
        return ModelError(
            "The file with the finished folds is damaged.",
            where=str(self.path),
            remedy="Delete it; the estimate then starts from scratch.",
        )


def _first(counts: Floats, types: Sequence[str], folds: int) -> str:
    first = Estimate.of("folds", counts, types, folds=folds, share=1 - 1 / folds)
    scores = ", ".join(f"{row.type} {row.f1.value:.0f} ({row.mentions} mentions)" for row in first.types)
    return f"Estimate 1 of {folds}: F1 {scores or 'of no type yet'}. The other folds make it more precise."
