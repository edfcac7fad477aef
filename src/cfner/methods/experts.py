from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from cfner.methods import (
    ClassifyGroups,
    Grouping,
    KeepGroups,
    Method,
    MethodParameters,
    Network,
    Objective,
    OldMentions,
    StepContext,
    Targets,
    WordScores,
    group_targets,
    refuse_top,
    register,
    with_expert,
)


class ExpertsParameters(MethodParameters):
    top: int | None = Field(
        None,
        ge=1,
        description="number of top layers in each expert; default: a third of the encoder's",
    )
    old_wins: bool = Field(
        False, description="new types claim only words that no older type claims: no old prediction changes"
    )
    groups: Grouping = Field(
        "type", description="which labels share an Other class: each type's or each step's"
    )
    sure: float = Field(0.8, gt=0, le=1, description="probability that the old model must give to a negative")
    refines: float = Field(
        0.05,
        ge=0,
        le=1,
        description="an old type that claims this share of a new type's words is refined by it",
    )
    lambda_keep: float = Field(
        2.0,
        ge=0,
        description="weight of keeping what was learned about a type when a step brings more data for it",
    )


@register
class Experts(Method):
    """Each step trains its own top layers, which only its types use: nothing old changes.

    The first step trains the whole encoder. After it the lower layers are shared and frozen. Each later step
    adds an expert: a copy of the last step's top layers, which it trains, and a head for its types. The
    log-odds of all other types stay bit-identical, so no type can be forgotten, only outvoted by another one.
    With `old_wins` types rank by step, and even that cannot happen.

    More data for a known type gives that type a new expert, which replaces the old one for this type alone.
    In text that is not annotated for the type, the new expert is trained to keep the old one's answers (KL,
    weight `lambda_keep`).
    Each type has its own Other class, as in `own-other`. Each step costs the time and disk space of its top
    layers. `cfner consolidate` merges all experts into one network.
    """

    name: ClassVar[str] = "experts"
    title: ClassVar[str] = "Experts"
    paper: ClassVar[str] = "written for this program; there is no paper"
    good_for: ClassVar[str] = "Adding types to a model whose answers for the old ones must not change."
    promise: ClassVar[str] = (
        "The log-odds of old types stay bit-identical, so none is forgotten. A new type may still claim "
        "words of an old one, unless old_wins is set."
    )
    parts: ClassVar[Mapping[str, str]] = {
        "negatives": "confident negatives from text that is not annotated for the new types",
    }
    plain_first_step: ClassVar[bool] = False
    adds_experts: ClassVar[bool] = True
    Parameters = ExpertsParameters

    @property
    def grouping(self) -> Grouping | None:
        grouping: Grouping = self.parameters.groups
        return grouping

    @property
    def keeps_predictions(self) -> bool:
        """Only with `old_wins`. Otherwise a new type may claim words of old types."""
        return bool(self.parameters.old_wins)

    def grow(self, network: Network, ctx: StepContext) -> Network:
        top: int | None = self.parameters.top
        refuse_top(network, top)  # in the first step too: better an error now than in the second step
        if not ctx.has_old:
            return network
        taken = [label for label in ctx.roles.new if label < network.labels]
        return with_expert(
            network,
            ctx.labels.group_of,
            top=top,
            taken=taken,
            old_wins=self.parameters.old_wins,
            silent=ctx.labels.silent,
        )

    def begin(self, network: Network, ctx: StepContext) -> None:
        """All rows of the new expert are trained, except O's, which is 0 in every expert after the first."""
        network.head.freeze([0])

    def objective(self, ctx: StepContext) -> Objective:
        known = set(ctx.roles.kept.tolist()) & set(ctx.roles.new)
        if not known:
            return Objective((ClassifyGroups(),))
        return Objective((ClassifyGroups(), KeepGroups(weight=self.parameters.lambda_keep)))

    def targets(self, ctx: StepContext, teachers: Mapping[str, WordScores]) -> Targets:
        """Words of the new data teach the step's types. In other text, a word that is confidently of an old
        type is a negative of the new types: old scores cannot change, but new types compete with them.
        """
        taught = group_targets(ctx.data, ctx.groups, ctx.labels.types_of_groups)
        if "old" in teachers and self.has("negatives"):
            found = OldMentions(ctx, teachers["old"], self.parameters.refines)
            taught = found.as_negatives(taught, self.parameters.sure)
        return Targets(ctx.data.gold, groups=taught)
