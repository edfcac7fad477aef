from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from pydantic import Field
from torch import Tensor

from cfner.methods import (
    Objective,
    Role,
    StepContext,
    StepData,
    Term,
    TermInputs,
    mean_or_zero,
    register,
)
from cfner.methods.rdp import RDP, RDPParameters

ERASED = "erased"  # the view in which the words of new entities are masked


@dataclass(frozen=True)
class OnTheCopy(Term):
    """The losses above on a copy of the batch in which the words of new entities are masked, with the same
    weights. In the copy, masked words count as words labelled O.
    """

    role: ClassVar[Role] = "keep_old"
    formula: ClassVar[str] = r"\mathcal{L}_{RDP}(\text{copy})"
    name: str = "erased_copy"
    losses: Objective = field(default_factory=lambda: Objective(()))

    def __call__(self, inputs: TermInputs) -> Tensor:
        copy = inputs.views[ERASED]
        return self.losses.total(self.losses.losses(copy))


@dataclass(frozen=True)
class SameWithoutNew(Term):
    """A word with an old pseudo-label gets the same prediction whether or not the new entities around it are
    masked.
    """

    role: ClassVar[Role] = "keep_old"
    formula: ClassVar[str] = (
        r"\| p_i - p_i^{\text{copy}} \|^2 \quad \text{mean over O tokens with an old pseudo-label}"
    )
    name: str = "consistency"

    def __call__(self, inputs: TermInputs) -> Tensor:
        targets = inputs.gold if inputs.targets is None else inputs.targets
        old = inputs.is_other & (targets != inputs.roles.other) & (targets >= 0)
        ours, copy = (one.logits[old].softmax(1) for one in (inputs, inputs.views[ERASED]))
        return mean_or_zero((ours - copy).pow(2).sum(1))


class TBCLParameters(RDPParameters):
    beta: float = Field(1.0, ge=0, description="weight of the consistency between a sentence and its copy")


@register
class TBCL(RDP):
    """RDP on each sentence and on a copy without its new entities; both must agree on old entities.

    In the copy every subword of a new entity is masked. So the prediction of an old entity cannot come to
    depend on new entities next to it, which the old data did not have. The paper sums the consistency over
    words. Here it is a mean, like all terms, so that $\\beta$ does not depend on the batch size; its value of
    1 is cfner's choice. Each batch is read twice.
    """

    name: ClassVar[str] = "tbcl"
    title: ClassVar[str] = "TBCL"
    paper: ClassVar[str] = "TBCL 2026, which builds on RDP (Zhang et al. 2023, CIKM)"
    good_for: ClassVar[str] = "RDP where old entities stand beside new ones. Each batch is read twice."
    Parameters = TBCLParameters

    def views(self, ctx: StepContext) -> Mapping[str, StepData]:
        """The student and the old model read every batch a second time, with the words of new entities
        masked.
        """
        data = ctx.data
        new = ctx.roles.is_new[data.gold]
        text, gold = data.text.masked(new.numpy()), data.gold.masked_fill(new, ctx.roles.other)
        return {ERASED: replace(data, text=text, gold=gold)}

    def objective(self, ctx: StepContext) -> Objective:
        rdp = super().objective(ctx)
        return Objective((*rdp.terms, OnTheCopy(losses=rdp), SameWithoutNew(weight=self.parameters.beta)))
