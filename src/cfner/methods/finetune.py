from __future__ import annotations

from typing import ClassVar

from cfner.methods import ClassifyAll, Method, Objective, StepContext, register


@register
class Finetune(Method):
    """Plain fine-tuning on each step's data: the lower bound, which forgets."""

    name: ClassVar[str] = "finetune"
    title: ClassVar[str] = "Fine-tuning"
    paper: ClassVar[str] = "-"
    good_for: ClassVar[str] = "Measuring how much is forgotten when nothing prevents it."
    promise: ClassVar[str] = "Nothing protects the old types: expect them to be forgotten."
    freezes_old_rows: ClassVar[bool] = False
    reads_unlabelled: ClassVar[bool] = False

    def objective(self, ctx: StepContext) -> Objective:
        return Objective((ClassifyAll(),))
