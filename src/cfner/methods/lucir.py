from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from cfner.methods.cfner import CausalParameters, causal_curriculum, distillation_weight
from cfner.methods.registry import Method, MethodParameters, StepFacts, register
from cfner.objective.effects import with_causal_effect
from cfner.objective.library import ClassifyEntities, Distil, KeepFeatures, RankOtherAboveNew
from cfner.objective.schedules import adaptive_weight
from cfner.objective.terms import Objective


class LUCIRParameters(MethodParameters):
    lambda_base: float = Field(50.0, ge=0, description="weight of the feature distillation, lambda_d")
    margin: float = Field(0.5, ge=0, description="margin of the ranking loss")


@register
class LUCIR(Method):
    """Cross-entropy on the new entities, features kept in place, O kept apart from the new labels."""

    name: ClassVar[str] = "lucir"
    title: ClassVar[str] = "LUCIR"
    paper: ClassVar[str] = (
        "Hou et al. 2019, Learning a Unified Classifier Incrementally via Rebalancing (CVPR)"
    )
    good_for: ClassVar[str] = "A feature-level baseline from image classification."
    Parameters = LUCIRParameters

    def objective(self, facts: StepFacts) -> Objective:
        p: LUCIRParameters = self.parameters
        weight = adaptive_weight(p.lambda_base, facts.old_types, facts.new_types)
        return Objective(
            (ClassifyEntities(), KeepFeatures(weight=weight), RankOtherAboveNew(margin=p.margin))
        )


class LUCIRWithEffectsParameters(CausalParameters):
    margin: float = Field(0.5, ge=0, description="margin of the ranking loss")


@register
class LUCIRWithEffects(Method):
    """LUCIR with Effect_E for classification and Effect_O in place of its feature distillation."""

    name: ClassVar[str] = "lucir+cf"
    title: ClassVar[str] = "LUCIR with causal effects"
    paper: ClassVar[str] = "Zheng et al. 2022 (CFNER), table 'Combining with other baselines'"
    good_for: ClassVar[str] = "The paper's best combination."
    parts: ClassVar[tuple[str, ...]] = ("effect_e", "effect_o", "curriculum", "adaptive_weight")
    Parameters = LUCIRWithEffectsParameters

    def objective(self, facts: StepFacts) -> Objective:
        p: LUCIRWithEffectsParameters = self.parameters
        keep = Distil(
            weight=distillation_weight(self, p.lambda_base, facts),
            t_student=p.t_student,
            t_teacher=p.t_teacher,
        )
        return with_causal_effect(
            Objective((ClassifyEntities(), keep, RankOtherAboveNew(margin=p.margin))),
            effect_e=self.has("effect_e"),
            effect_o=self.has("effect_o"),
            k=p.k,
            weights=p.weights,
            curriculum=causal_curriculum(self, p, facts),
        )
