"""A network of experts: shared lower layers and, for each step, its own top layers and head.

Expert 0 is the original network, unchanged: its columns are what they were. A later expert has a head whose O
is always 0, so that its columns are log-odds. They are added to O's column of expert 0. So the network as a
whole returns ``[W, C]`` columns like any other, and its callers need not know about experts. Only the newest
expert is ever trained.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Sequence
from typing import Any, Final

import torch
from torch import Tensor, nn

from cfner.batches.encoding import EncodedText
from cfner.batches.loader import TokenBatch, inference_batches
from cfner.network.cut_encoder import SharedLayers, depth, freeze_lowest, joined, run_top
from cfner.network.frozen_layers import CachedLowerLayers
from cfner.network.head import Head
from cfner.network.network import Network, TaggerOutput, columns_of, copy_head, outputs_for, words_of
from cfner.network.probes import Probe

# the log-odds of a label on a word that a label of higher rank claims: low enough that its probability is 0,
# and finite, so that differences of columns stay finite
OUTRANKED: Final = -100.0


class Expert(nn.Module):
    """The top layers of an encoder, and the head that reads them."""

    def __init__(self, body: nn.Module, head: Head) -> None:
        super().__init__()
        self.body = body
        self.head = head


class ExpertNetwork(Network):
    """``body`` and ``head`` are the newest expert's; ``older`` are those before it, oldest first.

    ``rows``: for each expert, the labels that its head has a row for. If several have the label, the newest
    counts. ``ranks``: of each label; a label claims only words that no label with a lower number claims.
    ``silent``: labels that mean nothing, and claim nothing.
    """

    order: Tensor
    rank_of: Tensor
    claims: Tensor

    def __init__(
        self,
        shared: SharedLayers,
        experts: Sequence[Expert],
        rows: Sequence[Sequence[int]],
        ranks: Sequence[int],
        silent: Collection[int] = (),
    ) -> None:
        super().__init__(experts[-1].body, experts[-1].head)
        self.shared = shared
        self.older = nn.ModuleList(experts[:-1])
        self.rows = tuple(tuple(own) for own in rows)
        self.ranks = tuple(ranks)
        self.silent = tuple(silent)
        self.new_rank = max(self.ranks)  # the rank of labels to be added
        self.group_numbers: dict[int, int] = {}  # of the newest head, by the number in the label space
        self._index()

    def _index(self) -> None:
        """For each label, the index of its column in the concatenation of all experts' columns."""
        device, first = self.device, self.first.labels
        place = {label: label for label in range(first)}
        at = first
        for own in self.rows[1:]:
            place |= {label: at + number for number, label in enumerate(own)}
            at += len(own)
        order = torch.tensor([place[label] for label in range(len(self.ranks))], device=device)
        claims = torch.ones(len(self.ranks), dtype=torch.bool, device=device)
        claims[[self.first.other, *self.silent]] = False
        ranks = torch.tensor(self.ranks, device=device)
        ranks[self.first.other] = -1  # O claims nothing, so it needs no rank
        for name, value in (("order", order), ("claims", claims), ("rank_of", ranks)):
            self.register_buffer(name, value, persistent=False)

    @property
    def first(self) -> Head:
        """The head of expert 0, which has O's column."""
        head: Any = self.older[0].head
        return head  # type: ignore[no-any-return]

    @property
    def labels(self) -> int:
        return len(self.ranks)

    @property
    def top(self) -> int:
        """The number of top layers in each expert."""
        return depth(self.body)

    @property
    def experts(self) -> tuple[Expert, ...]:
        """All of them, oldest first."""
        return (*(e for e in self.older if isinstance(e, Expert)), Expert(self.body, self.head))

    @property
    def encoders(self) -> tuple[Any, ...]:
        return (self.shared.body, *(expert.body for expert in self.experts))

    def reader(self, label: int) -> int:
        """The expert whose scores count for a label."""
        return max(number for number, own in enumerate(self.rows) if label in own)

    # -- from text to columns ------------------------------------------------------------------------------

    def forward(
        self, batch: TokenBatch, probes: Sequence[Probe] = (), lower: CachedLowerLayers | None = None
    ) -> TaggerOutput:
        """``lower``: the frozen parts' cached output, if there is one. Probes read the newest expert."""
        ids, mask = batch.input_ids, batch.attention_mask
        with torch.no_grad():
            hidden = self.shared.lower(ids, mask) if lower is None else lower.of(batch)
            before = lower.before(batch) if isinstance(lower, CachedExperts) else self.before(hidden, batch)
        out = run_top(self.body, hidden, ids, mask, **outputs_for(probes))
        features, own = words_of(out, self.head, batch)
        with torch.autocast(features.device.type, enabled=False):
            readings = {probe.name: probe.read(features, out, batch) for probe in probes}
        return TaggerOutput(features, self._gathered(torch.cat([before, own[:, 1:]], 1)), readings)

    def before(self, hidden: Tensor, batch: TokenBatch) -> Tensor:
        """[B, T, H] from the lower layers -> [W, K]: the older experts' columns, concatenated: all columns of
        the first expert, log-odds of the others.
        """
        parts: list[Tensor] = []
        for expert in self.experts[:-1]:
            out = run_top(expert.body, hidden, batch.input_ids, batch.attention_mask)
            columns = words_of(out, expert.head, batch)[1]
            parts.append(columns[:, 1:] if parts else columns)
        return torch.cat(parts, 1)

    def columns(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        hidden = self.shared.lower(input_ids, attention_mask)
        parts: list[Tensor] = []
        for expert in self.experts:
            own = columns_of(run_top(expert.body, hidden, input_ids, attention_mask), expert.head)
            parts.append(own[..., 1:] if parts else own)
        return self._gathered(torch.cat(parts, -1))

    def _gathered(self, parts: Tensor) -> Tensor:
        """[..., K] -> [..., C]: one column per label. Ranks do not count in training: a new label learns its
        type on all words, also where it will be outranked.
        """
        first = self.first.labels
        other = parts[..., self.first.other, None]
        columns = torch.cat([parts[..., :first], other + parts[..., first:]], -1)[..., self.order]
        return columns if self.training else self._ranked(columns, other)

    def _ranked(self, columns: Tensor, other: Tensor) -> Tensor:
        for rank in range(1, max(self.ranks) + 1):
            older = self.claims & (self.rank_of < rank)
            claimed = ((columns > other) & older).any(-1, keepdim=True)
            columns = torch.where(claimed & (self.rank_of == rank), other + OUTRANKED, columns)
        return columns

    # -- how it grows and what is trained ------------------------------------------------------------------

    def known_rows(self, labels: Collection[int]) -> Tensor:
        here = [1 + number for number, label in enumerate(self.rows[-1]) if label in set(labels)]
        return self.head.weight.detach()[here]

    def imprint_rows(self, means: Tensor) -> Tensor:
        return self.first.imprint_rows(means)

    def new_groups(self, groups: Sequence[int]) -> list[int]:
        return sorted(set(groups) - set(self.group_numbers))

    def grow(self, rows: Tensor, groups: Sequence[int] = (), others: Tensor | None = None) -> None:
        """Append rows to the newest head. ``groups`` are group numbers of the label space."""
        for group in self.new_groups(groups):
            self.group_numbers[group] = len(self.group_numbers) + 1
        self.head = self.head.grown(rows, [self.group_numbers[group] for group in groups], others)
        new = range(self.labels, self.labels + len(rows))
        self.rows = (*self.rows[:-1], (*self.rows[-1], *new))
        self.ranks = (*self.ranks, *[self.new_rank] * len(rows))
        self._index()

    def free(self, *, lowest: int, embeddings: bool) -> ExpertNetwork:
        """Only the newest expert is trained, whatever is requested for the layers below it."""
        self.requires_grad_(False)
        self.body.requires_grad_(True)
        self.head.requires_grad_(True)
        freeze_lowest(self.body, lowest - self.shared.depth)
        return self

    def cached(self, text: EncodedText, device: torch.device, batch_size: int) -> CachedLowerLayers:
        """The outputs of the lower layers and the older experts for a text, computed once."""
        return CachedExperts(self, text, device, batch_size)

    def train(self, mode: bool = True) -> ExpertNetwork:
        """Only the newest expert is ever in training mode: the others are deterministic."""
        super().train(mode)
        self.shared.eval()
        self.older.eval()
        return self

    def frozen_copy(self) -> ExpertNetwork:
        """Frozen parts are shared with the copy."""
        newest = Expert(copy.deepcopy(self.body), copy_head(self.head))
        experts = [*self.experts[:-1], newest]
        teacher = ExpertNetwork(self.shared, experts, self.rows, self.ranks, self.silent)
        teacher.requires_grad_(False)
        teacher.eval()
        return teacher

    def newest_encoder(self) -> nn.Module:
        """A copy of the newest expert's complete encoder."""
        return joined(self.shared, self.body)


class CachedExperts(CachedLowerLayers):
    """The outputs of a network's frozen parts, for every window and every word of a text."""

    def __init__(
        self, network: ExpertNetwork, text: EncodedText, device: torch.device, batch_size: int
    ) -> None:
        super().__init__(network.shared, text, device, batch_size)
        columns: Tensor | None = None
        with torch.no_grad():
            for batch in inference_batches(text, batch_size=batch_size):
                placed = batch.to(device)
                found = network.before(self.of(placed), placed)
                if columns is None:
                    columns = found.new_empty(text.words, found.shape[1])
                columns[placed.refs] = found
        self._columns = columns

    def before(self, batch: TokenBatch) -> Tensor:
        """[W, K] the older experts' columns, for a batch of the same text."""
        assert self._columns is not None  # noqa: S101 - a batch has words, so the text had some
        return self._columns[batch.refs]
