"""A method as somebody outside the project would write it (DLD, 2024), loaded with ``--use``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor

from cfner.methods import (
    ClassifyEntities,
    Method,
    MethodParameters,
    Objective,
    Role,
    StepContext,
    Term,
    TermInputs,
    as_the_teacher,
    mean_or_zero,
    register,
)


class DLDParameters(MethodParameters):
    weight: float = Field(2.0, ge=0, description="weight of the distillation")


@dataclass(frozen=True)
class DistilInTwo(Term):
    """The teacher's label against the rest, and the labels of the rest among themselves."""

    role: ClassVar[Role] = "keep_old"
    name: str = "distil_in_two"

    def __call__(self, inputs: TermInputs) -> Tensor:
        words = inputs.is_other
        q = inputs.old.logits[words].softmax(1)
        p = as_the_teacher(inputs.logits[words].log_softmax(1), inputs, words).exp().clamp_min(1e-9)
        top = torch.zeros_like(q).scatter(1, q.argmax(1, keepdim=True), 1.0)
        positive = (q * top).sum(1), (p * top).sum(1)
        rest = q * (1 - top), p * (1 - top)
        q_rest, p_rest = (part / part.sum(1, keepdim=True).clamp_min(1e-9) for part in rest)
        between = torch.xlogy(positive[0], positive[0] / positive[1])
        within = torch.xlogy(q_rest, q_rest.clamp_min(1e-9) / p_rest.clamp_min(1e-9)).sum(1)
        return mean_or_zero(between + within)


@register
class DLD(Method):
    """Distils the teacher's label and the rest separately."""

    name: ClassVar[str] = "dld"
    title: ClassVar[str] = "DLD"
    paper: ClassVar[str] = "2024"
    good_for: ClassVar[str] = "Trying out the seam."
    Parameters = DLDParameters

    def objective(self, ctx: StepContext) -> Objective:
        return Objective((ClassifyEntities(), DistilInTwo(weight=self.parameters.weight)))


@register
class FrozenEncoder(Method):
    """The encoder and the old rows are frozen after the first step (SEQ*, 2024)."""

    name: ClassVar[str] = "frozen-encoder"
    title: ClassVar[str] = "SEQ*"
    paper: ClassVar[str] = "2024"
    good_for: ClassVar[str] = "Trying out the seam."

    def begin(self, network: torch.nn.Module, ctx: StepContext) -> None:
        super().begin(network, ctx)  # type: ignore[arg-type]
        network.body.requires_grad_(False)  # type: ignore[union-attr,operator]

    def objective(self, ctx: StepContext) -> Objective:
        return Objective((ClassifyEntities(),))
