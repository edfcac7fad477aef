from __future__ import annotations

from typing import ClassVar

from cfner.methods.registry import Method, StepFacts, register
from cfner.objective.library import ClassifyAll
from cfner.objective.terms import Objective


@register
class Finetune(Method):
    """Plain fine-tuning on each step's data: the lower bound, which forgets."""

    name: ClassVar[str] = "finetune"
    title: ClassVar[str] = "Fine-tuning"
    paper: ClassVar[str] = "-"
    good_for: ClassVar[str] = "Seeing how much is forgotten when nothing is done about it."
    freezes_old_rows: ClassVar[bool] = False

    def objective(self, facts: StepFacts) -> Objective:
        return Objective((ClassifyAll(),))
