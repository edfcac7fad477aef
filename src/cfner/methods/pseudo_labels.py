"""Labels that a teacher gives to words labelled O."""

from __future__ import annotations

import torch
from torch import Tensor

from cfner.batches.step_data import IGNORE
from cfner.methods.context import StepContext


def with_pseudo_labels(ctx: StepContext, pseudo: Tensor) -> Tensor:
    """[N] the step's labels; words labelled O take ``pseudo [N]``: an old label, O or IGNORE.

    The teacher's O says only that a word is not of an old type. In text that is not labelled with the step's
    types the word may be of one of those, so there it is not trained as O, but ignored.
    """
    gold, other = ctx.data.gold, ctx.roles.other
    labels = torch.where(gold == other, pseudo.to(gold.device), gold)
    unknown = (labels == other) & ~ctx.data.annotated(ctx.current).to(gold.device)
    return labels.masked_fill(unknown, IGNORE)
