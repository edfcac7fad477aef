from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from cfner.methods.cfner import CausalParameters, causal_curriculum, distillation_weight
from cfner.methods.registry import Method, StepFacts, register
from cfner.objective.effects import with_causal_effect
from cfner.objective.library import ClassifyAll, ClassifyEntities, Distil
from cfner.objective.terms import LabelRoles, Objective, TeacherView


@register
class SelfTraining(Method):
    """Tokens labelled O take the teacher's hard label; then plain cross-entropy over all tokens."""

    name: ClassVar[str] = "self-training"
    title: ClassVar[str] = "Self-training"
    paper: ClassVar[str] = "Rosenberg et al. 2005; De Lange et al. 2019"
    good_for: ClassVar[str] = "A simple, strong baseline. The teacher's mistakes become labels."

    def objective(self, facts: StepFacts) -> Objective:
        return Objective((ClassifyAll(),))

    def relabel(self, gold: Tensor, teacher: TeacherView, roles: LabelRoles) -> Tensor:
        return torch.where(gold == roles.other, roles.kept[teacher.logits.argmax(1)], gold)


@register
class SelfTrainingWithEffects(Method):
    """CFNER with the teacher's hard label in place of its soft one."""

    name: ClassVar[str] = "self-training+cf"
    title: ClassVar[str] = "Self-training with causal effects"
    paper: ClassVar[str] = "Zheng et al. 2022 (CFNER), table 'Combining with other baselines'"
    good_for: ClassVar[str] = "Seeing what the soft label is worth."
    parts: ClassVar[tuple[str, ...]] = ("effect_e", "effect_o", "curriculum", "adaptive_weight")
    Parameters = CausalParameters

    def objective(self, facts: StepFacts) -> Objective:
        p: CausalParameters = self.parameters
        keep = Distil(
            weight=distillation_weight(self, p.lambda_base, facts), t_student=p.t_student, hard=True
        )
        return with_causal_effect(
            Objective((ClassifyEntities(), keep)),
            effect_e=self.has("effect_e"),
            effect_o=self.has("effect_o"),
            k=p.k,
            weights=p.weights,
            curriculum=causal_curriculum(self, p, facts),
        )
