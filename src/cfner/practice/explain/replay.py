"""The set-up of an explanation: a step as it was trained, and the resulting student."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from cfner.batches.step_data import StepData
from cfner.errors import ConfigError, ModelError, StreamError
from cfner.objective.effects import MatchedPredictions
from cfner.objective.teacher import WordScores
from cfner.objective.terms import Role, Term
from cfner.stream.labels import LabelSpace
from cfner.stream.step import Step
from cfner.tagger import ContinualTagger
from cfner.training.prepared_step import PreparedStep
from cfner.training.step import prepared_step


@dataclass(frozen=True)
class ReplayedStep:
    """The inputs of an explanation."""

    prepared: PreparedStep
    scores: WordScores
    student: ContinualTagger
    truth: Tensor | None  # [N] label ids, including labels of earlier types
    epoch: int
    epochs: int
    top: int  # labels shown of a distribution

    @property
    def data(self) -> StepData:
        return self.prepared.data

    @property
    def labels(self) -> LabelSpace:
        return self.student.model.labels

    @property
    def teacher_ids(self) -> Tensor:
        """[N] the label that the teacher predicts."""
        return self.prepared.roles.kept[self.scores.logits.argmax(1)]

    def name(self, label: Tensor | int) -> str:
        return self.labels.labels[int(label)]

    def effect(self, role: Role) -> MatchedPredictions | None:
        found = (effect_of(term) for term in self.prepared.objective.role(role))
        return next((effect for effect in found if effect is not None), None)


def effect_of(term: Term) -> MatchedPredictions | None:
    """The causal effect that a term reads its predictions through, if any."""
    predictions = getattr(term, "predictions", None)
    return predictions if isinstance(predictions, MatchedPredictions) and predictions.k else None


def replay_step(
    teacher: ContinualTagger, student: ContinualTagger, step: Step, epoch: int | None, top: int
) -> ReplayedStep:
    """Prepare the step again as training did: teacher scores, pools, matches."""
    if student.method.from_scratch or not teacher.types:
        raise ConfigError(
            f"'{step.name}' of the method '{student.method.name}' has no teacher, so nothing can be matched.",
            remedy="Explain a later step, of a method that continues from the previous step.",
        )
    labels = student.model.labels
    grown = teacher.model.labels.grown(step.types, student.method.grouping)
    if replace(grown, free=0) != replace(labels, free=0):  # in steps of older versions all labels are free
        raise ModelError(
            f"The student knows {', '.join(labels.types)}; these are not the teacher's types plus those of "
            f"'{step.name}' ({', '.join(step.types)}).",
            remedy="Give the models from before and after this step.",
        )
    last = student.config.epochs_for(len(step.train))
    at = epoch if epoch is not None else best_epoch(student) or last
    if not 1 <= at <= last:
        raise ConfigError(f"There is no epoch {at}.", remedy=f"The step was trained for epochs 1 to {last}.")
    prepared = prepared_step(teacher.model, step, labels, student.method, student.config, teacher.origins())
    prepared = prepared.on(student.model.network.device)
    if prepared.teacher is None:
        raise ModelError(f"'{step.name}' was prepared without a teacher.")
    return ReplayedStep(prepared, prepared.teacher, student, _truth(step, labels, prepared), at, last, top)


def best_epoch(student: ContinualTagger) -> int | None:
    """The epoch whose weights the student has, if recorded."""
    return student.record.facts.get("best_epoch") if student.record else None


def _truth(step: Step, labels: LabelSpace, prepared: PreparedStep) -> Tensor | None:
    """[N] true labels; None for a step that is not part of a stream."""
    try:
        sentences = step.hidden_train
    except StreamError:
        return None
    ids = [label for sentence in sentences for label in labels.encode(sentence)]
    gold = prepared.data.gold  # for other slices, which follow the step's own, the true labels are unknown
    return torch.cat([torch.tensor(ids, dtype=torch.long, device=gold.device), gold[len(ids) :]])
