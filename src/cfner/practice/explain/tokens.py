"""One sentence, token by token: the inputs of its losses and its matched tokens."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from cfner.batches.step_data import IGNORE
from cfner.network.inference import outputs
from cfner.objective.matching import ScoreBank
from cfner.objective.terms import OwnPredictions, Predictions, Role, Term, TermInputs
from cfner.practice.explain.explanation import Distribution, Match, Pool, Share, TokenExplanation, TokenLoss
from cfner.practice.explain.own_others import (
    by_group,
    distribution_in,
    group_name,
    student_group,
    teacher_group,
)
from cfner.practice.explain.replay import ReplayedStep, effect_of

_EFFECTS: dict[Role, str] = {"learn_new": "Effect_E", "keep_old": "Effect_O"}
_WITHOUT_EFFECT = {
    "effect_e": "cross-entropy",
    "classify": "cross-entropy",
    "cross_entropy": "cross-entropy",
    "effect_o": "distillation",
    "distil": "distillation",
    "keep": "distillation",
}
_ROLE_OF_POOL: dict[Pool, Role] = {"entity": "learn_new", "defined-other": "keep_old"}


@torch.no_grad()
def explain_tokens(scene: ReplayedStep, sentence: int) -> tuple[TokenExplanation, ...]:
    """Every word of a sentence of the slice."""
    first, end = scene.data.text.sentence_bounds[sentence : sentence + 2].tolist()
    inputs = _sentence_inputs(scene, range(first, end))
    rows = inputs.refs.argsort().tolist()
    words = scene.data.sentences[sentence].words
    return tuple(
        _token(scene, inputs.word(row), first + position, position, word)
        for position, (row, word) in enumerate(zip(rows, words, strict=True))
    )


def _sentence_inputs(scene: ReplayedStep, refs: range) -> TermInputs:
    """The sentence as a batch, with the saved student's scores of all matched tokens."""
    prepared, text, network = scene.prepared, scene.data.text, scene.student.model.network
    owner = text.window_of_refs()
    if prepared.bank is not None:
        windows = np.unique(owner[_matched_refs(prepared.bank, refs)])
        size = scene.student.config.eval_batch_size
        for seen, out in outputs(network, text, batch_size=size, windows=windows):
            prepared.bank.update(seen.refs, out.logits)
    here = np.unique(owner[list(refs)])
    probes = prepared.objective.probes
    with network.ready_for(probes):
        ((batch, out),) = outputs(network, text, batch_size=len(here), windows=here, probes=probes)
        return prepared.inputs(network, batch, out, scene.epoch)


def _matched_refs(bank: ScoreBank, refs: range) -> list[int]:
    rows = bank.table.row_of_ref[list(refs)]
    matched = bank.table.neighbours[rows[rows >= 0]]
    return sorted(set(bank.table.refs[matched[matched >= 0]].tolist()))


def _token(scene: ReplayedStep, token: TermInputs, ref: int, position: int, word: str) -> TokenExplanation:
    terms = [term for term in scene.prepared.objective.terms if _reads(term, token)]
    acting = [term for term in terms if _acts(term, token)]
    reader = next(iter(acting), None) or next((t for t in terms if hasattr(t, "predictions")), None)
    temperature: float = getattr(reader, "t_student", 1.0)
    t_teacher: float = getattr(reader, "t_teacher", 1.0)
    effect = effect_of(acting[0]) if acting else None
    pool, bank = _pool(scene, ref), scene.prepared.bank
    matches = _matches(scene, token, ref, pool, temperature)
    anchor_weight = 1.0
    if bank is not None and matches:
        anchor_weight = float(bank.table.anchor_weights[bank.table.row_of_ref[ref]])
    return TokenExplanation(
        position=position,
        word=word,
        label=scene.name(scene.data.gold[ref]),
        trained_on=_target(scene, token),
        truth=None if scene.truth is None else scene.name(scene.truth[ref]),
        teacher=_of_teacher(scene, ref, t_teacher),
        teacher_label=scene.name(scene.teacher_ids[ref]),
        confidence=float(scene.scores.confidence[ref]),
        student=_of_student(scene, OwnPredictions(), token, ref, temperature),
        averaged=None if effect is None else _of_student(scene, effect, token, ref, temperature),
        temperature=temperature,
        pool=pool,
        selected=bool(acting),
        joins=_first_epoch(scene, token) if pool == "defined-other" else None,
        losses=tuple(loss for term in terms for loss in _losses(scene, term, token, ref)),
        anchor_weight=anchor_weight,
        matches=matches,
    )


def _target(scene: ReplayedStep, token: TermInputs) -> str:
    """The label that cross-entropy trains it on."""
    target = token.gold if token.targets is None else token.targets
    return "ignored" if int(target[0]) == IGNORE else scene.name(target[0])


def _reads(term: Term, token: TermInputs) -> bool:
    """Whether a term uses a token, which is so exactly if a NaN in the student's output reaches its value."""
    if not term.of_words:
        return True  # a loss of whole windows
    return bool(term(_spoilt(token)).isnan())


