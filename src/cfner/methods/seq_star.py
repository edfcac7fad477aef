from __future__ import annotations

from typing import ClassVar

from cfner.methods import ClassifyAll, HeadKind, Method, Network, Objective, StepContext, register


@register
class SeqStar(Method):
    """Plain cross-entropy, with the encoder and the rows of old types frozen after the first step.

    The first step is the warm-up: it trains the encoder as always. After it a step only adds rows, by a
    softmax over all labels, O included. The head is linear. O's row moves unless `freeze_other` is set, since
    what O means changes with every step. Nothing else can be forgotten: an old type is lost only where O or a
    new type now scores higher.
    """

    name: ClassVar[str] = "seq-star"
    title: ClassVar[str] = "SEQ*"
    paper: ClassVar[str] = (
        "Zheng et al. 2024, Learn or Recall? Revisiting Incremental Learning with Pre-trained Language "
        "Models (ACL)"
    )
    good_for: ClassVar[str] = (
        "A simple bar for every method that distils: only rows are trained after the first step."
    )
    promise: ClassVar[str] = (
        "The scores of old types do not change by a bit. O and the new types may still outvote them."
    )
    reads_unlabelled: ClassVar[bool] = False
    plain_first_step: ClassVar[bool] = False  # with a linear head, it is not that of the other methods
    head: ClassVar[HeadKind | None] = "linear"

    def begin(self, network: Network, ctx: StepContext) -> None:
        """The encoder and the rows of old types are frozen (O's row too with `freeze_other`)."""
        super().begin(network, ctx)
        if ctx.has_old:
            network.body.requires_grad_(False)

    def objective(self, ctx: StepContext) -> Objective:
        return Objective((ClassifyAll(),))
