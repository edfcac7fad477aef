from __future__ import annotations

from typing import ClassVar

from cfner.methods import CausalMethod, ClassifyEntities, Objective, StepContext, register


@register
class CFNER(CausalMethod):
    """Effect_E on the new entities, Effect_O on the Other class: both read neighbour-averaged predictions.

    Tokens that looked alike to the teacher predict together, which links the old data, present only in the
    teacher's features, to what the student learns.
    """

    name: ClassVar[str] = "cfner"
    title: ClassVar[str] = "CFNER"
    paper: ClassVar[str] = (
        "Zheng et al. 2022, Distilling Causal Effect from Miscellaneous Other-Class for Continual NER (EMNLP)"
    )
    good_for: ClassVar[str] = (
        "The paper's method: one Other class for all types, distilled with causal effects."
    )

    def objective(self, ctx: StepContext) -> Objective:
        return self.with_effects(ctx, ClassifyEntities(), self.distil(ctx))
