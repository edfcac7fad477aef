"""Labels in groups, each with its own Other class, and the target of each word in each group.

Shapes: W words, G groups, C labels, M members: the most labels that a group has, plus 1 for its Other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Final

import torch
from torch import Tensor

from cfner.batches.step_data import IGNORE, StepData
from cfner.objective.terms import LabelRoles

KEEP: Final = -1  # the word has no known label: the group keeps the old model's prediction
REST: Final = -2  # only some types of the group are annotated, and the word has none of them


@dataclass(frozen=True)
class LabelGroups:
    """The groups of a step with a label that is kept or learned. Members of a group: its Other first,
    then its labels.
    """

    numbers: tuple[int, ...]  # of the groups, as the label space counts them
    members: Tensor  # [G, M] columns; O's for the Other, and where a group has fewer
    real: Tensor  # [G, M] bool
    taught: Tensor  # [G, M] bool: members that the old model has scores for
    kept: Tensor  # [G, M] their index in ``roles.kept``
    rest: Tensor  # [G, M] bool: members that the step does not label
    place: Tensor  # [C] which member of its group a label is
    row_of: Tensor  # [C] which group a label is in: a row of the above

    @classmethod
    def of(cls, group_of: Sequence[int], roles: LabelRoles) -> LabelGroups:
        labels: dict[int, list[int]] = {}
        spoken = {*roles.kept.tolist(), *roles.new} - {roles.other}
        for label, group in enumerate(group_of):
            if label in spoken:
                labels.setdefault(group, []).append(label)
        numbers = tuple(sorted(labels))
        size = (len(numbers), 1 + max((len(ids) for ids in labels.values()), default=0))
        members = torch.full(size, roles.other, dtype=torch.long)
        real = torch.zeros(size, dtype=torch.bool)
        place, row_of = torch.zeros(2, len(group_of), dtype=torch.long)
        real[:, 0] = True
        for row, number in enumerate(numbers):
            for column, label in enumerate(labels[number], start=1):
                members[row, column], real[row, column] = label, True
                place[label], row_of[label] = column, row
        in_kept = torch.full((len(group_of),), -1, dtype=torch.long)
        in_kept[roles.kept.cpu()] = torch.arange(len(roles.kept))
        where = in_kept[members]
        rest = real & ~roles.is_new.cpu()[members]
        return cls(numbers, members, real, real & (where >= 0), where.clamp_min(0), rest, place, row_of)

    def to(self, device: torch.device) -> LabelGroups:
        tensors = [getattr(self, f.name).to(device) for f in fields(self) if f.name != "numbers"]
        return LabelGroups(self.numbers, *tensors)

    def log_probs(self, columns: Tensor, temperature: float = 1.0) -> Tensor:
        """[W, C] columns -> [W, G, M]: each group's own log-softmax, -inf where there is no member."""
        own = (columns[:, self.members] / temperature).masked_fill(~self.real, float("-inf"))
        return own.log_softmax(-1)

    def old_log_probs(self, logits: Tensor, among: Tensor | None = None) -> Tensor:
        """[W, C_kept] the old model's scores -> [W, G, M], over the members that it knows (or over those of
        them in ``among [G, M]``).
        """
        members = self.taught if among is None else self.taught & among
        return logits[:, self.kept].masked_fill(~members, float("-inf")).log_softmax(-1)

    @property
    def is_new(self) -> Tensor:
        """[G] bool: groups of which the old model knows no label."""
        return ~self.taught[:, 1:].any(1)


def mean_per_group(values: Tensor, chosen: Tensor) -> Tensor:
    """[W, G] losses and which of them count -> []: a mean over the words of each group, summed over groups.

    A group without a word adds an exact 0.
    """
    total = torch.where(chosen, values, values.new_zeros(())).sum(0)  # [G]
    return (total / chosen.sum(0).clamp_min(1)).sum()


def weights_of_rare(targets: Tensor, share: float, most: float = 4.0) -> Tensor:
    """[N, G] targets -> [G]: how much the words of a group's types count, 1 to ``most`` times.

    The words of a rare type are few among all words of which the group's label is known, and their mean
    hardly hears them. Where they are less than ``share`` of these words, they count sqrt(share / theirs)
    times.
    """
    words, known = (targets > 0).sum(0), (targets >= 0).sum(0)
    theirs = words / known.clamp_min(1)
    return torch.where(words > 0, (share / theirs.clamp_min(1e-9)).sqrt().clamp(1.0, most), 1.0)


def group_targets(data: StepData, groups: LabelGroups, types_of: Mapping[int, frozenset[str]]) -> Tensor:
    """[N, G] the target of each word in each group: a member, REST, KEEP, or IGNORE (none).

    ``types_of``: the types of each group, by its number. A group without types (they were removed, or merged
    into a type of another group) is only kept. In a group that still has types, labels of removed types are
    never annotated: they count as REST.
    """
    gold, slice_of = data.gold.cpu(), data.slice_of.cpu()
    targets = torch.full((len(gold), len(groups.numbers)), IGNORE, dtype=torch.long)
    is_new, row_of = groups.is_new.tolist(), groups.row_of[gold]
    all_trained = (~groups.rest[:, 1:]).all(1).tolist()
    for column, number in enumerate(groups.numbers):
        types = types_of.get(number, frozenset())
        for row, part in enumerate(data.slices):
            here = slice_of == row
            if types and types <= part.annotated and all_trained[column]:
                targets[here, column] = 0
            elif types & part.annotated:
                targets[here, column] = REST
            elif not is_new[column]:
                targets[here, column] = KEEP
        # a label that is given is right, whatever else is not annotated
        mine = (groups.place[gold] > 0) & (row_of == column)
        targets[mine, column] = groups.place[gold[mine]]
    return targets
