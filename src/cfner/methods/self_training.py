from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from cfner.methods import (
    DISTILS,
    CausalMethod,
    ClassifyAll,
    ClassifyEntities,
    Method,
    Objective,
    StepContext,
    Targets,
    WordScores,
    register,
    with_pseudo_labels,
)


@register
class SelfTraining(Method):
    """Tokens labelled O take the teacher's hard label; then plain cross-entropy over all tokens."""

    name: ClassVar[str] = "self-training"
    title: ClassVar[str] = "Self-training"
    paper: ClassVar[str] = "Rosenberg et al. 2005; De Lange et al. 2019"
    good_for: ClassVar[str] = "A simple, strong baseline. The teacher's mistakes become labels."
    promise: ClassVar[str] = DISTILS

    def objective(self, ctx: StepContext) -> Objective:
        return Objective((ClassifyAll(),))

    def targets(self, ctx: StepContext, teachers: Mapping[str, WordScores]) -> Targets:
        """Words labelled O take the label that the teacher gives them."""
        old = teachers["old"].logits
        return Targets(with_pseudo_labels(ctx, ctx.roles.kept.to(old.device)[old.argmax(1)]))


@register
class SelfTrainingWithEffects(CausalMethod):
    """CFNER with the teacher's hard label in place of its soft one."""

    name: ClassVar[str] = "self-training+cf"
    title: ClassVar[str] = "Self-training with causal effects"
    paper: ClassVar[str] = "Zheng et al. 2022 (CFNER), table 'Combining with other baselines'"
    good_for: ClassVar[str] = "Measuring what the soft label contributes."

    def objective(self, ctx: StepContext) -> Objective:
        return self.with_effects(ctx, ClassifyEntities(), self.distil(ctx, hard=True))
