"""What methods with causal effects share: their parameters, and how effects are switched on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field

from cfner.methods.context import StepContext
from cfner.methods.method import DISTILS, Method, MethodParameters
from cfner.objective.effects import with_causal_effect
from cfner.objective.library import Distil
from cfner.objective.schedules import Curriculum, adaptive_weight
from cfner.objective.terms import Objective, Term


class CausalParameters(MethodParameters):
    """The paper's hyper-parameters. Every method with causal effects has them."""

    k: int = Field(3, ge=0, description="matched tokens per anchor, K")
    weights: tuple[float, ...] | None = Field(
        None, description="W_i, W_i1 ... W_iK: non-increasing, summing to 1; default 1/2 and 1/(2K) each"
    )
    delta_1: float = Field(1.0, ge=0, le=1, description="confidence threshold in the first epoch")
    delta_m: float = Field(0.0, ge=0, le=1, description="confidence threshold from epoch m on")
    m: int | None = Field(None, ge=1, description="epoch at which delta_m is reached; default: the last")
    lambda_base: float = Field(1.0, ge=0, description="weight of Effect_O before sqrt(C_O / C_N)")
    t_student: float = Field(1.0, gt=0, description="temperature of the student, T_s")
    t_teacher: float = Field(1.0, gt=0, description="temperature of the teacher, T_t")


class CausalMethod(Method):
    """A method with causal effects in its terms; ``--without`` leaves out one of their four parts."""

    promise: ClassVar[str] = DISTILS
    parts: ClassVar[Mapping[str, str]] = {
        "effect_e": "Effect_E; new entities then get plain cross-entropy",
        "effect_o": "Effect_O; all tokens labelled O then get plain distillation",
        "curriculum": "the falling threshold; all defined-other tokens are then selected from the start",
        "adaptive_weight": "the factor sqrt(C_O / C_N); the weight is then `lambda_base` alone",
    }
    Parameters = CausalParameters
    knob: ClassVar[str | None] = "lambda_base"
    published: ClassVar[Mapping[str, Any]] = {"lambda_base": 2.0}

    def distil(self, ctx: StepContext, *, hard: bool = False) -> Distil:
        """Distillation on O tokens, weighted by lambda = lambda_base * sqrt(C_O / C_N)."""
        p: CausalParameters = self.parameters
        weight = p.lambda_base
        if self.has("adaptive_weight"):
            weight = adaptive_weight(p.lambda_base, ctx.old_types, ctx.new_types)
        return Distil(weight=weight, t_student=p.t_student, t_teacher=p.t_teacher, hard=hard)

    def with_effects(self, ctx: StepContext, *terms: Term) -> Objective:
        """The terms' objective with the effects that were not left out."""
        p: CausalParameters = self.parameters
        curriculum = Curriculum(p.delta_1, p.delta_m, ctx.epochs if p.m is None else p.m)
        return with_causal_effect(
            Objective(terms),
            effect_e=self.has("effect_e"),
            effect_o=self.has("effect_o"),
            k=p.k,
            weights=p.weights,
            # without the curriculum, every defined-other token is selected from the start
            curriculum=curriculum if self.has("curriculum") else Curriculum(0.0, 0.0, 1),
        )
