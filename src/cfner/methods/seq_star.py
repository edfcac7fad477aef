from __future__ import annotations

from typing import ClassVar

from cfner.methods import ClassifyAll, HeadKind, Method, Network, Objective, StepContext, register


@register
class SeqStar(Method):
    """Plain cross-entropy, with the encoder and the rows of old types frozen after the first step.

    The first step is a warm-up: it trains the encoder as usual. Each later step only adds rows, by a softmax
    over all labels, O included. A new model has a linear head. O's row is trained unless `freeze_other` is
    set, because the meaning of O changes with every step. Nothing else can be forgotten: an old type is lost
    only where O or a new type now scores higher.
    """

    name: ClassVar[str] = "seq-star"
    title: ClassVar[str] = "SEQ*"
    paper: ClassVar[str] = (
        "Zheng et al. 2024, Learn or Recall? Revisiting Incremental Learning with Pre-trained Language "
        "Models (ACL)"
    )
    good_for: ClassVar[str] = (
        "A simple baseline for every method that distils: only rows are trained after the first step."
    )
    promise: ClassVar[str] = (
        "The scores of old types stay the same, bit for bit with a linear head. O and the new types may "
        "still outvote them."
    )
    reads_unlabelled: ClassVar[bool] = False
    plain_first_step: ClassVar[bool] = False  # it has a linear head, so it differs from that of other methods
    head: ClassVar[HeadKind | None] = "linear"

    def begin(self, network: Network, ctx: StepContext) -> None:
        """The encoder, the rows of old types and a cosine head's sigma are frozen (O's row too with
        `freeze_other`).
        """
        super().begin(network, ctx)
        if ctx.has_old:
            network.body.requires_grad_(False)
            network.head.scale_frozen = True

    def objective(self, ctx: StepContext) -> Objective:
        return Objective((ClassifyAll(),))
