"""Losses as pure functions on tensors. No model, no label names, no configuration.

Shapes: n tokens, C labels, H hidden units. Every function returns a scalar mean over its tokens. Without
tokens it is an exact 0 through which backward still runs.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def mean_or_zero(values: Tensor) -> Tensor:
    """[n] -> []: the mean, or an exact 0 (connected to the graph) for an empty tensor."""
    return values.sum() / max(values.numel(), 1)


def cross_entropy(log_probs: Tensor, gold: Tensor, weights: Tensor | None = None) -> Tensor:
    """``-w log p[gold]``. log_probs [n, C], gold [n], weights [n] (default: 1)."""
    per_token = -log_probs.gather(1, gold[:, None])[:, 0]
    return mean_or_zero(per_token if weights is None else weights * per_token)


def distillation(student_log_probs: Tensor, teacher_probs: Tensor) -> Tensor:
    """``sum_c q_c (log q_c - log s_c)`` over the labels the teacher knows. Both [n, C_kept].

    s is not renormalised over the kept labels, so probability that moves to a new type is penalised.
    """
    per_token = (torch.xlogy(teacher_probs, teacher_probs) - teacher_probs * student_log_probs).sum(1)
    return mean_or_zero(per_token)


def feature_distance(student: Tensor, teacher: Tensor) -> Tensor:
    """``1 - cos(f_student, f_teacher)``. Both [n, H]. LUCIR's less-forget term, PODNet's POD-flat."""
    return mean_or_zero(1 - F.cosine_similarity(student, teacher, dim=1))


def margin_ranking(cos_other: Tensor, cos_new: Tensor, margin: float) -> Tensor:
    """``max(0, margin - cos(h, w_O) + cos(h, w_j))``, j the closest new label. [n], [n, C_N]."""
    if cos_new.shape[1] == 0:
        return mean_or_zero(cos_new.sum(1) * 0.0)
    return mean_or_zero(F.relu(margin - cos_other + cos_new.max(dim=1).values))


def nca(cosines: Tensor, gold: Tensor, sigma: Tensor, margin: float) -> Tensor:
    """PODNet's classification loss: a softmax with a margin on the gold label, clipped at 0.

    ``max(0, -log( exp(sigma (s_y - margin)) / sum_{j != y} exp(sigma s_j) ))``. cosines [n, C], gold [n].
    """
    if cosines.shape[1] < 2 or not len(gold):
        return mean_or_zero(cosines.sum(1) * 0.0)
    is_gold = F.one_hot(gold, cosines.shape[1]).bool()
    others = (sigma * cosines).masked_fill(is_gold, float("-inf")).logsumexp(1)
    own = sigma * (cosines.gather(1, gold[:, None])[:, 0] - margin)
    return mean_or_zero(F.relu(others - own))


def pod_spatial(student: tuple[Tensor, Tensor], teacher: tuple[Tensor, Tensor], rows: Tensor) -> Tensor:
    """Euclidean distance of the L2-normalised layer sums, mean over sequences and layers.

    Both sums of a layer count: over the hidden axis, ``[W, L]`` (one vector per sequence over its words,
    which are those with the same value in ``rows [W]``), and over the word axis, ``[B, L, H]`` (one over
    units).
    """
    (s_words, s_units), (t_words, t_units) = student, teacher
    of_words = _segment_distance(s_words, t_words, rows, len(s_units))  # [B, L]
    of_units = (_unit(s_units, 2) - _unit(t_units, 2)).pow(2).sum(2).clamp_min(_TINY).sqrt()  # [B, L]
    return mean_or_zero(of_words.flatten()) + mean_or_zero(of_units.flatten())


_TINY = 1e-24  # keeps the square root differentiable where student and teacher agree exactly


def _unit(vectors: Tensor, dim: int) -> Tensor:
    return F.normalize(vectors, dim=dim)


def _segment_distance(student: Tensor, teacher: Tensor, rows: Tensor, sequences: int) -> Tensor:
    """[W, L] each, words of one sequence form one vector: distance of the normalised vectors, [B, L]."""

    def unit(values: Tensor) -> Tensor:
        squared = values.new_zeros(sequences, values.shape[1]).index_add(0, rows, values.pow(2))
        return values / squared.clamp_min(_TINY).sqrt()[rows]

    gap = (unit(student) - unit(teacher)).pow(2)
    squared = student.new_zeros(sequences, student.shape[1]).index_add(0, rows, gap)
    return squared.clamp_min(_TINY).sqrt()
