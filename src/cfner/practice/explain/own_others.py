"""Explanations for methods where each group of types has its own Other class, distributions and losses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from torch import Tensor

from cfner.batches.step_data import IGNORE
from cfner.objective.groups import LabelGroups
from cfner.objective.terms import Term, TermInputs
from cfner.practice.explain.explanation import Distribution, Share
from cfner.practice.explain.replay import ReplayedStep


def teacher_group(groups: LabelGroups, scene: ReplayedStep, ref: int) -> int:
    """The group of the teacher's label or, if that is O, of the most probable type."""
    logits = scene.scores.logits[ref]
    best = 1 + int(logits[1:].argmax()) if len(logits) > 1 else 0
    return int(groups.row_of[scene.prepared.roles.kept[best]])


def student_group(groups: LabelGroups, scene: ReplayedStep, token: TermInputs, ref: int) -> int:
    """The group of the word's label, or the teacher's group if the label is O."""
    if int(token.gold[0]) != scene.prepared.roles.other:
        return int(groups.row_of[token.gold[0]])
    return teacher_group(groups, scene, ref)


def group_name(groups: LabelGroups, scene: ReplayedStep, row: int) -> str:
    """The types that share an Other class."""
    labels = groups.members[row][groups.real[row]].tolist()[1:]
    types = dict.fromkeys(scene.labels.type_of(label) for label in labels)
    return ", ".join(type_ for type_ in types if type_ is not None)


def distribution_in(groups: LabelGroups, scene: ReplayedStep, row: int, log_probs: Tensor) -> Distribution:
    """``log_probs [M]`` of a group's members, its Other first."""
    probabilities = log_probs.exp() * groups.real[row]
    best = probabilities.topk(min(scene.top, int(groups.real[row].sum())))
    labels = groups.members[row][best.indices]
    top = tuple(Share(scene.name(i), p) for i, p in zip(labels, best.values.tolist(), strict=True))
    rest = max(0.0, 1.0 - sum(share.p for share in top))
    return Distribution(top, rest, group_name(groups, scene, row))


def by_group(term: Term, token: TermInputs) -> Iterator[tuple[int, TermInputs]]:
    """For each group that the word trains: (group, the word restricted to this group)."""
    taught = token.group_targets
    if taught is None:
        return
    for row in range(taught.shape[1]):
        alone = taught.new_full(taught.shape, IGNORE)
        alone[:, row] = taught[:, row]
        if int(alone[0, row]) != IGNORE:
            yield row, replace(token, group_targets=alone)
