"""The terms of methods in which every group of labels has its own Other class."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from cfner.errors import TrainingError
from cfner.objective.groups import KEEP, REST, LabelGroups, mean_per_group
from cfner.objective.terms import OwnPredictions, Predictions, Role, Term, TermInputs


def grouped(inputs: TermInputs) -> tuple[LabelGroups, Tensor]:
    """The groups, and the target of each word of the batch in each of them [W, G]."""
    if inputs.groups is None or inputs.group_targets is None:
        raise TrainingError(
            "A term for own Other classes was used in a method that gives no targets for groups.",
            remedy="Give Targets(..., groups=...) in the method's targets().",
        )
    return inputs.groups, inputs.group_targets


@dataclass(frozen=True)
class ClassifyGroups(Term):
    """Cross-entropy of each group's own softmax, over all words whose label in the group is known: entities
    and all words that are certainly not entities. With matched predictions: Effect_E.

    Where only some types of a group are annotated, all others in it count as one class, the rest. A method
    may let the words of a group's types count more, w_g times.
    """

    role: ClassVar[Role] = "learn_new"
    formula: ClassVar[str] = (
        r"\sum_g -w_{i,g} \log p_g[y_{i,g}] \quad "
        r"\text{mean over the words of which } y_{i,g} \text{ is known}"
    )
    name: str = "classify"
    predictions: Predictions = field(default_factory=OwnPredictions)

    def __call__(self, inputs: TermInputs) -> Tensor:
        groups, targets = grouped(inputs)
        log_p = self.predictions.group_log_probs(inputs)  # [W, G, M]
        loss = -log_p.gather(2, targets.clamp_min(0)[:, :, None])[:, :, 0]
        if bool((targets == REST).any()):
            rest = log_p.masked_fill(~groups.rest, float("-inf")).logsumexp(2)
            loss = torch.where(targets == REST, -rest, loss)
        if inputs.group_weights is not None:
            loss = torch.where(targets > 0, inputs.group_weights.to(loss.dtype) * loss, loss)
        return mean_per_group(loss, (targets >= 0) | (targets == REST))


@dataclass(frozen=True)
class KeepGroups(Term):
    """Kullback-Leibler divergence of each old group's own softmax from the teacher's, over all words
    without a known label. Where the teacher's likeliest answer is not the Other, its probabilities are first
    raised to the power `sharpen` and normalised again. With matched predictions: Effect_O.

    Where only some types of a group are annotated: over the rest, on words of none of these types.
    """

    role: ClassVar[Role] = "keep_old"
    formula: ClassVar[str] = (
        r"\sum_{g \text{ old}} \text{KL}(q_g \| p_g) \quad \text{mean over the words not annotated for } g"
    )
    name: str = "keep"
    predictions: Predictions = field(default_factory=OwnPredictions)
    sharpen: float = 1.0

    def __call__(self, inputs: TermInputs) -> Tensor:
        groups, targets = grouped(inputs)
        kept, rest = targets == KEEP, targets == REST
        log_p = self.predictions.group_log_probs(inputs)  # [W, G, M]
        log_q = groups.old_log_probs(inputs.old.logits)
        if bool(rest.any()):
            among = log_p - log_p.masked_fill(~groups.rest, float("-inf")).logsumexp(2, keepdim=True)
            log_p = torch.where(rest[:, :, None], among, log_p)
            log_q = torch.where(rest[:, :, None], groups.old_log_probs(inputs.old.logits, groups.rest), log_q)
        if self.sharpen != 1:
            found = log_q.argmax(2, keepdim=True) > 0  # not the Other, which is the first member
            log_q = torch.where(found, (self.sharpen * log_q).log_softmax(2), log_q)
        # no member, or one that the old model does not know: that part of the sum is 0
        gap = (log_q - log_p).masked_fill(log_q == float("-inf"), 0.0)
        return mean_per_group((log_q.exp() * gap).sum(2), kept | rest)
