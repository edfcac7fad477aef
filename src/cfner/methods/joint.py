from __future__ import annotations

from typing import ClassVar

from cfner.methods.registry import Method, StepFacts, register
from cfner.objective.library import ClassifyAll
from cfner.objective.terms import Objective


@register
class Joint(Method):
    """Training anew at each step on all data so far with all labels so far: the upper bound.

    It needs what continual learning does not have: the old data, and the new types labelled in it.
    """

    name: ClassVar[str] = "joint"
    title: ClassVar[str] = "Joint training"
    paper: ClassVar[str] = "-"
    good_for: ClassVar[str] = "Knowing how much room there is above the other methods."
    freezes_old_rows: ClassVar[bool] = False
    from_scratch: ClassVar[bool] = True

    def objective(self, facts: StepFacts) -> Objective:
        return Objective((ClassifyAll(),))
