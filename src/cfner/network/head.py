"""Classification heads whose rows can be added, imprinted and frozen.

A head sees words, not sequences: features are ``[W, H]``, so its answer for a word cannot depend on
padding or on the other sentences of a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

HeadKind = Literal["cosine", "linear"]


class Head(nn.Module):
    """Rows of ``weight`` are labels: ``[C, H]``. Row i never moves to another index."""

    weight: nn.Parameter
    kind: HeadKind
    train_mask: Tensor

    def __init__(self, hidden: int, labels: int) -> None:
        super().__init__()
        self.hidden, self.labels = hidden, labels
        self.weight = nn.Parameter(torch.empty(labels, hidden).normal_(std=0.02))
        # which rows may move; applied to the gradient, so that no optimiser can move a frozen row
        self.register_buffer("train_mask", torch.ones(labels, dtype=torch.bool), persistent=False)
        _hook(self.weight, self._mask_gradient)

    def _mask_gradient(self, gradient: Tensor) -> Tensor:
        mask = self.train_mask
        return torch.where(mask.view(-1, *[1] * (gradient.dim() - 1)), gradient, gradient.new_zeros(()))

    def freeze(self, rows: Collection[int]) -> None:
        """Freeze exactly these rows; all others may move."""
        mask = torch.ones(self.labels, dtype=torch.bool, device=self.weight.device)
        mask[list(rows)] = False
        self.train_mask = mask

    def forward(self, features: Tensor) -> Tensor:
        raise NotImplementedError

    def grown(self, rows: Tensor) -> Head:
        """A new head with ``rows [N, H]`` appended below the old ones, which are copied bit for bit."""
        raise NotImplementedError

    def imprint_rows(self, means: Tensor) -> Tensor:
        """Scale mean normalised features ``[N, H]`` to the mean norm of the present rows."""
        norm: Tensor = self.weight.detach().norm(dim=1).mean()
        return F.normalize(means, dim=1) * norm


class CosineHead(Head):
    """``logits = sigma * cos(h, w)``: the paper's head. No bias; sigma is learned."""

    kind: HeadKind = "cosine"

    def __init__(self, hidden: int, labels: int, sigma: float = 16.0) -> None:
        super().__init__(hidden, labels)
        self.sigma = nn.Parameter(torch.tensor(float(sigma)))

    def cosines(self, features: Tensor) -> Tensor:
        """[W, H] -> [W, C], normalised over the hidden axis."""
        return F.normalize(features, dim=1) @ F.normalize(self.weight, dim=1).T

    def forward(self, features: Tensor) -> Tensor:
        return self.sigma * self.cosines(features)

    def grown(self, rows: Tensor) -> CosineHead:
        head = CosineHead(self.hidden, self.labels + len(rows))
        with torch.no_grad():
            head.weight.copy_(torch.cat([self.weight, rows.to(self.weight)]))
            head.sigma.copy_(self.sigma)
        return head.to(self.weight.device)


class LinearHead(Head):
    """``logits = h W^T + b``: kept as it is when somebody's checkpoint comes with one.

    The rows are multiplied in the ``blocks`` in which they were added: the last bits of a product depend on
    its shape, and a grown head must say of the old labels exactly what the checkpoint said.
    """

    kind: HeadKind = "linear"

    def __init__(self, hidden: int, labels: int, blocks: Sequence[int] | None = None) -> None:
        super().__init__(hidden, labels)
        self.bias = nn.Parameter(torch.zeros(labels))
        self.blocks = tuple(blocks) if blocks else (labels,)
        if sum(self.blocks) != labels or min(self.blocks) < 1:
            raise ValueError(f"blocks {self.blocks} are not {labels} rows")
        _hook(self.bias, self._mask_gradient)

    def forward(self, features: Tensor) -> Tensor:
        sizes = list(self.blocks)
        rows, biases = torch.split(self.weight, sizes), torch.split(self.bias, sizes)
        return torch.cat([F.linear(features, w, b) for w, b in zip(rows, biases, strict=True)], dim=-1)

    def grown(self, rows: Tensor) -> LinearHead:
        blocks = (*self.blocks, len(rows)) if len(rows) else self.blocks
        head = LinearHead(self.hidden, self.labels + len(rows), blocks)
        with torch.no_grad():
            head.weight.copy_(torch.cat([self.weight, rows.to(self.weight)]))
            # a new label starts no more likely a priori than the average old one
            head.bias.copy_(torch.cat([self.bias, self.bias.mean().expand(len(rows))]))
        return head.to(self.weight.device)


def _hook(parameter: nn.Parameter, hook: Callable[[Tensor], Tensor]) -> None:
    register: Callable[..., object] = parameter.register_hook
    register(hook)


def make_head(
    kind: HeadKind, hidden: int, labels: int, sigma: float = 16.0, blocks: Sequence[int] | None = None
) -> Head:
    return CosineHead(hidden, labels, sigma) if kind == "cosine" else LinearHead(hidden, labels, blocks)
