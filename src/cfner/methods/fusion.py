from __future__ import annotations

import math
from typing import ClassVar

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from cfner.methods import Features, MethodParameters, Network, StepContext, Wrapper, register

_WORDS_AT_A_TIME = 4096


class FusionParameters(MethodParameters):
    fusion_w: float | None = Field(
        None, ge=0, le=1, description="share of the new weights; default: sqrt(C_N / (C_N + C_O))"
    )
    refit: int = Field(50, ge=0, description="passes over cached features to refit the new rows; 0: none")


@register
class Fusion(Wrapper):
    """After each step the encoder is averaged with the old one, and the new rows are refitted to it."""

    name: ClassVar[str] = "fusion"
    title: ClassVar[str] = "Weight fusion"
    paper: ClassVar[str] = (
        "Xiao et al. 2023, Endpoints Weight Fusion for Class Incremental Semantic Segmentation (CVPR)"
    )
    good_for: ClassVar[str] = "A method that learns well and forgets much."
    Parameters = FusionParameters

    def finish(self, network: Network, ctx: StepContext) -> None:
        """After the last epoch: $\\theta \\leftarrow (1 - w)\\,\\theta_{old} + w\\,\\theta_{new}$ for the
        encoder. The rows of the step's labels are then refitted on features that are computed once, by
        cross-entropy on the step's labels and, for words labelled O, the old model's labels.
        """
        if ctx.has_old:
            self._fuse(network, ctx)
        super().finish(network, ctx)  # last: what it keeps is of the network that is saved

    def _fuse(self, network: Network, ctx: StepContext) -> None:
        w = self.parameters.fusion_w
        if w is None:
            w = math.sqrt(ctx.new_types / (ctx.new_types + ctx.old_types))
        fuse(network.body, ctx.old.body, w)
        if self.parameters.refit:
            scores = ctx.ask(network, [Features()])
            (features,) = scores.readings["features"]
            targets = _targets(ctx).to(features.device)
            refit(network, features, targets, ctx.roles.new, self.parameters.refit)


@torch.no_grad()
def fuse(new: torch.nn.Module, old: torch.nn.Module, w: float) -> None:
    """Average the weights of two encoders, in place in the first."""
    for weight, before in zip(new.parameters(), old.parameters(), strict=True):
        weight.lerp_(before.to(weight), 1 - w)


def _targets(ctx: StepContext) -> Tensor:
    """[N] the step's labels; the old model's prediction where the step's label is O."""
    old, gold = ctx.ask(ctx.old).logits, ctx.data.gold
    pseudo = ctx.roles.kept.to(old.device)[old.argmax(1)].to(gold.device)
    return torch.where(gold == ctx.roles.other, pseudo, gold)


def refit(network: Network, features: Tensor, targets: Tensor, rows: tuple[int, ...], passes: int) -> None:
    """Train these rows of the head alone, on fixed features [N, H], to fit the targets [N] better."""
    head = network.head
    frozen = [row for row in range(head.labels) if row not in set(rows)]
    head.freeze(frozen)
    # sigma is frozen: it scales the old rows' scores too
    others = [p for name, p in head.named_parameters() if name not in {"weight", "bias"}]
    wanted = [p.requires_grad for p in others]
    for p in others:
        p.requires_grad_(False)
    optimiser = torch.optim.AdamW([p for p in head.parameters() if p.requires_grad], lr=1e-3, weight_decay=0)
    with torch.enable_grad():
        for _ in range(passes):
            optimiser.zero_grad()
            for at in range(0, len(features), _WORDS_AT_A_TIME):
                part = slice(at, at + _WORDS_AT_A_TIME)
                loss = F.cross_entropy(head(features[part].detach()), targets[part], reduction="sum")
                torch.autograd.backward(loss / len(features))
            optimiser.step()
    optimiser.zero_grad()
    for p, was in zip(others, wanted, strict=True):
        p.requires_grad_(was)
