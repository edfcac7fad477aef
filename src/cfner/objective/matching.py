"""Matched tokens: the K nearest tokens of the same pool in the teacher's feature space, by TokenRef.

Exact over the complete pool, in bounded memory: similarities are computed block by block and only the best
K so far are kept. The table has rows for the pool's tokens only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor

from cfner.errors import ConfigError

_QUERIES_AT_A_TIME = 4096
_KEYS_AT_A_TIME = (
    2048  # 4096 x 2048 similarities are 32 MiB; other shapes were slower, see docs/performance.md
)


def default_weights(k: int) -> tuple[float, ...]:
    """(W_i, W_i1, ..., W_iK): half for the anchor, the other half shared by its matches."""
    return (0.5, *[0.5 / k] * k) if k else (1.0,)


def check_weights(weights: Sequence[float], k: int) -> tuple[float, ...]:
    """The paper's constraint: non-increasing and summing to 1."""
    ordered = all(a >= b >= 0 for a, b in pairwise(weights))
    if len(weights) != k + 1 or not ordered or not math.isclose(sum(weights), 1.0, abs_tol=1e-6):
        raise ConfigError(
            f"Matched weights must be {k + 1} non-increasing numbers that sum to 1, got {tuple(weights)}.",
            remedy=f"For k={k}, the default is {default_weights(k)}.",
        )
    return tuple(weights)


