"""Encoder and head as one module: a batch of windows in, one row per word out."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from cfner.batches.loader import TokenBatch
from cfner.network.frozen_layers import CachedLowerLayers
from cfner.network.head import Head, LinearHead
from cfner.network.probes import Probe, Reading


class TaggerOutput(NamedTuple):
    """One row per word of the batch, padding and special tokens are already gone."""

    features: Tensor  # [W, H] what the head reads
    logits: Tensor  # [W, C]
    readings: Mapping[str, Reading] = {}  # by probe


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
        self, batch: TokenBatch, probes: Sequence[Probe] = (), lower: CachedLowerLayers | None = None
    ) -> TaggerOutput:
        """``lower``: what the encoder's frozen lowest layers give for the batch's text, if it is kept."""
        out: Any
        if lower is not None:
            out = lower.parts.upper(lower.of(batch), batch.input_ids, batch.attention_mask)
        else:
            wanted = {"output_hidden_states": any(probe.hidden_states for probe in probes)}
            if any(probe.attentions for probe in probes):
                wanted["output_attentions"] = True
            out = self.body(input_ids=batch.input_ids, attention_mask=batch.attention_mask, **wanted)
        features = out.logits[batch.rows, batch.positions]  # [B, T, H] -> [W, H]
        # the head is small and its scores decide: full precision, whatever the encoder computes in
        with torch.autocast(features.device.type, enabled=False):
            features = features.float()
            if isinstance(self.head, LinearHead):
                # over all positions, as a stock token classifier does: the same product, to the last bit
                logits = self.head(out.logits.float())[batch.rows, batch.positions]
            else:
                logits = self.head(features)
            readings = {probe.name: probe.read(features, out, batch) for probe in probes}
        return TaggerOutput(features, logits, readings)

    @contextmanager
    def ready_for(self, probes: Sequence[Probe]) -> Iterator[None]:
        """Attention maps exist only where attention is computed step by step ("eager"), which is slower:
        the encoder computes so for as long as a probe reads them.
        """
        body: Any = self.body
        usual = body.config._attn_implementation
        if not any(probe.attentions for probe in probes) or usual == "eager":
            yield
            return
        body.set_attn_implementation("eager")
        try:
            yield
        finally:
            body.set_attn_implementation(usual)

    @property
    def device(self) -> torch.device:
        return self.head.weight.device

    def frozen_copy(self) -> Network:
        """The teacher: same weights, no gradients, no dropout."""
        teacher = Network(copy.deepcopy(self.body), copy_head(self.head))
        teacher.requires_grad_(False)
        teacher.eval()
        return teacher

    def grow(self, rows: Tensor, groups: Sequence[int] = (), others: Tensor | None = None) -> None:
        """Append label rows to the head, with the Others of groups that are new; nothing is frozen."""
        self.head = self.head.grown(rows, groups, others)

    def train_embeddings(self, wanted: bool) -> None:
        """Whether the encoder's subword embedding table is trained."""
        body: Any = self.body
        for parameter in body.get_input_embeddings().parameters():
            parameter.requires_grad_(wanted)


def copy_head(head: Head) -> Head:
    """A deep copy whose gradient mask is its own (a copied hook would still point at the old head)."""
    return head.grown(head.weight.new_empty(0, head.hidden))
