"""What can be read from an encoder during a forward pass, for student and teacher alike.

A method reads internal values with a probe: features, sums of hidden states, attention maps. Small readings
of the teacher are computed once per step and cached by word or by window; large ones are computed for each
batch.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from cfner.batches.loader import TokenBatch

Axis = Literal["word", "window"]
Reading = tuple[Tensor, ...]


class Probe:
    """Reads internal values. ``read`` returns tensors whose first dimensions are those of ``axes``."""

    name: ClassVar[str]
    axes: ClassVar[tuple[Axis, ...]] = ()
    cached: ClassVar[bool] = True  # whether the teacher's readings are small enough to cache for a step
    hidden_states: ClassVar[bool] = False  # whether the encoder must return every layer's output
    attentions: ClassVar[bool] = False  # whether it must return its attention maps (eager attention)

    def read(self, features: Tensor, out: Any, batch: TokenBatch) -> Reading:
        """``features [W, H]`` is the head's input, ``out`` the encoder's own output, for one batch."""
        raise NotImplementedError


class Features(Probe):
    """[W, H] the head's input for every word."""

    name: ClassVar[str] = "features"
    axes: ClassVar[tuple[Axis, ...]] = ("word",)

    def read(self, features: Tensor, out: Any, batch: TokenBatch) -> Reading:
        return (features,)


class LayerSums(Probe):
    """Sums of every layer's hidden states: [W, L] over the units, [B, L, H] over each window's words."""

    name: ClassVar[str] = "layer_sums"
    axes: ClassVar[tuple[Axis, ...]] = ("word", "window")
    hidden_states: ClassVar[bool] = True

    def read(self, features: Tensor, out: Any, batch: TokenBatch) -> Reading:
        layers = torch.stack([layer[batch.rows, batch.positions] for layer in out.hidden_states], 1).float()
        over_words = layers.new_zeros(len(batch.windows), *layers.shape[1:]).index_add(0, batch.rows, layers)
        return layers.sum(2), over_words  # [W, L], [B, L, H]


class AttentionMaps(Probe):
    """Per layer [B, heads, T, T], padding set to 0; then [B, T] where there are subwords. Never cached."""

    name: ClassVar[str] = "attention_maps"
    cached: ClassVar[bool] = False
    attentions: ClassVar[bool] = True

    def read(self, features: Tensor, out: Any, batch: TokenBatch) -> Reading:
        real = batch.attention_mask.to(features.dtype)
        pairs = (real[:, :, None] * real[:, None, :])[:, None]  # [B, 1, T, T]
        return (*(maps.float() * pairs for maps in out.attentions), real)
