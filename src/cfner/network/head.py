"""Classification heads whose rows can be added, imprinted and frozen.

A head sees words, not sequences: features are ``[W, H]``, so its scores for a word cannot depend on padding
or on the other sentences of a batch.

Labels form groups. Those of group 0 share the label O. Each later group g has its own Other class O_g, and
the head's column for its label c is ``z_O + (z_c - z_{O_g})``: O's column plus the log-odds of the label
against its own Other. So argmax over columns gives the best label, and a softmax over O's column and a
group's columns gives the distribution of that group.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

HeadKind = Literal["cosine", "linear"]
START_SIGMA: Final = 16.0  # chosen by measurement: see docs/decisions.md


class Head(nn.Module):
    """Rows of ``weight`` are labels: ``[C, H]``. Row i never moves to another index.

    ``groups``: the group of each row (default: all in group 0). ``other``: the row of the label O.
    The rows are multiplied in the ``blocks`` in which they were added: the last bits of a product depend on
    its shape, and a grown head must give exactly the same scores for the old labels.
    """

    weight: nn.Parameter
    kind: HeadKind
    train_mask: Tensor
    group_of: Tensor

    def __init__(
        self,
        hidden: int,
        labels: int,
        blocks: Sequence[int] | None = None,
        groups: Sequence[int] = (),
        other: int = 0,
    ) -> None:
        super().__init__()
        self.hidden, self.labels = hidden, labels
        self.blocks = tuple(blocks) if blocks else (labels,)
        if sum(self.blocks) != labels or min(self.blocks) < 1:
            raise ValueError(f"blocks {self.blocks} are not {labels} rows")
        self.groups = tuple(groups) if any(groups) else (0,) * labels
        if len(self.groups) != labels or self.groups[other]:
            raise ValueError(f"groups {self.groups} do not fit {labels} rows with O at {other}")
        self.other = other
        self.scale_frozen = False  # whether to freeze what multiplies the scores of all rows, too
        self.weight = nn.Parameter(torch.empty(labels, hidden).normal_(std=0.02))
        self.register_buffer("group_of", torch.tensor(self.groups), persistent=False)
        # which rows are trained; applied to the gradient, so that no optimiser can change a frozen row
        self.register_buffer("train_mask", torch.ones(labels, dtype=torch.bool), persistent=False)
        _hook(self.weight, lambda gradient: _only(self.train_mask, gradient))

    @property
    def own_groups(self) -> int:
        """How many groups have their own Other class."""
        return max(self.groups, default=0)

    def freeze(self, rows: Collection[int]) -> None:
        """Freeze exactly these rows; all others are trained. A group's own Other is trained if all its labels
        are.
        """
        self.scale_frozen = False
        mask = torch.ones(self.labels, dtype=torch.bool, device=self.weight.device)
        mask[list(rows)] = False
        self.train_mask = mask

    def free_groups(self) -> Tensor:
        """[1 + own groups] bool: groups of which no row is frozen."""
        frozen = torch.zeros(1 + self.own_groups, dtype=torch.bool, device=self.weight.device)
        frozen[self.group_of[~self.train_mask]] = True
        return ~frozen

    def forward(self, features: Tensor) -> Tensor:
        """[W, H] -> [W, C] columns."""
        scores = self.scores(features)
        if not self.own_groups:
            return scores
        others = self.other_scores(features)  # [W, 1 + own groups], 0 for group 0
        odds = scores[..., self.other, None] + (scores - others[..., self.group_of])
        return torch.where(self.group_of > 0, odds, scores)

    def scores(self, features: Tensor) -> Tensor:
        """[W, C] z_c, before it is compared with its group's own Other."""
        raise NotImplementedError

    def other_scores(self, features: Tensor) -> Tensor:
        """[W, 1 + own groups] z of each group's own Other; 0 for group 0."""
        raise NotImplementedError

    def grown(self, rows: Tensor, groups: Sequence[int] = (), others: Tensor | None = None) -> Head:
        """A new head with ``rows [N, H]`` appended below the old ones, which stay bit-identical.

        ``groups``: the groups of the new rows (default: 0). ``others [G, H]``: a row for the Other of each
        new group.
        """
        raise NotImplementedError

    def adopted(self, source: Head, rows: Sequence[int], groups: Sequence[int]) -> Head:
        """A new head with labels of ``source`` appended, whose log-odds are those of ``source``, up to
        rounding. ``groups``: their groups in this head; a new group also gets its Other from ``source``.
        """
        raise NotImplementedError

    def imprint_rows(self, means: Tensor) -> Tensor:
        """Scale mean normalised features ``[N, H]`` to the mean norm of the existing rows."""
        norms = self.weight.detach().norm(dim=1)
        norms = norms[norms > 0]  # O's row is zero where every type has its own Other
        norm = float(norms.mean()) if len(norms) else 0.02 * self.hidden**0.5
        return F.normalize(means, dim=1) * norm

    def _more(self, rows: Tensor, groups: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """(blocks, groups) of the grown head."""
        added = tuple(groups) or (0,) * len(rows)
        blocks = (*self.blocks, len(rows)) if len(rows) else self.blocks
        return blocks, (*self.groups, *added)


class CosineHead(Head):
    """``z = sigma_g * cos(h, w)``: the paper's head. No bias; each group's sigma is learned."""

    kind: HeadKind = "cosine"

    def __init__(
        self,
        hidden: int,
        labels: int,
        sigma: float = START_SIGMA,
        blocks: Sequence[int] | None = None,
        groups: Sequence[int] = (),
        other: int = 0,
    ) -> None:
        super().__init__(hidden, labels, blocks, groups, other)
        self.start_sigma = float(sigma)
        self.sigma = nn.Parameter(torch.tensor(float(sigma)))
        if self.own_groups:
            self.others = nn.Parameter(torch.empty(self.own_groups, hidden).normal_(std=0.02))
            self.sigmas = nn.Parameter(torch.full((self.own_groups,), float(sigma)))
            for own in (self.others, self.sigmas):
                _hook(own, lambda gradient: _only(self.free_groups()[1:], gradient))
        _hook(self.sigma, self._gradient_of_sigma)

    def _gradient_of_sigma(self, gradient: Tensor) -> Tensor:
        """With own Others sigma is group 0's alone; otherwise all rows share it, and it is trained."""
        if self.scale_frozen:
            return torch.zeros_like(gradient)
        return gradient * self.free_groups()[0] if self.own_groups else gradient

    def cosines(self, features: Tensor) -> Tensor:
        """[W, H] -> [W, C], normalised over the hidden axis."""
        unit, rows = F.normalize(features, dim=-1), F.normalize(self.weight, dim=1)
        return torch.cat([unit @ block.T for block in torch.split(rows, list(self.blocks))], dim=-1)

    def scores(self, features: Tensor) -> Tensor:
        if not self.own_groups:
            return self.sigma * self.cosines(features)
        return torch.cat([self.sigma[None], self.sigmas])[self.group_of] * self.cosines(features)

    def other_scores(self, features: Tensor) -> Tensor:
        unit, rows = F.normalize(features, dim=-1), F.normalize(self.others, dim=1)
        # in blocks, like the rows of labels: scores of older groups must not depend on later ones
        cosines = torch.cat([unit @ block.T for block in torch.split(rows, self._other_blocks())], dim=-1)
        return F.pad(self.sigmas * cosines, (1, 0))

    def _other_blocks(self) -> list[int]:
        """How many groups were added in each block of rows, without blocks that added none."""
        known, sizes, end = 0, [], 0
        for size in self.blocks:
            end += size
            last = max(self.groups[:end])
            sizes.append(last - known)
            known = last
        return [size for size in sizes if size]

    def grown(self, rows: Tensor, groups: Sequence[int] = (), others: Tensor | None = None) -> CosineHead:
        blocks, all_groups = self._more(rows, groups)
        if not any(all_groups):
            blocks = (self.labels + len(rows),)  # as in the paper: one product for all rows
        labels = self.labels + len(rows)
        head = CosineHead(self.hidden, labels, self.start_sigma, blocks, all_groups, self.other)
        with torch.no_grad():
            head.weight.copy_(torch.cat([self.weight, rows.to(self.weight)]))
            head.sigma.copy_(self.sigma)
            if self.own_groups:
                head.others[: self.own_groups] = self.others
                head.sigmas[: self.own_groups] = self.sigmas
            if others is not None and len(others):
                head.others[self.own_groups :] = others.to(self.weight)
        return head.to(self.weight.device)

    def adopted(self, source: Head, rows: Sequence[int], groups: Sequence[int]) -> CosineHead:
        if not isinstance(source, CosineHead):
            raise TypeError(f"a cosine head cannot take rows of a {type(source).__name__}")
        others = torch.cat(
            [source.weight[source.other, None], *([source.others] if source.own_groups else [])]
        )
        sigmas = torch.cat([source.sigma[None], *([source.sigmas] if source.own_groups else [])])
        # for each new group here: the group in source
        its = {here: source.groups[row] for row, here in zip(rows, groups, strict=True)}
        new = [its[here] for here in sorted(its) if here > self.own_groups]
        with torch.no_grad():
            head = self.grown(source.weight[list(rows)], groups, others[new])
            if new:
                head.sigmas[self.own_groups :] = sigmas[new]
        return head


class LinearHead(Head):
    """``z = h W^T + b``: used when a checkpoint has one. The z of a group's own Other is 0: only differences
    to it count, so it needs no row.
    """

    kind: HeadKind = "linear"

    def __init__(
        self,
        hidden: int,
        labels: int,
        blocks: Sequence[int] | None = None,
        groups: Sequence[int] = (),
        other: int = 0,
    ) -> None:
        super().__init__(hidden, labels, blocks, groups, other)
        self.bias = nn.Parameter(torch.zeros(labels))
        _hook(self.bias, lambda gradient: _only(self.train_mask, gradient))

    def scores(self, features: Tensor) -> Tensor:
        sizes = list(self.blocks)
        rows, biases = torch.split(self.weight, sizes), torch.split(self.bias, sizes)
        return torch.cat([F.linear(features, w, b) for w, b in zip(rows, biases, strict=True)], dim=-1)

    def other_scores(self, features: Tensor) -> Tensor:
        return features.new_zeros(*features.shape[:-1], 1 + self.own_groups)

    def grown(self, rows: Tensor, groups: Sequence[int] = (), others: Tensor | None = None) -> LinearHead:
        blocks, all_groups = self._more(rows, groups)
        head = LinearHead(self.hidden, self.labels + len(rows), blocks, all_groups, self.other)
        if others is not None and len(others):  # w_c - w_{O_g}: the Other itself has no row
            own = torch.tensor(all_groups[self.labels :], device=rows.device) - 1 - self.own_groups
            rows = torch.where((own >= 0)[:, None], rows - others.to(rows)[own.clamp_min(0)], rows)
        # a new label of group 0 starts no more likely a priori than the average old one
        shared = torch.tensor(all_groups[self.labels :], device=self.bias.device) == 0
        with torch.no_grad():
            head.weight.copy_(torch.cat([self.weight, rows.to(self.weight)]))
            head.bias.copy_(torch.cat([self.bias, self.bias.mean() * shared]))
        return head.to(self.weight.device)

    def adopted(self, source: Head, rows: Sequence[int], groups: Sequence[int]) -> LinearHead:
        if not isinstance(source, LinearHead):
            raise TypeError(f"a linear head cannot take rows of a {type(source).__name__}")
        chosen = list(rows)
        shared = (source.group_of[chosen] == 0).to(source.weight)
        with torch.no_grad():
            head = self.grown(source.weight[chosen] - shared[:, None] * source.weight[source.other], groups)
            head.bias[self.labels :] = source.bias[chosen] - shared * source.bias[source.other]
        return head


def _only(mask: Tensor, gradient: Tensor) -> Tensor:
    """The gradient where ``mask [n]`` is true, 0 elsewhere."""
    return torch.where(mask.view(-1, *[1] * (gradient.dim() - 1)), gradient, gradient.new_zeros(()))


def _hook(parameter: nn.Parameter, hook: Callable[[Tensor], Tensor]) -> None:
    register: Callable[..., object] = parameter.register_hook
    register(hook)


def empty_head(kind: HeadKind, hidden: int, sigma: float = START_SIGMA) -> Head:
    """The head of a model without types in which each type will have its own Other: O alone, always 0."""
    head = make_head(kind, hidden, 1, sigma)
    with torch.no_grad():
        head.weight.zero_()
    return head


def make_head(
    kind: HeadKind,
    hidden: int,
    labels: int,
    sigma: float = START_SIGMA,
    blocks: Sequence[int] | None = None,
    groups: Sequence[int] = (),
    other: int = 0,
) -> Head:
    if kind == "cosine":
        return CosineHead(hidden, labels, sigma, blocks, groups, other)
    return LinearHead(hidden, labels, blocks, groups, other)
