from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from cfner.methods import (
    ClassifyGroups,
    Grouping,
    HeadKind,
    Method,
    Network,
    Objective,
    StepContext,
    Targets,
    WordScores,
    group_targets,
    register,
)


@register
class IceO(Method):
    """A separate classifier for each step on a frozen encoder, with a constant score for Other.

    The first step trains the encoder. Each later step trains only the rows of its types, by a softmax over
    these labels and a constant score $\\delta$ for Other; the labels of earlier steps are not in it. A word
    gets the label with the highest score of all steps, or O if that is $\\delta$. The paper does not give the
    value of $\\delta$. Here it is 0: every label has a bias, so any other constant is the same model. A new
    model has a linear head; in a cosine head Other has a row instead of a constant.
    """

    name: ClassVar[str] = "ice-o"
    title: ClassVar[str] = "ICE-O"
    paper: ClassVar[str] = (
        "Liu and Huang 2023, Teamwork Is Not Always Good: An Empirical Study of Classifier Drift in "
        "Class-incremental Information Extraction (Findings of ACL)"
    )
    good_for: ClassVar[str] = (
        "Adding types to a model whose scores for the old ones must stay, without training its encoder."
    )
    promise: ClassVar[str] = (
        "The scores of old types stay bit-identical, so no type is forgotten. A new type may still claim "
        "words of an old one."
    )
    reads_unlabelled: ClassVar[bool] = False
    plain_first_step: ClassVar[bool] = False
    head: ClassVar[HeadKind | None] = "linear"  # in which a group's Other is the constant 0

    @property
    def grouping(self) -> Grouping | None:
        return "step"

    def begin(self, network: Network, ctx: StepContext) -> None:
        """Only the rows of the step's types are trained; in the first step also the encoder."""
        trained = set(ctx.roles.new)
        network.head.freeze([row for row in range(network.labels) if row not in trained])
        if ctx.has_old:
            network.body.requires_grad_(False)

    def objective(self, ctx: StepContext) -> Objective:
        return Objective((ClassifyGroups(),))

    def targets(self, ctx: StepContext, teachers: Mapping[str, WordScores]) -> Targets:
        """A word teaches the step's classifier its label, or Other if it has none of the step's types."""
        return Targets(ctx.data.gold, groups=group_targets(ctx.data, ctx.groups, ctx.labels.types_of_groups))
