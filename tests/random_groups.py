"""Random label spaces with own Others, and random steps over them, for the package and for its oracle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

import oracle_groups as slow
from cfner.batches.step_data import StepData
from cfner.objective.groups import LabelGroups, group_targets
from cfner.objective.matching import ScoreBank
from cfner.objective.teacher import WordScores, confidence
from cfner.objective.terms import LabelRoles, TeacherView, TermInputs
from cfner.stream.labels import LabelSpace
from cfner.stream.step import Slice
from cfner.training.preparation import match_pools, roles_of

CHECKPOINT = ("B-PER", "I-PER", "O", "B-ORG", "I-ORG", "B-LOC", "I-LOC")  # O is not the first


def plain(labels: LabelSpace) -> slow.Space:
    types = [labels.type_of(number) for number in range(len(labels))]
    return slow.Space(list(labels.group_of), labels.other_id, types)


def random_space(draw: np.random.Generator, steps: int) -> tuple[LabelSpace, LabelSpace, list[str]]:
    """(the old model's labels, those of the step, its types). Some types were merged or taken away."""
    labels = LabelSpace.start() if draw.random() < 0.5 else LabelSpace.of(CHECKPOINT)
    made = iter("ABCDEFGHIJKLMNOP")
    for _ in range(steps):
        new = [next(made) for _ in range(draw.integers(1, 3))]
        labels = labels.grown(new, "type" if draw.random() < 0.5 else "step")
        labels = _changed(draw, labels)
    known = list(labels.types)
    current = [type_ for type_ in known if draw.random() < 0.3]
    if draw.random() < 0.8 or not current:
        current += [next(made) for _ in range(draw.integers(1, 3))]
    return labels, labels.grown(current, "type" if draw.random() < 0.5 else "step"), current


def _changed(draw: np.random.Generator, labels: LabelSpace) -> LabelSpace:
    types = [str(type_) for type_ in draw.permutation(labels.types)]
    chance = draw.random()
    if chance < 0.2 and len(types) > 2:
        return labels.without(types[:1])
    if chance < 0.4 and len(types) > 2:
        return labels.renamed(types[:2], types[0])
    return labels


@dataclass(frozen=True)
class GroupStep:
    """One step, made twice. The batch is the whole step."""

    labels: LabelSpace
    space: slow.Space
    current: list[str]
    words: list[slow.Word]
    targets: list[dict[int, slow.Target]]
    averaged: dict[int, int]  # of words that Effect_O reads from their matches: the group
    inputs: TermInputs
    data: Any
    groups: LabelGroups
    scores: WordScores


def random_step(seed: int, *, words: int = 14, k: int = 0, delta: float = 0.0) -> GroupStep:
    draw = np.random.default_rng(seed)
    old, labels, current = random_space(draw, int(draw.integers(0, 3)))
    first = not old.types
    space, known = plain(labels), len(old)
    data = _data(draw, labels, current, words, first)
    roles = roles_of(labels, current, None if first else known, own_others=True)
    groups = LabelGroups.of(labels.group_of, roles)
    z, others = _scores(draw, words, labels)
    old_z, old_others = _scores(draw, words, labels)
    logits = _columns(z, others, space)
    kept = _columns(old_z, old_others, space)[:, roles.kept]
    features = torch.tensor(draw.normal(0, 1, (words, 4)), dtype=torch.float64)
    scores = _word_scores(kept, data.gold, roles, features, labels)
    made = [
        slow.Word(
            int(data.gold[i]),
            set(data.slices[int(data.slice_of[i])].annotated),
            z[i],
            others[i],
            old_z[i][:known],
            old_others[i],
        )
        for i in range(words)
    ]
    averaged, bank = {}, None
    if k:
        table = match_pools(scores, data.gold, roles, k, None, groups.row_of)
        bank = ScoreBank(table, logits[table.refs])
        averaged = _match(made, features.tolist(), space, roles, scores, k, delta)
    old_groups = (
        sorted({labels.group_of[c] for c in range(known) if c != labels.other_id}) if not first else []
    )
    targets = [{g: slow.target(word, g, space, old_groups) for g in space.groups} for word in made]
    view = TeacherView(kept, scores.defined_other, scores.confidence)
    inputs = TermInputs(
        logits=logits.clone().requires_grad_(),
        features=features,
        gold=data.gold,
        refs=torch.arange(words),
        roles=roles,
        groups=groups,
        group_targets=group_targets(data, groups, labels.types_of_groups),
        teachers={} if first else {"old": view},
        bank=bank,
    )
    return GroupStep(labels, space, current, made, targets, averaged, inputs, data, groups, scores)


def _columns(z: list[Any], others: list[Any], space: slow.Space) -> Tensor:
    found = [slow.columns(*pair, space) for pair in zip(z, others, strict=True)]
    return torch.tensor(found, dtype=torch.float64).reshape(len(z), len(space.group_of))


def _scores(draw: np.random.Generator, words: int, labels: LabelSpace) -> tuple[list[Any], list[Any]]:
    z = draw.normal(0, 3, (words, len(labels)))
    others = draw.normal(0, 3, (words, 1 + max(labels.group_of)))
    others[:, 0] = z[:, labels.other_id]
    return z.tolist(), others.tolist()


def _data(draw: np.random.Generator, labels: LabelSpace, current: list[str], words: int, first: bool) -> Any:
    """New data, replayed old sentences, unlabelled text; who has which gold is up to chance."""
    parts = [Slice((), frozenset(current))]
    if not first:
        parts += [Slice((), frozenset()), Slice((), frozenset(), unlabelled=True)]
    slice_of = np.sort(draw.integers(0, len(parts), words))
    first_numbers = {t: [c for c in labels.ids_of([t]) if _encoded(labels, c)] for t in labels.types}
    gold = []
    for part in slice_of:
        old = [type_ for type_ in labels.types if type_ not in current]
        types = [current, old, []][part]
        choice = str(draw.choice(types)) if types and draw.random() < 0.6 else None
        gold.append(labels.other_id if choice is None else int(draw.choice(first_numbers[choice])))
    none: Any = None
    return StepData((), none, torch.tensor(gold, dtype=torch.long), tuple(parts), torch.tensor(slice_of))


def _encoded(labels: LabelSpace, number: int) -> bool:
    """Whether data has the number: of several that mean the same, the first."""
    return labels.labels.index(labels.labels[number]) == number


def _word_scores(
    kept: Tensor, gold: Tensor, roles: LabelRoles, features: Tensor, labels: LabelSpace
) -> WordScores:
    defined = (gold == roles.other) & (kept.argmax(1) != 0)
    sure = confidence(kept, torch.tensor(labels.group_of)[roles.kept])
    pool = (roles.is_new[gold] | defined).nonzero()[:, 0]
    return WordScores(kept, defined, sure, pool, features[pool])


def _match(
    words: list[slow.Word],
    features: list[Any],
    space: slow.Space,
    roles: LabelRoles,
    scores: WordScores,
    k: int,
    delta: float,
) -> dict[int, int]:
    """Fill in the matches of each word; which words Effect_O averages, and in which group."""
    from oracle import neighbours

    pools: dict[tuple[bool, int], list[int]] = {}
    averaged = {}
    for i, word in enumerate(words):
        if word.gold in roles.new:
            pools.setdefault((True, space.group_of[word.gold]), []).append(i)
        elif word.gold == space.other and word.old_z:
            label = _largest(word, space)
            if label != space.other:
                group = space.group_of[label]
                pools.setdefault((False, group), []).append(i)
                p = slow.distribution(
                    [*word.old_z, *[-1e9] * (len(space.group_of) - len(word.old_z))],
                    word.old_others,
                    group,
                    space,
                )
                if p[label] > delta:
                    averaged[i] = group
    for pool in pools.values():
        for row, nearest in enumerate(neighbours([features[i] for i in pool], k)):
            words[pool[row]].matched = [(words[pool[j]].z, words[pool[j]].others) for j in nearest]
    return averaged


def _largest(word: slow.Word, space: slow.Space) -> int:
    """The label that the old model gives, by log-odds."""
    odds = {
        c: word.old_z[c] - word.old_others[space.group_of[c]]
        for c in range(len(word.old_z))
        if c != space.other and space.group_of[c] in space.groups
    }
    best = max(odds, key=lambda c: odds[c], default=space.other)
    return best if odds.get(best, 0.0) > 0 else space.other
