from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from pydantic import Field

from cfner.methods import (
    ClassifyGroups,
    Curriculum,
    FirstStep,
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
    weights_of_rare,
    with_causal_effect,
)


class GroupParameters(MethodParameters):
    groups: Grouping = Field(
        "type", description="which labels share an Other class: each type's or each step's"
    )
    rare: float = Field(
        0.05,
        ge=0,
        le=1,
        description="words of a type that are a smaller share of its data count more, up to 4 times; "
        "0: all words count the same",
    )


class OwnOtherParameters(GroupParameters):
    lambda_keep: float = Field(1.0, ge=0, description="weight of keeping the old groups")
    sharpen: float = Field(
        2.0,
        ge=1,
        description="power to which the old model's prediction is raised where it finds an old type; "
        "1: kept as it is",
    )
    sure: float = Field(0.8, gt=0, le=1, description="probability that the old model must give to a negative")
    refines: float = Field(
        0.05,
        ge=0,
        le=1,
        description="an old type that claims this share of a new type's words is refined by it",
    )
    exclusive: bool = Field(False, description="words of a new type are negatives of the old types")


# without an old model there is nothing to keep and nothing to compare: only these decide a first step
FIRST_STEP: Final = FirstStep("own-other", frozenset({"groups", "rare"}))


@register
class OwnOther(Method):
    """Each type is classified on its own, against its own Other class; a word is O if no type claims it.

    New types learn from all words of the new data, which is annotated for them. Old types keep the old
    predictions, on all words that are not annotated for them: no training label contradicts them. Each type
    keeps the predictions of the model that learned it, so what a later step forgot is not passed on; what
    that model finds is kept sharper than it was, so its doubts are not passed on either.
    Unlabelled text rehearses the old types. Words in it that the old model is confident about are negatives
    of the new types.
    """

    name: ClassVar[str] = "own-other"
    title: ClassVar[str] = "Own Others"
    paper: ClassVar[str] = "-"
    good_for: ClassVar[str] = (
        "Learning new types and keeping the old ones, best with unlabelled text. The default."
    )
    promise: ClassVar[str] = (
        "Old types are kept by distillation on the text that mentions them, and no label of a new type "
        "contradicts them. How well that works is measured, not guaranteed."
    )
    parts: ClassVar[Mapping[str, str]] = {
        "negatives": "confident negatives from text that is not annotated for the new types",
        "keep": "the term that keeps old types",
        "origins": "each type is kept as the model that learned it predicts it; else as the last model does",
    }
    plain_first_step: ClassVar[bool] = False
    first_step: ClassVar[FirstStep | None] = FIRST_STEP
    Parameters: ClassVar[type[MethodParameters]] = OwnOtherParameters
    # 2: words of rare types count more. 3: types are kept as they were learned, with weight 1, not 2.
    # 4: what the old model finds is kept sharper
    recipe: ClassVar[int] = 4
    knob: ClassVar[str | None] = "lambda_keep"

    @property
    def grouping(self) -> Grouping | None:
        grouping: Grouping = self.parameters.groups
        return grouping

    @property
    def keeps_as_learned(self) -> bool:
        return self.has("keep") and self.has("origins") and not self.from_scratch

    def begin(self, network: Network, ctx: StepContext) -> None:
        """Only rows of types in the new data are trained; an Other, O too, only if its whole group is."""
        shared = {label for label, group in enumerate(ctx.labels.group_of) if not group} - {ctx.roles.other}
        complete = shared and shared.issubset(ctx.roles.new)
        trained = {*ctx.roles.new, *([ctx.roles.other] if complete else [])}
        network.head.freeze([row for row in range(len(ctx.labels)) if row not in trained])

    def objective(self, ctx: StepContext) -> Objective:
        if not self.has("keep") or not ctx.old_types:
            return Objective((ClassifyGroups(),))
        keep = KeepGroups(weight=self.parameters.lambda_keep, sharpen=self.parameters.sharpen)
        return Objective((ClassifyGroups(), keep))

    def teachers(self, ctx: StepContext) -> dict[str, WordScores]:
        """The old model, with the log-odds of each type from the model that learned it. What a later step
        forgot of a type is then not handed on, but brought back.
        """
        return {"old": ctx.ask(ctx.old, self.objective(ctx).probes, as_learned=self.keeps_as_learned)}

    def targets(self, ctx: StepContext, teachers: Mapping[str, WordScores]) -> Targets:
        """A word teaches each group separately. Where the data is annotated for the group's types, it learns
        its label or the group's Other; elsewhere it keeps the old prediction.
        """
        taught = group_targets(ctx.data, ctx.groups, ctx.labels.types_of_groups)
        weights = weights_of_rare(taught, self.parameters.rare) if self.parameters.rare else None
        if "old" in teachers:
            found = OldMentions(ctx, teachers["old"], self.parameters.refines)
            if self.has("negatives"):
                taught = found.as_negatives(taught, self.parameters.sure)
            if self.parameters.exclusive:
                taught = found.exclusive(taught)
        return Targets(ctx.data.gold, groups=taught, group_weights=weights)


