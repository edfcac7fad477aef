"""Encoder and head as one module: a batch of windows in, one row per word out."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from cfner.batches.loader import TokenBatch
from cfner.network.frozen_layers import CachedLowerLayers, Frozen, SplitEncoder
from cfner.network.head import Head, LinearHead
from cfner.network.probes import Probe, Reading


class TaggerOutput(NamedTuple):
    """One row per word of the batch; padding and special tokens are removed."""

    features: Tensor  # [W, H] what the head reads
    logits: Tensor  # [W, C]
    readings: Mapping[str, Reading] = {}  # by probe


class Network(nn.Module):
    """``body`` is a Hugging Face token classifier whose final linear layer is an identity.

    So features are exactly the input of that architecture's classifier (for ModernBERT, for example, the
    output of its prediction head, not the bare last hidden state).
    """

    batches_at_once = 1  # torch's threads compute each batch together
    ranks: Sequence[int] = ()

    def __init__(self, body: nn.Module, head: Head, parts: Mapping[str, Tensor] | None = None) -> None:
        """``parts``: tensors that a method stores besides encoder and head, by name; saved with the model."""
        super().__init__()
        self.body = body
        self.head = head
        self._parts = nn.Module()
        for name, value in (parts or {}).items():
            self.keep_part(name, value)

    def forward(
        self, batch: TokenBatch, probes: Sequence[Probe] = (), lower: CachedLowerLayers | None = None
    ) -> TaggerOutput:
        """``lower``: the cached output of the encoder's frozen lowest layers, if there is one."""
        out: Any
        if lower is not None and isinstance(lower.parts, SplitEncoder):
            out = lower.parts.upper(lower.of(batch), batch.input_ids, batch.attention_mask)
        else:
            out = self.body(
                input_ids=batch.input_ids, attention_mask=batch.attention_mask, **outputs_for(probes)
            )
        features, logits = words_of(out, self.head, batch)
        with torch.autocast(features.device.type, enabled=False):
            readings = {probe.name: probe.read(features, out, batch) for probe in probes}
        return TaggerOutput(features, logits, readings)

    def columns(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """[B, T] -> [B, T, C]: scores at every position, for runtimes that do not know which are words."""
        out: Any = self.body(input_ids=input_ids, attention_mask=attention_mask)
        return columns_of(out, self.head)

    @contextmanager
    def ready_for(self, probes: Sequence[Probe], *, bf16: bool = False) -> Iterator[None]:
        """Change how the encoder computes attention, for as long as it is needed.

        Attention maps exist only in "eager" attention, which is slower: it is used only while a probe reads
        them. ``bf16``: for training in bf16; on a processor, attention then stays in 32 bits.
        """
        body: Any = self.body
        usual = chosen = body.config._attn_implementation
        if any(probe.attentions for probe in probes):
            chosen = "eager"
        elif bf16 and usual == "sdpa" and self.device.type == "cpu":
            from cfner.network.attention import IN_32_BITS

            chosen = IN_32_BITS
        if chosen == usual:
            yield
            return
        body.set_attn_implementation(chosen)
        try:
            yield
        finally:
            body.set_attn_implementation(usual)

    @property
    def parts(self) -> dict[str, Tensor]:
        """Tensors that methods stored besides encoder and head, by name. Not trained, not used to predict."""
        return dict(self._parts.named_buffers())

    def keep_part(self, name: str, value: Tensor) -> None:
        """Store a tensor for later steps; replaces one with the same name."""
        self._parts.register_buffer(name, value.detach().clone())

    @property
    def device(self) -> torch.device:
        return self.head.weight.device

    @property
    def subwords_per_batch(self) -> int | None:
        """Of prediction. Larger batches do not fit into the caches of a processor: with 8,000 subwords they
        are a fifth slower."""
        return 1024 if self.device.type == "cpu" else None

    def frozen_copy(self) -> Network:
        """The teacher: same weights, no gradients, no dropout."""
        teacher = Network(copy.deepcopy(self.body), copy_head(self.head), self.parts)
        teacher.requires_grad_(False)
        teacher.eval()
        return teacher

    def grow(self, rows: Tensor, groups: Sequence[int] = (), others: Tensor | None = None) -> None:
        """Append label rows to the head, and the Others of new groups; nothing is frozen."""
        self.head = self.head.grown(rows, groups, others)

    @property
    def labels(self) -> int:
        """The number of labels."""
        return self.head.labels

    def known_rows(self, labels: Collection[int]) -> Tensor:
        """[n, H] the head's rows of those of the labels that it has."""
        return self.head.weight.detach()[[label for label in labels if label < self.labels]]

    def imprint_rows(self, means: Tensor) -> Tensor:
        """Scale mean normalised features ``[N, H]`` to the norm of the existing rows."""
        return self.head.imprint_rows(means)

    @property
    def encoders(self) -> tuple[Any, ...]:
        """The Hugging Face modules in it."""
        return (self.body,)

    def new_groups(self, groups: Sequence[int]) -> list[int]:
        """Which of these groups have no Other class yet, ascending."""
        return list(range(self.head.own_groups + 1, max(groups, default=0) + 1))

    def free(self, *, lowest: int, embeddings: bool) -> Frozen | None:
        """Choose what is trained: all of the encoder but its ``lowest`` layers; the subword embedding table
        only if ``embeddings``. Returns the frozen part if its output can be computed once.
        """
        body: Any = self.body
        body.requires_grad_(True)  # an earlier step may have frozen more
        for parameter in body.get_input_embeddings().parameters():
            parameter.requires_grad_(embeddings)
        if not lowest:
            return None
        parts = SplitEncoder(body, lowest)
        parts.freeze()
        return parts


def outputs_for(probes: Sequence[Probe]) -> dict[str, bool]:
    """The outputs to request from an encoder for these probes."""
    wanted = {"output_hidden_states": any(probe.hidden_states for probe in probes)}
    return {**wanted, "output_attentions": True} if any(probe.attentions for probe in probes) else wanted


def words_of(out: Any, head: Head, batch: TokenBatch) -> tuple[Tensor, Tensor]:
    """(features [W, H], columns [W, C]) of a batch's words, from an encoder's output [B, T, H]."""
    # the head is small and its scores decide: full precision, whatever the encoder's precision
    with torch.autocast(out.logits.device.type, enabled=False):
        features = out.logits[batch.rows, batch.positions].float()
        if isinstance(head, LinearHead):
            # over all positions, like a stock token classifier: bit-identical to its product
            return features, head(out.logits.float())[batch.rows, batch.positions]
        return features, head(features)


def columns_of(out: Any, head: Head) -> Tensor:
    """[B, T, C] the columns of every position."""
    rows, tokens, hidden = out.logits.shape
    columns: Tensor = head(out.logits.reshape(-1, hidden))  # heads see words: [W, H] -> [W, C]
    return columns.reshape(rows, tokens, -1)


def copy_head(head: Head) -> Head:
    """A deep copy whose gradient mask is its own (a copied hook would still point at the old head)."""
    return head.grown(head.weight.new_empty(0, head.hidden))
