from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from cfner.methods.registry import Method, MethodParameters, StepFacts, register
from cfner.objective.effects import with_causal_effect
from cfner.objective.library import ClassifyEntities, Distil
from cfner.objective.schedules import Curriculum, adaptive_weight
from cfner.objective.terms import Objective


class CausalParameters(MethodParameters):
    """The paper's hyper-parameters; every method with causal effects takes them."""

    k: int = Field(3, ge=0, description="matched tokens per anchor, K")
    weights: tuple[float, ...] | None = Field(
        None, description="W_i, W_i1 ... W_iK: non-increasing, summing to 1; default 1/2 and 1/(2K) each"
    )
    delta_1: float = Field(1.0, ge=0, le=1, description="confidence threshold in the first epoch")
    delta_m: float = Field(0.0, ge=0, le=1, description="confidence threshold from epoch m on")
    m: int | None = Field(None, ge=1, description="epoch at which delta_m is reached; default: the last")
    lambda_base: float = Field(2.0, ge=0, description="weight of Effect_O before sqrt(C_O / C_N)")
    t_student: float = Field(1.0, gt=0, description="temperature of the student, T_s")
    t_teacher: float = Field(1.0, gt=0, description="temperature of the teacher, T_t")


def causal_curriculum(method: Method, p: CausalParameters, facts: StepFacts) -> Curriculum:
    """delta falls from delta_1 to delta_m over m epochs; without the curriculum it is 0 from the start."""
    if not method.has("curriculum"):
        return Curriculum(0.0, 0.0, 1)
    return Curriculum(p.delta_1, p.delta_m, facts.epochs if p.m is None else p.m)


def distillation_weight(method: Method, base: float, facts: StepFacts) -> float:
    """lambda = lambda_base * sqrt(C_O / C_N), or lambda_base alone without the adaptive weight."""
    if not method.has("adaptive_weight"):
        return base
    return adaptive_weight(base, facts.old_types, facts.new_types)


@register
class CFNER(Method):
    """Effect_E on the new entities, Effect_O on the Other class: both read neighbour-averaged predictions.

    Tokens that looked alike to the teacher predict together, which links the old data, present only in the
    teacher's features, to what the student learns.
    """

    name: ClassVar[str] = "cfner"
    title: ClassVar[str] = "CFNER"
    paper: ClassVar[str] = (
        "Zheng et al. 2022, Distilling Causal Effect from Miscellaneous Other-Class for Continual NER (EMNLP)"
    )
    good_for: ClassVar[str] = "Learning new types from data labelled only with them: the default method."
    parts: ClassVar[tuple[str, ...]] = ("effect_e", "effect_o", "curriculum", "adaptive_weight")
    Parameters = CausalParameters

    def objective(self, facts: StepFacts) -> Objective:
        p: CausalParameters = self.parameters
        keep = Distil(
            weight=distillation_weight(self, p.lambda_base, facts),
            t_student=p.t_student,
            t_teacher=p.t_teacher,
        )
        return with_causal_effect(
            Objective((ClassifyEntities(), keep)),
            effect_e=self.has("effect_e"),
            effect_o=self.has("effect_o"),
            k=p.k,
            weights=p.weights,
            curriculum=causal_curriculum(self, p, facts),
        )
