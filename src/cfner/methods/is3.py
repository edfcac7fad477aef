from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor
from torch.func import functional_call

from cfner.methods import (
    DISTILS,
    ClassifyAll,
    Distil,
    Features,
    Head,
    Method,
    MethodParameters,
    Network,
    Objective,
    Role,
    StepContext,
    Term,
    TermInputs,
    mean_or_zero,
    register,
)

PROTOTYPES = "prototypes"  # their name in the network: [C, H], zeros where there is none


class IS3Parameters(MethodParameters):
    distill_weight: float = Field(2.0, ge=0, description="weight of the distillation")
    pro_weight: float = Field(0.1, ge=0, description="weight of the prototype term")
    grad_weight: float = Field(
        0.6, ge=0, le=1, description="how much of the cross-entropy's gradient moves rows of old types"
    )


@dataclass(frozen=True)
class ClassifyDebiased(Term):
    """Cross-entropy over the tokens of the step's types, whose gradient moves rows of old types less."""

    role: ClassVar[Role] = "learn_new"
    formula: ClassVar[str] = (
        r"-\log p_i[y_i] \quad \text{mean over E tokens}, \quad"
        r" \nabla w_c \leftarrow \gamma\, \nabla w_c \text{ for old labels } c \ne O"
    )
    name: str = "classify_debiased"
    grad_weight: float = 0.6

    def __call__(self, inputs: TermInputs) -> Tensor:
        tokens = inputs.is_entity
        scores, gold = inputs.logits[tokens], inputs.gold[tokens]
        if len(gold):
            by_rows = scores_by_rows(_head(inputs), inputs.features[tokens])
            is_old = torch.zeros(scores.shape[1], dtype=torch.bool, device=scores.device)
            is_old[list(inputs.roles.old)] = True
            # its value is 0; its gradient is the part to subtract
            scores = scores - (1 - self.grad_weight) * is_old * (by_rows - by_rows.detach())
        return mean_or_zero(-scores.log_softmax(1).gather(1, gold[:, None])[:, 0])


@dataclass(frozen=True)
class ClassifyPrototypes(Term):
    """Cross-entropy of the head's predictions for the prototypes of old labels: it must still know them."""

    role: ClassVar[Role] = "keep_old"
    formula: ClassVar[str] = (
        r"-\log \text{softmax}(\text{head}(\mu_c))[c] \quad \text{mean over old labels } c \text{ that have"
        r" a prototype } \mu_c"
    )
    name: str = PROTOTYPES

    @property
    def of_words(self) -> bool:
        return False

    def __call__(self, inputs: TermInputs) -> Tensor:
        head, kept = _head(inputs), inputs.parts.get(PROTOTYPES)
        rows = [] if kept is None else [c for c in inputs.roles.old if c < len(kept) and bool(kept[c].any())]
        if kept is None or not rows:
            return head.weight.sum() * 0.0
        labels = torch.tensor(rows, device=kept.device)
        return F.cross_entropy(head(kept[labels]), labels)


@register
class IS3(Method):
    """Distillation, with two remedies for the bias towards new types: debiased rows and prototypes.

    All rows are trained. The cross-entropy of new entities pushes the rows of old types away; this gradient
    is scaled down. In every batch the head must also classify the prototypes of old labels. The model stores
    them, so a type that was learned with a different method has none and gets only the other terms.
    """

    name: ClassVar[str] = "is3"
    title: ClassVar[str] = "IS3"
    paper: ClassVar[str] = (
        "Qiu et al. 2024, Incremental Sequence Labeling: A Tale of Two Shifts (Findings of ACL)"
    )
    good_for: ClassVar[str] = (
        "Streams in which old entities, or words of no type, are mistaken for new types."
    )
    promise: ClassVar[str] = DISTILS
    freezes_old_rows: ClassVar[bool] = False
    plain_first_step: ClassVar[bool] = False  # its loss is plain cross-entropy, but it saves prototypes
    Parameters = IS3Parameters
    knob: ClassVar[str | None] = "distill_weight"

    def objective(self, ctx: StepContext) -> Objective:
        if not ctx.has_old:
            return Objective((ClassifyAll(),))
        p: IS3Parameters = self.parameters
        return Objective(
            (
                ClassifyDebiased(grad_weight=p.grad_weight),
                Distil(weight=p.distill_weight),
                ClassifyPrototypes(weight=p.pro_weight),
            )
        )

    def finish(self, network: Network, ctx: StepContext) -> None:
        """After the last epoch the prototype of each of the step's labels is saved: the mean normalised
        feature of its words.
        """
        (features,) = ctx.ask(network, [Features()]).readings["features"]
        before = network.parts.get(PROTOTYPES, features.new_zeros(0, features.shape[1]))
        network.keep_part(
            PROTOTYPES, prototypes(before, features, ctx.data.gold, ctx.roles.new, network.labels)
        )


def prototypes(before: Tensor, features: Tensor, gold: Tensor, new: tuple[int, ...], labels: int) -> Tensor:
    """[C, H]: ``before [C_old, H]``, and the mean normalised feature of the words of each new label."""
    unit, gold = F.normalize(features, dim=1), gold.to(features.device)
    rows = features.new_zeros(labels, features.shape[1])
    rows[: len(before)] = before
    for label in new:
        words = gold == label
        if bool(words.any()):
            rows[label] = unit[words].mean(0)
    return rows


def scores_by_rows(head: Head, features: Tensor) -> Tensor:
    """[n, C] the head's scores, with gradients for the rows of its labels only."""
    others = {name: p.detach() for name, p in head.named_parameters() if name not in {"weight", "bias"}}
    scores: Tensor = functional_call(head, others, (features.detach(),))
    return scores


def _head(inputs: TermInputs) -> Head:
    assert inputs.head is not None  # noqa: S101 - a step that is trained has one
    return inputs.head
