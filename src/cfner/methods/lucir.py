from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from cfner.methods import (
    DISTILS,
    CausalMethod,
    CausalParameters,
    ClassifyEntities,
    KeepFeatures,
    Method,
    MethodParameters,
    Objective,
    RankOtherAboveNew,
    StepContext,
    adaptive_weight,
    register,
)


class LUCIRParameters(MethodParameters):
    lambda_base: float = Field(50.0, ge=0, description="weight of the feature distillation, lambda_d")
    margin: float = Field(0.5, ge=0, description="margin of the ranking loss")


@register
class LUCIR(Method):
    """Cross-entropy on the new entities; keeps features in place and separates O from the new labels."""

    name: ClassVar[str] = "lucir"
    title: ClassVar[str] = "LUCIR"
    paper: ClassVar[str] = (
        "Hou et al. 2019, Learning a Unified Classifier Incrementally via Rebalancing (CVPR)"
    )
    good_for: ClassVar[str] = "A feature-level baseline from image classification."
    promise: ClassVar[str] = DISTILS
    Parameters = LUCIRParameters
    knob: ClassVar[str | None] = "lambda_base"

    def objective(self, ctx: StepContext) -> Objective:
        p: LUCIRParameters = self.parameters
        weight = adaptive_weight(p.lambda_base, ctx.old_types, ctx.new_types)
        return Objective(
            (ClassifyEntities(), KeepFeatures(weight=weight), RankOtherAboveNew(margin=p.margin))
        )


class LUCIRWithEffectsParameters(CausalParameters):
    margin: float = Field(0.5, ge=0, description="margin of the ranking loss")


@register
class LUCIRWithEffects(CausalMethod):
    """LUCIR with Effect_E for classification and Effect_O in place of its feature distillation."""

    name: ClassVar[str] = "lucir+cf"
    title: ClassVar[str] = "LUCIR with causal effects"
    paper: ClassVar[str] = "Zheng et al. 2022 (CFNER), table 'Combining with other baselines'"
    good_for: ClassVar[str] = "The paper's best combination."
    Parameters = LUCIRWithEffectsParameters

    def objective(self, ctx: StepContext) -> Objective:
        ranking = RankOtherAboveNew(margin=self.parameters.margin)
        return self.with_effects(ctx, ClassifyEntities(), self.distil(ctx), ranking)
