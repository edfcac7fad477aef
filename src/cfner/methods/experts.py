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
        description="top layers that each expert has of its own; default: a third of the encoder's",
    )
    old_wins: bool = Field(
        False, description="new types claim only words that no older type claims: no old prediction changes"
    )
    groups: Grouping = Field("type", description="whose own Other class it is: each type's, or each step's")
    sure: float = Field(0.8, gt=0, le=1, description="how sure the old model must be of a negative")
    refines: float = Field(
        0.05, ge=0, le=1, description="share of a new type's words that an old type claims, if it is refined"
    )
    lambda_keep: float = Field(
        2.0,
        ge=0,
        description="weight of keeping what is known of a type for which the step brings more data",
    )


@register
class Experts(Method):
    """Each step trains top layers of its own, which only its types read: nothing old moves.

    The first step trains the whole encoder. After it the lower layers are shared and frozen. Each later step
    adds an expert: a copy of the last step's top layers, trained on, with a head for its types. The log-odds
    of all other types are bit for bit what they were, so no type can be forgotten, only outvoted by another
    one. With `old_wins` types rank by step, and not even that can happen.

    More data for a known type gives that type a new expert, which replaces the old one for this type alone.
    Types have Other classes of their own, as in `own-other`. Each step costs its top layers, in time and on
    disk. `cfner consolidate` makes one network of all experts.
    """

    name: ClassVar[str] = "experts"
    title: ClassVar[str] = "Experts"
    paper: ClassVar[str] = "written for this program; there is no paper"
    good_for: ClassVar[str] = "Adding types to a model whose answers for the old ones must not change."
    promise: ClassVar[str] = (
        "The log-odds of old types do not change by a bit, so none is forgotten. A new type may still claim "
        "words of an old one, unless old_wins is set."
    )
    parts: ClassVar[Mapping[str, str]] = {
        "negatives": "sure negatives from text that is not annotated for the new types",
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
        """Only if old types win. Otherwise a new one may claim their words, though their scores stay."""
        return bool(self.parameters.old_wins)

    def grow(self, network: Network, ctx: StepContext) -> Network:
        top: int | None = self.parameters.top
        refuse_top(network, top)  # in the first step too: better now than when the second one begins
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
        """All rows of the new expert move, but for that of O, which is 0 in every expert after the first."""
        network.head.freeze([0])

    def objective(self, ctx: StepContext) -> Objective:
        known = set(ctx.roles.kept.tolist()) & set(ctx.roles.new)
        if not known:
            return Objective((ClassifyGroups(),))
        return Objective((ClassifyGroups(), KeepGroups(weight=self.parameters.lambda_keep)))

    def targets(self, ctx: StepContext, teachers: Mapping[str, WordScores]) -> Targets:
        """Words of the new data teach the step's types. In other text a word that is surely of an old type is
        a negative of the new ones: nothing old is lost to them, but they compete.
        """
        taught = group_targets(ctx.data, ctx.groups, ctx.labels.types_of_groups)
        if "old" in teachers and self.has("negatives"):
            found = OldMentions(ctx, teachers["old"], self.parameters.refines)
            taught = found.as_negatives(taught, self.parameters.sure)
        return Targets(ctx.data.gold, groups=taught)
