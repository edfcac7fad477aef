from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from cfner.methods import (
    CausalMethod,
    CausalParameters,
    ClassifyEntities,
    DistilHardSelected,
    Objective,
    StepContext,
    register,
)


class CFNERParameters(CausalParameters):
    defined_other: Literal["soft", "hard"] = Field(
        "soft",
        description="what selected defined-other tokens learn: the teacher's distribution, as in the paper "
        "(soft), or its label, as in the published code, which also reads their matches over O and the old "
        "labels alone (hard)",
    )


@register
class CFNER(CausalMethod):
    """Effect_E on the new entities, Effect_O on the Other class: both read neighbour-averaged predictions.

    The predictions of tokens that the teacher found similar are averaged. This links the old data, which is
    left only in the teacher's features, to what the student learns.
    """

    name: ClassVar[str] = "cfner"
    title: ClassVar[str] = "CFNER"
    paper: ClassVar[str] = (
        "Zheng et al. 2022, Distilling Causal Effect from Miscellaneous Other-Class for Continual NER (EMNLP)"
    )
    good_for: ClassVar[str] = (
        "The paper's method: one Other class for all types, distilled with causal effects."
    )

    Parameters = CFNERParameters

    def objective(self, ctx: StepContext) -> Objective:
        distil = self.distil(ctx)
        if self.parameters.defined_other == "hard":
            distil = DistilHardSelected(
                weight=distil.weight, t_student=distil.t_student, t_teacher=distil.t_teacher
            )
        return self.with_effects(ctx, ClassifyEntities(), distil)
