"""Encoder and head as one module: a batch of windows in, one row per word out."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from cfner.batches.loader import TokenBatch
from cfner.network.frozen_layers import CachedLowerLayers
from cfner.network.head import Head, LinearHead


class TaggerOutput(NamedTuple):
    """One row per word of the batch, padding and special tokens are already gone."""

    features: Tensor  # [W, H] what the head reads
    logits: Tensor  # [W, C]
    layers: tuple[Tensor, ...]  # per layer [W, H], embeddings first; empty unless asked for


class Network(nn.Module):
    """``body`` is a Hugging Face token classifier whose final linear layer is an identity.

    So features are exactly what that architecture feeds to its classifier (for ModernBERT, for example,
    the output of its prediction head, not the bare last hidden state).
    """

    def __init__(self, body: nn.Module, head: Head) -> None:
        super().__init__()
        self.body = body
        self.head = head

    def forward(
        self, batch: TokenBatch, with_layers: bool = False, lower: CachedLowerLayers | None = None
    ) -> TaggerOutput:
        """``lower``: what the encoder's frozen lowest layers give for the batch's text, if it is kept."""
        out: Any
        if lower is not None:
            out = lower.parts.upper(lower.of(batch), batch.input_ids, batch.attention_mask)
        else:
            out = self.body(
                input_ids=batch.input_ids,
                attention_mask=batch.attention_mask,
                output_hidden_states=with_layers,
            )
        features = out.logits[batch.rows, batch.positions]  # [B, T, H] -> [W, H]
        layers = (
            tuple(layer[batch.rows, batch.positions] for layer in out.hidden_states) if with_layers else ()
        )
        # the head is small and its scores decide: full precision, whatever the encoder computes in
        with torch.autocast(features.device.type, enabled=False):
            if isinstance(self.head, LinearHead):
                # over all positions, as a stock token classifier does: the same product, to the last bit
                logits = self.head(out.logits.float())[batch.rows, batch.positions]
            else:
                logits = self.head(features.float())
        return TaggerOutput(features.float(), logits, layers)

    @property
    def device(self) -> torch.device:
        return self.head.weight.device

    def frozen_copy(self) -> Network:
        """The teacher: same weights, no gradients, no dropout."""
        teacher = Network(copy.deepcopy(self.body), copy_head(self.head))
        teacher.requires_grad_(False)
        teacher.eval()
        return teacher

    def grow(self, rows: Tensor, frozen: Sequence[int]) -> None:
        """Append label rows to the head and freeze the given ones."""
        self.head = self.head.grown(rows)
        self.head.freeze(frozen)

    def train_embeddings(self, wanted: bool) -> None:
        """Whether the encoder's subword embedding table is trained."""
        body: Any = self.body
        for parameter in body.get_input_embeddings().parameters():
            parameter.requires_grad_(wanted)


def copy_head(head: Head) -> Head:
    """A deep copy whose gradient mask is its own (a copied hook would still point at the old head)."""
    return head.grown(head.weight.new_empty(0, head.hidden))