def nearest_neighbours(features: Tensor, k: int, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The k' = min(k, n - 1) most similar other rows of ``features [n, H]``, by cosine.

    For all rows, or for ``rows [q]``. Returns (indices [q, k'], cosines [q, k']), nearest first.
    """
    n = len(features)
    asked = torch.arange(n) if rows is None else rows
    k = max(min(k, n - 1), 0)
    if k == 0:
        return torch.empty(len(asked), 0, dtype=torch.long), torch.empty(len(asked), 0)
    indices, cosines = [], []
    for at in range(0, len(asked), _QUERIES_AT_A_TIME):
        found = _nearest_of_block(features, asked[at : at + _QUERIES_AT_A_TIME], k)
        indices.append(found[0])
        cosines.append(found[1])
    return torch.cat(indices), torch.cat(cosines)


def _nearest_of_block(features: Tensor, rows: Tensor, k: int) -> tuple[Tensor, Tensor]:
    # normalised block by block: a normalised copy of a large pool would double its memory
    queries = F.normalize(features[rows], dim=1)
    best = queries.new_full((len(rows), k), float("-inf"))
    where = torch.zeros(len(rows), k, dtype=torch.long, device=queries.device)
    for start in range(0, len(features), _KEYS_AT_A_TIME):
        similarity = queries @ F.normalize(features[start : start + _KEYS_AT_A_TIME], dim=1).T
        _hide_self(similarity, rows, start)
        # a maximum costs a tenth of a top-k, and later blocks improve fewer and fewer rows
        better = (similarity.amax(1) > best[:, -1]).nonzero()[:, 0]
        if not len(better):
            continue
        block, block_index = similarity[better].topk(min(k, similarity.shape[1]), dim=1)
        block, block_index = (
            torch.cat([best[better], block], 1),
            torch.cat([where[better], block_index + start], 1),
        )
        best[better], keep = block.topk(k, dim=1)
        where[better] = block_index.gather(1, keep)
    return where, best


def _hide_self(similarity: Tensor, rows: Tensor, first_key: int) -> None:
    """A token is not its own neighbour: put -inf where query and key are the same row."""
    column = rows - first_key
    inside = (column >= 0) & (column < similarity.shape[1])
    similarity[inside.nonzero()[:, 0], column[inside]] = float("-inf")


@dataclass(frozen=True)
class MatchTable:
    """Which tokens are matched. R rows, one per pool token."""

    row_of_ref: Tensor  # [N] row of a TokenRef, -1 outside every pool
    refs: Tensor  # [R] TokenRef of a row
    neighbours: Tensor  # [R, K] rows, -1 where a pool had fewer tokens
    cosines: Tensor  # [R, K]
    anchor_weights: Tensor  # [R]
    match_weights: Tensor  # [R, K], 0 where there is no neighbour

    @property
    def k(self) -> int:
        return self.neighbours.shape[1]

    def on(self, device: torch.device) -> MatchTable:
        return MatchTable(*(getattr(self, column.name).to(device) for column in fields(self)))


def build_match_table(
    features: Tensor, pools: Sequence[Tensor], k: int, weights: Sequence[float] | None = None
) -> MatchTable:
    """Match every pool with itself. ``features [N, H]`` by TokenRef; a pool is a [n] tensor of refs."""
    chosen = torch.tensor(check_weights(weights, k) if weights is not None else default_weights(k))
    refs = torch.cat([*pools, torch.empty(0, dtype=torch.long)])
    neighbours = torch.full((len(refs), k), -1, dtype=torch.long)
    cosines = torch.zeros(len(refs), k)
    first = 0
    for pool in pools:
        index, cosine = nearest_neighbours(features[pool], k)
        neighbours[first : first + len(pool), : index.shape[1]] = index + first
        cosines[first : first + len(pool), : index.shape[1]] = cosine
        first += len(pool)
    row_of_ref = torch.full((len(features),), -1, dtype=torch.long)
    row_of_ref[refs] = torch.arange(len(refs))
    anchor_weights, match_weights = _weights_present(neighbours >= 0, chosen)
    return MatchTable(row_of_ref, refs, neighbours, cosines, anchor_weights, match_weights)


def _weights_present(present: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """(W_i [R], W_ik [R, K]) where only some of K matches exist: ``present [R, K]``, weights [K + 1].

    The anchor keeps its weight and the matches share the rest in proportion. Weights must not increase, so
    where the nearest match would outweigh the anchor (1/4 each, but one match) both get the same weight.
    """
    wanted = present * weights[1:]
    total = wanted.sum(1, keepdim=True)
    shares = wanted / total.clamp_min(1e-30)
    nearest = shares[:, :1].sum(1)
    anchor = torch.where(total[:, 0] > 0, torch.maximum(weights[0], nearest / (1 + nearest)), 1.0)
    return anchor, shares * (1 - anchor)[:, None]


class ScoreBank:
    """The student's latest scores of every pool token, cached for matched predictions.

    Filled when the step starts and updated with every batch, so no sentence is encoded only for its matches.
    Scores are stored as logits, so any temperature can be applied when they are read.
    """

    def __init__(self, table: MatchTable, logits: Tensor) -> None:
        """``logits [R, C]``: the student's scores of the table's rows at the start of the step."""
        self.table = table
        self.logits = logits.detach().clone()
        self.seen = torch.zeros(
            len(logits), dtype=torch.bool, device=logits.device
        )  # since the last exchange

    def on(self, device: torch.device) -> ScoreBank:
        return ScoreBank(self.table.on(device), self.logits.to(device))

    def update(self, refs: Tensor, logits: Tensor) -> None:
        """Store the scores ``logits [W, C]`` of the tokens ``refs [W]``; tokens outside all pools are
        ignored.
        """
        rows = self.table.row_of_ref[refs]
        known = rows >= 0
        self.logits[rows[known]] = logits.detach()[known].to(self.logits)
        self.seen[rows[known]] = True

    def exchange(self, total: Callable[[Tensor], Tensor]) -> None:
        """With several processes, each sees a part of the batches: share the scores between all of them.

        ``total`` sums a tensor over all processes. Called once per epoch.
        """
        times = total(self.seen.to(self.logits))
        summed = total(self.logits * self.seen[:, None])
        fresh = times > 0
        self.logits[fresh] = summed[fresh] / times[fresh, None]
        self.seen.zero_()

    def mixture(self, refs: Tensor, temperature: float, among: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """For anchors ``refs [n]``: (W_i [n], sum_k W_ik p_ik [n, C]); softmax before averaging.

        ``among``: the labels that the softmax is over; all others have a probability of 0. Default: all.
        """
        anchor, weights, matched = self._matched(refs)
        if among is not None:
            others = torch.ones(matched.shape[-1], dtype=torch.bool, device=matched.device)
            others[among] = False
            matched = matched.masked_fill(others, float("-inf"))
        return anchor, (weights[:, :, None] * (matched / temperature).softmax(-1)).sum(1)

    def group_mixture(self, refs: Tensor, members: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
        """The same within one group per anchor, whose columns are ``members [n, M]`` where ``real``."""
        anchor, weights, matched = self._matched(refs)
        own = matched.gather(2, members[:, None].expand(-1, matched.shape[1], -1))  # [n, K, M]
        probabilities = own.masked_fill(~real[:, None], float("-inf")).softmax(-1)
        return anchor, (weights[:, :, None] * probabilities).sum(1)

    def _matched(self, refs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(W_i [n], W_ik [n, K], logits of the matches [n, K, C])."""
        rows = self.table.row_of_ref[refs]
        pooled = rows >= 0
        safe = rows.clamp_min(0)
        if len(self.table.refs) == 0 or self.table.k == 0:
            none = self.logits.new_zeros(len(refs), 0)
            return (
                self.logits.new_ones(len(refs)),
                none,
                none[:, :, None].expand(-1, -1, self.logits.shape[1]),
            )
        weights = self.table.match_weights[safe] * pooled[:, None]  # [n, K]
        matched = self.logits[self.table.neighbours[safe].clamp_min(0)]  # [n, K, C]
        anchor = torch.where(pooled, self.table.anchor_weights[safe], 1.0)
        return anchor, weights, matched
