from __future__ import annotations

import math
from typing import ClassVar

from pydantic import Field

from cfner.methods.registry import Method, MethodParameters, StepFacts, register
from cfner.objective.library import ClassifyWithMargin, KeepFeatures, KeepLayers
from cfner.objective.terms import Objective


class PODNetParameters(MethodParameters):
    lambda_c: float = Field(3.0, ge=0, description="weight of POD-spatial (every layer)")
    lambda_f: float = Field(1.0, ge=0, description="weight of POD-flat (final features)")
    margin: float = Field(0.6, ge=0, description="margin of the NCA loss")


@register
class PODNet(Method):
    """NCA classification of the new entities; sums of every layer's hidden states kept in place."""

    name: ClassVar[str] = "podnet"
    title: ClassVar[str] = "PODNet"
    paper: ClassVar[str] = "Douillard et al. 2020, PODNet: Pooled Outputs Distillation (ECCV)"
    good_for: ClassVar[str] = "A layer-level baseline from image classification."
    Parameters = PODNetParameters

    def objective(self, facts: StepFacts) -> Objective:
        p: PODNetParameters = self.parameters
        scale = math.sqrt((facts.old_types + facts.new_types) / facts.new_types)
        return Objective(
            (
                ClassifyWithMargin(margin=p.margin),
                KeepFeatures(weight=p.lambda_f * scale),
                KeepLayers(weight=p.lambda_c * scale),
            )
        )