def _spoilt(token: TermInputs) -> TermInputs:
    """The token with NaN as the student's output, in all views."""
    nan = float("nan")
    cosines = None if token.cosines is None else torch.full_like(token.cosines, nan)
    return replace(
        token,
        logits=torch.full_like(token.logits, nan),
        features=torch.full_like(token.features, nan),
        cosines=cosines,
        readings={n: tuple(torch.full_like(part, nan) for part in r) for n, r in token.readings.items()},
        views={name: _spoilt(view) for name, view in token.views.items()},
    )


def _acts(term: Term, token: TermInputs) -> bool:
    """Whether the token reads neighbour-averaged predictions in this term, in this epoch."""
    effect = effect_of(term)
    return effect is not None and bool(effect.selected(token)[0])


def _losses(scene: ReplayedStep, term: Term, token: TermInputs, ref: int) -> list[TokenLoss]:
    """One loss, or one for each group that the word trains if groups have their own Other class."""
    groups = scene.prepared.groups
    if groups is None:
        return [_loss(term, token, _acts(term, token))]
    own = student_group(groups, scene, token, ref)  # an effect applies to this group only
    found = []
    for row, alone in by_group(term, token):
        if _reads(term, alone):
            loss, name = _loss(term, alone, _acts(term, token) and row == own), group_name(groups, scene, row)
            found.append(replace(loss, group=name))
    return found


def _loss(term: Term, token: TermInputs, matched: bool) -> TokenLoss:
    plain = _WITHOUT_EFFECT.get(term.name, term.name.replace("_", " "))
    return TokenLoss(
        term=term.name,
        shown=_EFFECTS[term.role] if matched else plain,
        role=term.role,
        weight=term.weight,
        matched=matched,
        value=float(term(token)) if term.of_words else None,
    )


def _pool(scene: ReplayedStep, ref: int) -> Pool | None:
    if bool(scene.scores.defined_other[ref]):
        return "defined-other"
    return "entity" if bool(scene.prepared.roles.is_new[scene.data.gold[ref]]) else None


def _first_epoch(scene: ReplayedStep, token: TermInputs) -> int | None:
    effect = scene.effect("keep_old")
    if effect is None:
        return None
    epochs = range(1, scene.epochs + 1)
    return next((epoch for epoch in epochs if bool(effect.selected(replace(token, epoch=epoch))[0])), None)


def _matches(
    scene: ReplayedStep, token: TermInputs, ref: int, pool: Pool | None, temperature: float
) -> tuple[Match, ...]:
    """The tokens that this one is matched with, nearest first; none if its pool has no effect."""
    bank, text = scene.prepared.bank, scene.data.text
    if bank is None or pool is None or scene.effect(_ROLE_OF_POOL[pool]) is None:
        return ()
    table, found = bank.table, []
    row = int(table.row_of_ref[ref])
    for column, neighbour in enumerate(table.neighbours[row].tolist()):
        if neighbour < 0:
            continue
        other = int(table.refs[neighbour])
        sentence, position = text.locate(other)
        found.append(
            Match(
                sentence=sentence,
                position=position,
                words=scene.data.sentences[sentence].words,
                label=scene.name(scene.data.gold[other]),
                truth=None if scene.truth is None else scene.name(scene.truth[other]),
                teacher_label=scene.name(scene.teacher_ids[other]),
                distance=max(0.0, 1.0 - float(table.cosines[row, column])),
                weight=float(table.match_weights[row, column]),
                student=_of_match(scene, token, ref, bank.logits[neighbour], temperature),
            )
        )
    return tuple(found)


def _of_teacher(scene: ReplayedStep, ref: int, temperature: float) -> Distribution:
    groups, logits = scene.prepared.groups, scene.scores.logits[ref] / temperature
    if groups is None:
        return _distribution(scene, logits.softmax(0), scene.prepared.roles.kept)
    row = teacher_group(groups, scene, ref)
    return distribution_in(groups, scene, row, groups.old_log_probs(logits[None])[0, row])


def _of_student(
    scene: ReplayedStep, predictions: Predictions, token: TermInputs, ref: int, temperature: float
) -> Distribution:
    """The inputs of a term for this word."""
    groups = scene.prepared.groups
    if groups is None:
        everything = torch.ones(1, dtype=torch.bool, device=token.logits.device)
        return _distribution(scene, predictions.log_probs(token, everything, temperature)[0].exp())
    row = student_group(groups, scene, token, ref)
    return distribution_in(groups, scene, row, predictions.group_log_probs(token)[0, row])


def _of_match(
    scene: ReplayedStep, token: TermInputs, ref: int, logits: Tensor, temperature: float
) -> Distribution:
    """A matched word, seen in its anchor's group."""
    groups = scene.prepared.groups
    if groups is None:
        return _distribution(scene, (logits / temperature).softmax(0))
    row = student_group(groups, scene, token, ref)
    return distribution_in(groups, scene, row, groups.log_probs(logits[None])[0, row])


def _distribution(scene: ReplayedStep, probabilities: Tensor, ids: Tensor | None = None) -> Distribution:
    """``ids``: the label of each probability, where they are not all labels in order."""
    best = probabilities.topk(min(scene.top, len(probabilities)))
    labels = best.indices if ids is None else ids[best.indices]
    top = tuple(Share(scene.name(i), p) for i, p in zip(labels, best.values.tolist(), strict=True))
    return Distribution(top, max(0.0, 1.0 - sum(share.p for share in top)))
