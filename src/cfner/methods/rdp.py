from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from cfner.methods import (
    DISTILS,
    ClassifyAll,
    Distil,
    Features,
    Method,
    MethodParameters,
    Objective,
    Role,
    StepContext,
    Targets,
    Term,
    TermInputs,
    WordScores,
    mean_or_zero,
    register,
    with_pseudo_labels,
)


class RDPParameters(MethodParameters):
    lambda_kd: float = Field(2.0, ge=0, description="weight of the distillation")
    lambda_rel: float = Field(0.3, ge=0, description="weight of the task relation distillation")
    lambda_ent: float = Field(0.1, ge=0, description="weight of the entropy")


@dataclass(frozen=True)
class KeepRelations(Term):
    """Cross-entropy to a target that combines the teacher's scores of the old labels and the new label.

    Unlabelled text is left out: whether its words have a new label is not known.
    """

    role: ClassVar[Role] = "keep_old"
    formula: ClassVar[str] = (
        r"-\sum_c t_c \log p_c \quad \text{mean over all labelled tokens},"
        r" \quad t = \text{softmax}[\text{sigmoid}(z^{teacher});\, \text{onehot}(y_{new})]"
    )
    name: str = "relations"

    def __call__(self, inputs: TermInputs) -> Tensor:
        scores = F.one_hot(inputs.gold, inputs.roles.labels).to(inputs.logits) * inputs.roles.is_new
        scores[:, inputs.roles.kept] = inputs.old.logits.sigmoid().to(scores)
        losses = -(scores.softmax(1) * inputs.logits.log_softmax(1)).sum(1)
        return mean_or_zero(losses if inputs.annotated is None else losses[inputs.annotated])


@dataclass(frozen=True)
class BeCertain(Term):
    """The entropy of the student's own prediction."""

    role: ClassVar[Role] = "learn_new"
    formula: ClassVar[str] = r"-\sum_c p_c \log p_c \quad \text{mean over all tokens}"
    name: str = "entropy"

    def __call__(self, inputs: TermInputs) -> Tensor:
        log_probs = inputs.logits.log_softmax(1)
        return mean_or_zero(-(log_probs.exp() * log_probs).sum(1))


@register
class RDP(Method):
    """Pseudo-labels weighted by the distance to prototypes, distillation, and relations between the tasks.

    The relation term sums over labels and takes the mean over tokens; the paper leaves this open.
    """

    name: ClassVar[str] = "rdp"
    title: ClassVar[str] = "RDP"
    paper: ClassVar[str] = (
        "Zhang et al. 2023, Task Relation Distillation and Prototypical Pseudo Label for Incremental Named "
        "Entity Recognition (CIKM)"
    )
    good_for: ClassVar[str] = "A strong later method that needs only the teacher."
    promise: ClassVar[str] = DISTILS
    Parameters = RDPParameters
    knob: ClassVar[str | None] = "lambda_kd"

    def teachers(self, ctx: StepContext) -> dict[str, WordScores]:
        return {"old": ctx.ask(ctx.old, [Features()])}

    def targets(self, ctx: StepContext, teachers: Mapping[str, WordScores]) -> Targets:
        """Words labelled O take the old label (or O) that is both likely and near: the one with the largest
        product of the teacher's probability and the softmax of the negative distance to the label's
        prototype. The prototype is the mean feature of the words that the teacher gives that label.
        """
        old = teachers["old"]
        (features,) = old.readings["features"]
        labels = ctx.roles.kept.to(features.device)[prototypical_labels(features, old.logits)]
        return Targets(with_pseudo_labels(ctx, labels))

    def objective(self, ctx: StepContext) -> Objective:
        p: RDPParameters = self.parameters
        return Objective(
            (
                ClassifyAll(),
                Distil(weight=p.lambda_kd),
                KeepRelations(weight=p.lambda_rel),
                BeCertain(weight=p.lambda_ent),
            )
        )


def prototypical_labels(features: Tensor, logits: Tensor) -> Tensor:
    """[n, H] features and [n, C] logits of the teacher -> [n] label. A label that is never predicted has no
    prototype and is never assigned.
    """
    predicted, labels = logits.argmax(1), logits.shape[1]
    sums = features.new_zeros(labels, features.shape[1]).index_add(0, predicted, features)
    counts = predicted.bincount(minlength=labels)
    prototypes = sums / counts.clamp_min(1)[:, None].to(sums)  # [C, H]
    nearness = (-torch.cdist(features, prototypes)).masked_fill(counts == 0, float("-inf")).softmax(1)
    return (nearness * logits.softmax(1)).argmax(1)
