from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from cfner.methods import (
    DISTILS,
    ClassifyEntities,
    Distil,
    Method,
    MethodParameters,
    Objective,
    StepContext,
    adaptive_weight,
    register,
)


class ExtendNERParameters(MethodParameters):
    lambda_base: float = Field(1.0, ge=0, description="weight of the distillation")
    adaptive: bool = Field(False, description="multiply the weight by sqrt(C_O / C_N)")
    t_student: float = Field(2.0, gt=0, description="temperature of the student, T_s")
    t_teacher: float = Field(1.0, gt=0, description="temperature of the teacher, T_t")


@register
class ExtendNER(Method):
    """Cross-entropy on the new entities; on O tokens, distillation of the teacher's soft labels."""

    name: ClassVar[str] = "extendner"
    title: ClassVar[str] = "ExtendNER"
    paper: ClassVar[str] = "Monaikul et al. 2021, Continual Learning for Named Entity Recognition (AAAI)"
    good_for: ClassVar[str] = "Plain distillation: CFNER without its causal effects."
    promise: ClassVar[str] = DISTILS
    Parameters = ExtendNERParameters
    knob: ClassVar[str | None] = "lambda_base"

    def objective(self, ctx: StepContext) -> Objective:
        p: ExtendNERParameters = self.parameters
        weight = adaptive_weight(p.lambda_base, ctx.old_types, ctx.new_types) if p.adaptive else p.lambda_base
        return Objective(
            (ClassifyEntities(), Distil(weight=weight, t_student=p.t_student, t_teacher=p.t_teacher))
        )
