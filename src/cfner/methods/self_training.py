from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from cfner.methods.causal import CausalMethod
from cfner.methods.registry import Method, StepFacts, register
from cfner.objective.library import ClassifyAll, ClassifyEntities
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
class SelfTrainingWithEffects(CausalMethod):
    """CFNER with the teacher's hard label in place of its soft one."""

    name: ClassVar[str] = "self-training+cf"
    title: ClassVar[str] = "Self-training with causal effects"
    paper: ClassVar[str] = "Zheng et al. 2022 (CFNER), table 'Combining with other baselines'"
    good_for: ClassVar[str] = "Seeing what the soft label is worth."

    def objective(self, facts: StepFacts) -> Objective:
        return self.with_effects(facts, ClassifyEntities(), self.distil(facts, hard=True))
