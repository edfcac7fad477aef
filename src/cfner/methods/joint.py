from __future__ import annotations

from typing import ClassVar

from cfner.methods import ClassifyAll, Method, Objective, Slice, Step, StepContext, register


@register
class Joint(Method):
    """Training from scratch at each step on all data so far with all labels so far: the upper bound.

    It needs what continual learning does not have: the old data, with the new types labelled in it.
    """

    name: ClassVar[str] = "joint"
    title: ClassVar[str] = "Joint training"
    paper: ClassVar[str] = "-"
    good_for: ClassVar[str] = "Knowing how far the other methods are below the upper bound."
    freezes_old_rows: ClassVar[bool] = False
    reads_unlabelled: ClassVar[bool] = False
    from_scratch: ClassVar[bool] = True

    def slices(self, step: Step) -> tuple[Slice, ...]:
        return step.joint_slices

    def objective(self, ctx: StepContext) -> Objective:
        return Objective((ClassifyAll(),))
