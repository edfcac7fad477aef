from __future__ import annotations

import math
from typing import ClassVar

from pydantic import Field

from cfner.methods import (
    DISTILS,
    ClassifyWithMargin,
    KeepFeatures,
    KeepLayers,
    Method,
    MethodParameters,
    Objective,
    StepContext,
    register,
)


class PODNetParameters(MethodParameters):
    lambda_c: float = Field(3.0, ge=0, description="weight of POD-spatial (every layer)")
    lambda_f: float = Field(1.0, ge=0, description="weight of POD-flat (final features)")
    margin: float = Field(0.6, ge=0, description="margin of the NCA loss")


@register
class PODNet(Method):
    """NCA classification of the new entities; keeps pooled hidden states of every layer close to the old."""

    name: ClassVar[str] = "podnet"
    title: ClassVar[str] = "PODNet"
    paper: ClassVar[str] = "Douillard et al. 2020, PODNet: Pooled Outputs Distillation (ECCV)"
    good_for: ClassVar[str] = "A layer-level baseline from image classification."
    promise: ClassVar[str] = DISTILS
    Parameters = PODNetParameters
    knob: ClassVar[str | None] = "lambda_c"

    def objective(self, ctx: StepContext) -> Objective:
        p: PODNetParameters = self.parameters
        scale = math.sqrt((ctx.old_types + ctx.new_types) / ctx.new_types)
        return Objective(
            (
                ClassifyWithMargin(margin=p.margin),
                KeepFeatures(weight=p.lambda_f * scale),
                KeepLayers(weight=p.lambda_c * scale),
            )
        )
