"""Optimiser and learning-rate schedule, with separate rates for encoder and head."""

from __future__ import annotations

import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from cfner.network.network import Network

_EPOCHS_BEFORE_DROP = 5  # as published, for ten epochs and for twenty


def make_optimiser(
    network: Network,
    *,
    kind: str,
    lr_encoder: float,
    lr_head: float,
    weight_decay: float,
    momentum: float,
) -> Optimizer:
    """Head rows have no weight decay: it would change frozen rows."""
    encoder = [p for p in network.body.parameters() if p.requires_grad]
    head = [p for p in network.head.parameters() if p.requires_grad]
    decaying = [p for p in encoder if p.dim() > 1]  # without biases and layer norms
    plain = [p for p in encoder if p.dim() <= 1]
    groups = [
        {"params": decaying, "lr": lr_encoder, "weight_decay": weight_decay},
        {"params": plain, "lr": lr_encoder, "weight_decay": 0.0},
        {"params": head, "lr": lr_head, "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    if kind == "sgd":
        return torch.optim.SGD(groups, momentum=momentum, fused=True)
    return torch.optim.AdamW(groups, fused=True)


def make_schedule(
    optimiser: Optimizer, *, kind: str, per_epoch: int, epochs: int, warmup: float, first_step: bool
) -> LambdaLR:
    """A factor per optimiser update: rises in the warm-up, then falls, stays or drops."""
    updates = per_epoch * epochs
    warm = int(updates * warmup)

    def factor(update: int) -> float:
        if update < warm:
            return (update + 1) / (warm + 1)
        if kind == "linear":
            return max(0.0, (updates - update) / max(1, updates - warm))
        if kind == "drop" and first_step and update >= per_epoch * _EPOCHS_BEFORE_DROP:
            return 0.2
        return 1.0

    return LambdaLR(optimiser, factor)


def trainable(network: nn.Module) -> list[nn.Parameter]:
    return [parameter for parameter in network.parameters() if parameter.requires_grad]
