"""See the causal effect: for one sentence, each anchor, its matched tokens, and the loss each token went to.

Nothing is computed a second way here: teacher scores, pools, matches and selection come from the same
functions that training uses, and what a loss reads is asked of the loss.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from cfner.batches.loader import collate
from cfner.errors import ConfigError, ModelError, StreamError
from cfner.model.head import CosineHead
from cfner.model.inference import outputs
from cfner.objective.effects import MatchedPredictions, matching_of
from cfner.objective.matching import ScoreBank
from cfner.objective.terms import Role, TeacherView, Term, TermInputs
from cfner.practice.explanation import (
    EpochSelection,
    Explanation,
    Pool,
    SliceSummary,
    TermFacts,
    TokenExplanation,
)
from cfner.stream.labels import LabelSpace
from cfner.stream.stream import Step
from cfner.tagger import ContinualTagger
from cfner.training.preparation import PreparedStep, StepData, encode_slice, prepare_later
from cfner.training.teacher import TeacherScores

_PLAIN_NAMES = {"effect_e": "cross-entropy", "effect_o": "distillation", "cross_entropy": "cross-entropy"}
_EFFECT_NAMES: dict[Role, str] = {"learn_new": "Effect_E", "keep_old": "Effect_O"}
_ROLE_OF_POOL: dict[Pool, Role] = {"entity": "learn_new", "defined-other": "keep_old"}


def explain_step(
    teacher: ContinualTagger,
    student: ContinualTagger,
    step: Step,
    *,
    sentence: int | None = None,
    epoch: int | None = None,
    top: int = 3,
) -> Explanation:
    """Explain one sentence of a step's training slice.

    ``teacher`` is the tagger as it was before the step, ``student`` as it was after. ``sentence`` counts
    from 0; by default it is the one with most E and defined-other tokens. ``epoch`` sets the curriculum's
    threshold; by default it is the epoch whose weights the student has.
    """
    scene = _set_scene(teacher, student, step, epoch, top)
    chosen = _busiest(scene) if sentence is None else sentence
    if not 0 <= chosen < len(scene.data.sentences):
        raise ConfigError(
            f"There is no sentence {chosen} in the training slice of '{step.name}'.",
            remedy=f"Sentences are numbered 0 to {len(scene.data.sentences) - 1}.",
        )
    matching = matching_of(scene.prepared.objective)
    return Explanation(
        method=student.method.variant,
        step=step.index + 1,
        new_types=step.types,
        old_types=tuple(type_ for type_ in scene.labels.types if type_ not in step.types),
        epoch=scene.epoch,
        epochs=scene.epochs,
        best_epoch=_best_epoch(student),
        k=matching.k if matching else 0,
        terms=tuple(
            TermFacts(term.name, term.role, term.weight, term.formula, _effect_of(term) is not None)
            for term in scene.prepared.objective.terms
        ),
        slice=_summary(scene),
        sentence=chosen,
        source=scene.data.sentences[chosen].source,
        tokens=_tokens(scene, chosen),
    )


@dataclass(frozen=True)
class _Scene:
    """A step as its training saw it, with the student that came out of it."""

    prepared: PreparedStep
    scores: TeacherScores
    student: ContinualTagger
    truth: Tensor | None  # [N] label ids with the labels of earlier types too
    epoch: int
    epochs: int
    top: int

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
        found = (_effect_of(term) for term in self.prepared.objective.role(role))
        return next((effect for effect in found if effect is not None), None)


def _set_scene(
    teacher: ContinualTagger, student: ContinualTagger, step: Step, epoch: int | None, top: int
) -> _Scene:
    if student.method.starts_afresh or not teacher.types:
        raise ConfigError(
            f"'{step.name}' of the method '{student.method.name}' has no teacher, so there is nothing to match.",
            remedy="Explain a later step, of a method that continues from the step before.",
        )
    labels = student.model.labels
    if teacher.model.labels.grown(step.types) != labels:
        raise ModelError(
            f"The student knows {', '.join(labels.types)}; that is not the teacher's types with those of "
            f"'{step.name}' ({', '.join(step.types)}).",
            remedy="Give the models from before and after this very step.",
        )
    epochs = student.config.epochs
    at = epoch if epoch is not None else _best_epoch(student) or epochs
    if not 1 <= at <= epochs:
        raise ConfigError(
            f"There is no epoch {at}.", remedy=f"The step was trained for epochs 1 to {epochs}."
        )
    if top < 1:
        raise ConfigError(f"top is {top}.", remedy="Show at least one label.")
    data = encode_slice(
        step.train,
        labels,
        student.model.tokenizer,
        max_length=student.model.max_length,
        overlap=student.model.overlap,
    )
    # a copy, because preparing a step grows the head of the network that it is given
    network = teacher.model.network.frozen_copy()
    prepared = prepare_later(network, data, labels, step.types, student.method, student.config)
    if prepared.teacher is None:
        raise ModelError(f"'{step.name}' was prepared without a teacher.")
    prepared = prepared.on(student.model.network.device)
    return _Scene(prepared, prepared.teacher, student, _truth(step, labels), at, epochs, top)


def _truth(step: Step, labels: LabelSpace) -> Tensor | None:
    """[N] true labels; a step that was not cut from a stream has none to compare with."""
    try:
        sentences = step.hidden_train
    except StreamError:
        return None
    return torch.tensor([label for sentence in sentences for label in labels.encode(sentence)])


def _best_epoch(student: ContinualTagger) -> int | None:
    return student.record.facts.get("best_epoch") if student.record else None


def _effect_of(term: Term) -> MatchedPredictions | None:
    """The causal effect that a term reads its predictions through, if any."""
    predictions = getattr(term, "predictions", None)
    return predictions if isinstance(predictions, MatchedPredictions) and predictions.k else None


# -- the slice ---------------------------------------------------------------------------------------------


def _busiest(scene: _Scene) -> int:
    """The sentence with most E and defined-other tokens."""
    pooled = np.zeros(scene.data.text.words, dtype=np.int64)
    pooled[scene.scores.pool.cpu().numpy()] = 1
    before = np.concatenate([[0], np.cumsum(pooled)])
    return int(np.diff(before[scene.data.text.sentence_bounds]).argmax())


def _summary(scene: _Scene) -> SliceSummary:
    gold, roles = scene.data.gold, scene.prepared.roles
    other, defined = gold == roles.other, scene.scores.defined_other
    hidden = right = type_right = None
    if scene.truth is not None:
        truth = scene.truth.to(gold.device)
        type_of = torch.tensor(_type_numbers(scene.labels), device=gold.device)
        hidden = other & (truth != roles.other)
        right = scene.teacher_ids == truth
        type_right = type_of[scene.teacher_ids] == type_of[truth]
    return SliceSummary(
        sentences=len(scene.data.sentences),
        tokens=len(gold),
        entity_tokens=int(roles.is_new[gold].sum()),
        other_tokens=int(other.sum()),
        hidden_old=_count(hidden),
        defined_other=int(defined.sum()),
        defined_other_right=_count(defined, right),
        hidden_old_found=_count(hidden, type_right) if hidden is not None else None,
        epochs=_curriculum(scene, right, type_right),
    )


def _curriculum(scene: _Scene, right: Tensor | None, type_right: Tensor | None) -> tuple[EpochSelection, ...]:
    effect = scene.effect("keep_old")
    if effect is None or effect.curriculum is None:
        return ()
    gold, scores = scene.data.gold, scene.scores
    nothing = scores.logits.new_empty(len(gold), 0)  # whom an effect selects does not depend on the student
    inputs = TermInputs(
        logits=nothing,
        features=nothing,
        gold=gold,
        refs=torch.arange(len(gold), device=gold.device),
        roles=scene.prepared.roles,
        teacher=TeacherView(scores.logits, scores.defined_other, scores.confidence),
    )
    found = []
    for epoch in range(1, scene.epochs + 1):
        selected = effect.selected(replace(inputs, epoch=epoch))
        found.append(
            EpochSelection(
                epoch=epoch,
                threshold=effect.curriculum.threshold(epoch),
                selected=int(selected.sum()),
                right=_count(selected, right),
                right_type=_count(selected, type_right),
            )
        )
    return tuple(found)


def _type_numbers(labels: LabelSpace) -> list[int]:
    """Per label the number of its type, -1 for O."""
    number = {type_: index for index, type_ in enumerate(labels.types)}
    return [number.get(labels.type_of(label) or "", -1) for label in range(len(labels))]


def _count(mask: Tensor | None, other: Tensor | bool | None = True) -> int | None:
    return None if mask is None or other is None else int((mask & other).sum())


# -- the sentence ------------------------------------------------------------------------------------------


def _tokens(scene: _Scene, sentence: int) -> tuple[TokenExplanation, ...]:
    first, end = scene.data.text.sentence_bounds[sentence : sentence + 2].tolist()
    inputs = _sentence_inputs(scene, range(first, end))
    order = inputs.refs.argsort().tolist()
    return tuple(
        _token(scene, _single(inputs, row), first + position, position, scene.data.sentences[sentence].words)
        for position, row in enumerate(order)
    )


@torch.no_grad()
def _sentence_inputs(scene: _Scene, refs: range) -> TermInputs:
    """The sentence as a batch of its own, with the saved student's scores of all that it is matched with."""
    prepared, text, network = scene.prepared, scene.data.text, scene.student.model.network
    owner = text.window_of_refs()
    here = np.unique(owner[list(refs)])
    batch_size = scene.student.config.eval_batch_size
    if prepared.bank is not None:
        windows = np.unique(owner[_matched_refs(prepared.bank, refs)])
        for seen, out in outputs(network, text, batch_size=batch_size, windows=windows):
            prepared.bank.update(seen.refs, out.logits)
    network.eval()
    batch = collate(text, here).to(network.device)
    out = network(batch)
    view = scene.scores.view(batch)
    head = network.head
    cosine = isinstance(head, CosineHead)
    return TermInputs(
        logits=out.logits,
        features=out.features,
        gold=scene.student.method.relabel(scene.data.gold[batch.refs], view, prepared.roles),
        refs=batch.refs,
        roles=prepared.roles,
        epoch=scene.epoch,
        teacher=view,
        bank=prepared.bank,
        cosines=out.logits / head.sigma if isinstance(head, CosineHead) else None,
        sigma=head.sigma.detach() if isinstance(head, CosineHead) else None,
    )


def _matched_refs(bank: ScoreBank, refs: range) -> list[int]:
    rows = bank.table.row_of_ref[list(refs)]
    matched = bank.table.neighbours[rows[rows >= 0]]
    return [int(ref) for ref in bank.table.refs[matched[matched >= 0].unique()]]


def _single(inputs: TermInputs, row: int) -> TermInputs:
    """One token of a batch as a batch of one."""
    one, view = slice(row, row + 1), inputs.teacher
    return replace(
        inputs,
        logits=inputs.logits[one],
        features=inputs.features[one],
        gold=inputs.gold[one],
        refs=inputs.refs[one],
        cosines=None if inputs.cosines is None else inputs.cosines[one],
        teacher=None
        if view is None
        else TeacherView(
            view.logits[one],
            view.defined_other[one],
            view.confidence[one],
            None if view.features is None else view.features[one],
        ),
    )
