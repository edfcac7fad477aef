from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor

from cfner.methods import (
    DISTILS,
    IGNORE,
    AttentionMaps,
    ClassifyAll,
    Distil,
    Method,
    MethodParameters,
    Objective,
    Probe,
    Role,
    StepContext,
    Targets,
    Term,
    TermInputs,
    WordScores,
    adaptive_weight,
    read_by_both,
    register,
    with_pseudo_labels,
)


class CPFDParameters(MethodParameters):
    lambda_base: float = Field(2.0, ge=0, description="weight of keeping old types, before sqrt(C_O / C_N)")
    tau: float = Field(0.001, ge=0, description="smallest threshold of the normalised entropy")


@dataclass(frozen=True)
class KeepAttention(Term):
    """Attention maps stay close to the teacher's: pooled over heads, over queries and over keys."""

    role: ClassVar[Role] = "keep_old"
    probes: ClassVar[tuple[Probe, ...]] = (AttentionMaps(),)
    formula: ClassVar[str] = (
        r"\frac1L \sum_l \sum_{d \in \{heads, queries, keys\}}"
        r" \text{MSE}(\text{pool}_d A_l, \text{pool}_d A^{teacher}_l)"
    )
    name: str = "attention"

    def __call__(self, inputs: TermInputs) -> Tensor:
        (*student, real), (*teacher, _) = read_by_both(inputs, AttentionMaps())
        distances = [pooled_distance(ours, old, real) for ours, old in zip(student, teacher, strict=True)]
        return torch.stack(distances).mean()


def pooled_distance(student: Tensor, teacher: Tensor, real: Tensor) -> Tensor:
    """[B, heads, T, T] each, 0 at padding; ``real [B, T]``: 1 where there is a subword. Means leave padding
    out, so the other windows of a batch change nothing.
    """
    length = real.sum(1)  # [B]
    heads = student.shape[1]
    gap = student - teacher
    over_heads = gap.mean(1).pow(2).sum((1, 2)) / length.pow(2)
    over_queries = (gap.sum(2) / length[:, None, None]).pow(2).sum((1, 2)) / (heads * length)
    over_keys = (gap.sum(3) / length[:, None, None]).pow(2).sum((1, 2)) / (heads * length)
    return (over_heads + over_queries + over_keys).mean()


@register
class CPFD(Method):
    """Pseudo-labels only where the teacher is confident, and attention maps kept close to the teacher's.

    The normalised entropy of the teacher's distribution $q$ over O and the old labels, $n$ in number, is
    $u = -\\sum_c q_c \\log q_c / \\log n$. An O word gets the teacher's label if its $u$ is below the median
    of the O words with that label (at least `tau`). The cross-entropy of a sentence's words is weighted by
    the share of its O words that got a label, and that of words which became old entities also by
    $0.5 + \\text{sigmoid}(C_O / C_N)$. Training needs eager attention, which is slower.
    """

    name: ClassVar[str] = "cpfd"
    title: ClassVar[str] = "CPFD"
    paper: ClassVar[str] = (
        "Zhang et al. 2023, Continual Named Entity Recognition without Catastrophic Forgetting (EMNLP)"
    )
    good_for: ClassVar[str] = "Measuring what attention maps and filtered pseudo-labels contribute."
    promise: ClassVar[str] = DISTILS
    Parameters = CPFDParameters
    knob: ClassVar[str | None] = "lambda_base"

    def targets(self, ctx: StepContext, teachers: Mapping[str, WordScores]) -> Targets:
        """Words labelled O take the teacher's label where its normalised entropy is below the median of all
        O words to which it gives that label. The others are ignored in the cross-entropy.
        """
        old, gold = teachers["old"].logits.cpu(), ctx.data.gold.cpu()
        other = gold == ctx.roles.other
        sure = confident(old, other, self.parameters.tau)
        pseudo = ctx.roles.kept.cpu()[old.argmax(1)]
        labels = with_pseudo_labels(ctx, torch.where(sure, pseudo, IGNORE))
        weights = sentence_shares(sure, other, torch.from_numpy(ctx.data.text.sentence_bounds))
        old_entity = other & sure & (pseudo != ctx.roles.other)
        balance = 0.5 + 1 / (1 + math.exp(-ctx.old_types / ctx.new_types))
        return Targets(labels, torch.where(old_entity, weights * balance, weights))

    def objective(self, ctx: StepContext) -> Objective:
        weight = adaptive_weight(self.parameters.lambda_base, ctx.old_types, ctx.new_types)
        return Objective((ClassifyAll(), Distil(weight=weight), KeepAttention(weight=weight)))


def confident(logits: Tensor, other: Tensor, tau: float) -> Tensor:
    """[n] bool: O words below their predicted class's median of the normalised entropy. logits [n, C]."""
    log_q = logits.log_softmax(1)
    entropy = -(log_q.exp() * log_q).sum(1) / math.log(max(logits.shape[1], 2))
    predicted, sure = logits.argmax(1), torch.zeros_like(other)
    for label in set(predicted[other].tolist()):
        words = other & (predicted == label)
        threshold = max(float(entropy[words].median()), tau)
        sure |= words & (entropy < threshold)
    return sure


def sentence_shares(sure: Tensor, other: Tensor, bounds: Tensor) -> Tensor:
    """[n] for every word the share of confident words among its sentence's O words; 1 without O words."""
    lengths = bounds.diff()
    sentence = torch.arange(len(lengths)).repeat_interleave(lengths)
    others = torch.zeros(len(lengths)).index_add(0, sentence, other.float())
    shares = torch.zeros(len(lengths)).index_add(0, sentence, (sure & other).float()) / others.clamp_min(1)
    return torch.where(others > 0, shares, 1.0)[sentence]
