from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from cfner.methods import (
    ClassifyGroups,
    Curriculum,
    Grouping,
    KeepGroups,
    Method,
    MethodParameters,
    Network,
    Objective,
    OldMentions,
    Slice,
    Step,
    StepContext,
    Targets,
    WordScores,
    group_targets,
    register,
    with_causal_effect,
)


class OwnOtherParameters(MethodParameters):
    groups: Grouping = Field("type", description="whose own Other class it is: each type's, or each step's")
    lambda_keep: float = Field(2.0, ge=0, description="weight of keeping the old groups")
    sure: float = Field(0.8, gt=0, le=1, description="how sure the old model must be of a negative")
    refines: float = Field(
        0.05, ge=0, le=1, description="share of a new type's words that an old type claims, if it is refined"
    )
    exclusive: bool = Field(False, description="words of a new type are negatives of the old types")


@register
class OwnOther(Method):
    """Every type is a question of its own, with an Other class of its own; a word is O if no type claims it.

    New types learn from all words of the new data, which are annotated for them. Old types keep what the old
    model said, on all words that are not annotated for them: nothing that is learned argues against it.
    Unlabelled text reminds the model of old types, and words in it that the old model is sure of are
    negatives of the new types.
    """

    name: ClassVar[str] = "own-other"
    title: ClassVar[str] = "Own Others"
    paper: ClassVar[str] = "-"
    good_for: ClassVar[str] = (
        "Learning new types and keeping the old ones, best with unlabelled text. The default."
    )
    promise: ClassVar[str] = (
        "Old types are kept by distillation on the text that they are mentioned in, and no label of a new "
        "type argues against them. How well that works is measured, not guaranteed."
    )
    parts: ClassVar[Mapping[str, str]] = {
        "negatives": "sure negatives from text that is not annotated for the new types",
        "keep": "the term that keeps old types",
    }
    plain_first_step: ClassVar[bool] = False
    Parameters = OwnOtherParameters
    knob: ClassVar[str | None] = "lambda_keep"

    @property
    def grouping(self) -> Grouping | None:
        grouping: Grouping = self.parameters.groups
        return grouping

    def begin(self, network: Network, ctx: StepContext) -> None:
        """Only rows of types in the new data move; an Other, O too, only if all rows of its group do."""
        shared = {label for label, group in enumerate(ctx.labels.group_of) if not group} - {ctx.roles.other}
        complete = shared and shared.issubset(ctx.roles.new)
        trained = {*ctx.roles.new, *([ctx.roles.other] if complete else [])}
        network.head.freeze([row for row in range(len(ctx.labels)) if row not in trained])

    def objective(self, ctx: StepContext) -> Objective:
        if not self.has("keep") or not ctx.old_types:
            return Objective((ClassifyGroups(),))
        return Objective((ClassifyGroups(), KeepGroups(weight=self.parameters.lambda_keep)))

    def targets(self, ctx: StepContext, teachers: Mapping[str, WordScores]) -> Targets:
        """A word teaches each group on its own: its label or the group's Other where the data is annotated
        for the group's types, to stay as it was where it is not.
        """
        taught = group_targets(ctx.data, ctx.groups, ctx.labels.types_of_groups)
        if "old" in teachers:
            found = OldMentions(ctx, teachers["old"], self.parameters.refines)
            if self.has("negatives"):
                taught = found.as_negatives(taught, self.parameters.sure)
            if self.parameters.exclusive:
                taught = found.exclusive(taught)
        return Targets(ctx.data.gold, groups=taught)


@register
class JointOwn(OwnOther):
    """Training from scratch at each step on all data so far, each slice labelled with its own types alone.

    The same annotation as a continual method sees, and nothing to forget: the fair ceiling. It is not a
    strict bound, because a method that takes words of other slices as negatives may pass it.
    """

    name: ClassVar[str] = "joint-own"
    title: ClassVar[str] = "Joint training, own labels"
    paper: ClassVar[str] = "-"
    good_for: ClassVar[str] = "Knowing what could be reached if nothing were forgotten."
    from_scratch: ClassVar[bool] = True
    knob: ClassVar[str | None] = None  # nothing is old
    reads_unlabelled: ClassVar[bool] = False
    parts: ClassVar[dict[str, str]] = {}

    def slices(self, step: Step) -> tuple[Slice, ...]:
        return step.own_slices


class OwnOtherWithEffectsParameters(OwnOtherParameters):
    k: int = Field(3, ge=0, description="matched tokens per anchor, K")
    weights: tuple[float, ...] | None = Field(
        None, description="W_i, W_i1 ... W_iK: non-increasing, summing to 1; default 1/2 and 1/(2K) each"
    )
    delta_1: float = Field(1.0, ge=0, le=1, description="confidence threshold in the first epoch")
    delta_m: float = Field(0.0, ge=0, le=1, description="confidence threshold from epoch m on")
    m: int | None = Field(None, ge=1, description="epoch at which delta_m is reached; default: the last")


@register
class OwnOtherWithEffects(OwnOther):
    """Own Others whose predictions are averaged with those of words that looked alike to the old model.

    Effect_E: words of a new type with words of the same type, in its group. Effect_O: words that the old
    model takes for an old type with words that it gives to the same group, in that group.
    """

    name: ClassVar[str] = "own-other+cf"
    title: ClassVar[str] = "Own Others with causal effects"
    paper: ClassVar[str] = "Zheng et al. 2022 (CFNER), whose effects it takes"
    good_for: ClassVar[str] = "Seeing what the causal effects are worth where no Other class is shared."
    parts: ClassVar[Mapping[str, str]] = {
        **OwnOther.parts,
        "effect_e": "Effect_E; new types then read their own predictions",
        "effect_o": "Effect_O; old types then read their own predictions",
        "curriculum": "the falling threshold; defined-other tokens are then all selected from the start",
    }
    Parameters = OwnOtherWithEffectsParameters

    def objective(self, ctx: StepContext) -> Objective:
        plain = super().objective(ctx)
        if not ctx.old_types:  # no old model, whose features would be compared
            return plain
        p: OwnOtherWithEffectsParameters = self.parameters
        curriculum = Curriculum(p.delta_1, p.delta_m, ctx.epochs if p.m is None else p.m)
        return with_causal_effect(
            plain,
            effect_e=self.has("effect_e"),
            effect_o=self.has("effect_o") and self.has("keep"),
            k=p.k,
            weights=p.weights,
            curriculum=curriculum if self.has("curriculum") else Curriculum(0.0, 0.0, 1),
        )