@register
class JointOwn(OwnOther):
    """Training from scratch at each step on all data so far, each slice labelled with its own types alone.

    It sees the same annotation as a continual method and has nothing to forget: the fair upper bound. It is
    not a strict bound, because a method that uses words of other slices as negatives may exceed it.
    """

    name: ClassVar[str] = "joint-own"
    title: ClassVar[str] = "Joint training, own labels"
    paper: ClassVar[str] = "-"
    good_for: ClassVar[str] = "Knowing what could be reached if nothing were forgotten."
    from_scratch: ClassVar[bool] = True
    recipe: ClassVar[int] = 3  # it keeps nothing, so the latest change did not concern it
    first_step: ClassVar[FirstStep | None] = FIRST_STEP
    knob: ClassVar[str | None] = None  # there are no old types
    reads_unlabelled: ClassVar[bool] = False
    promise: ClassVar[str] = "A bound to compare with: it trains on the data of all steps, so nothing is old."
    parts: ClassVar[dict[str, str]] = {}
    Parameters: ClassVar[type[MethodParameters]] = GroupParameters

    def slices(self, step: Step) -> tuple[Slice, ...]:
        return step.own_slices

    def begin(self, network: Network, ctx: StepContext) -> None:
        """The rows of all types so far are trained."""
        super().begin(network, ctx)

    def objective(self, ctx: StepContext) -> Objective:
        return Objective((ClassifyGroups(),))

    def targets(self, ctx: StepContext, teachers: Mapping[str, WordScores]) -> Targets:
        """A word teaches the groups for whose types its slice is annotated, and no others."""
        return super().targets(ctx, teachers)


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
    """`own-other` with predictions averaged over words that the old model found similar.

    Effect_E: words of a new type with words of the same type, in its group. Effect_O: words that the old
    model predicts as an old type with words that it assigns to the same group, in that group.
    """

    name: ClassVar[str] = "own-other+cf"
    title: ClassVar[str] = "Own Others with causal effects"
    paper: ClassVar[str] = "Zheng et al. 2022 (CFNER), whose effects it takes"
    good_for: ClassVar[str] = "Measuring what causal effects contribute where no Other class is shared."
    parts: ClassVar[Mapping[str, str]] = {
        **OwnOther.parts,
        "effect_e": "Effect_E; new types then read their own predictions",
        "effect_o": "Effect_O; old types then read their own predictions",
        "curriculum": "the falling threshold; all defined-other tokens are then selected from the start",
    }
    first_step: ClassVar[FirstStep | None] = FIRST_STEP
    Parameters = OwnOtherWithEffectsParameters

    def objective(self, ctx: StepContext) -> Objective:
        plain = super().objective(ctx)
        if not ctx.old_types:  # without an old model there are no features to compare
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
