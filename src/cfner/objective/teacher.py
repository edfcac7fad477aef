"""A teacher's scores for every word of a step, computed once and read by terms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor

from cfner.batches.loader import TokenBatch
from cfner.batches.step_data import StepData
from cfner.network.inference import outputs
from cfner.network.network import Network
from cfner.network.probes import Axis, Probe, Reading
from cfner.objective.terms import LabelRoles, TeacherView


@dataclass(frozen=True)
class WordScores:
    """By TokenRef, for a complete step. Matching and training read the same numbers."""

    logits: Tensor  # [N, C_kept] over roles.kept
    defined_other: Tensor  # [N] bool: labelled O here, an old type to this network
    confidence: Tensor  # [N] probability of the label that it predicts, in the label's own group
    pool: Tensor  # [P] TokenRefs of E tokens and defined-other tokens, ascending
    pool_features: Tensor  # [P, H]
    readings: Mapping[str, Reading] = field(default_factory=dict)  # of cached probes: by word or by window
    axes: Mapping[str, tuple[Axis, ...]] = field(default_factory=dict)
    # [H] the sum of the normalised features of all words of annotated slices, and the number of words
    unit_sum: Tensor = field(default_factory=lambda: torch.zeros(()))
    annotated: int = 0

    def view(self, batch: TokenBatch, now: Mapping[str, Reading] | None = None) -> TeacherView:
        """The scores of a batch's words. ``now``: readings of this batch that are not cached."""
        refs = batch.refs
        cached = {
            name: tuple(
                tensor[refs if axis == "word" else batch.windows]
                for tensor, axis in zip(reading, self.axes[name], strict=True)
            )
            for name, reading in self.readings.items()
        }
        return TeacherView(
            self.logits[refs], self.defined_other[refs], self.confidence[refs], {**cached, **(now or {})}
        )


def score_words(
    network: Network,
    data: StepData,
    roles: LabelRoles,
    probes: Sequence[Probe] = (),
    *,
    batch_size: int = 64,
    group_of: Sequence[int] | None = None,
    odds: Tensor | None = None,
) -> WordScores:
    """One pass of the network over the step's words, with the probes' readings that can be cached.

    ``group_of``: the group of each label, where groups have their own Other classes. ``odds [N, C_kept]``:
    log-odds against O that replace the network's own, unless they are nan.
    """
    probes = [probe for probe in probes if probe.cached]
    device, words = network.device, data.text.words
    kept, gold = roles.kept.to(device), data.gold.to(device)
    logits = torch.empty(words, len(kept), device=device)
    is_entity, is_other = roles.is_new.to(device)[gold], gold == roles.other
    readings: dict[str, Reading] = {}
    pool: list[Tensor] = []
    features: list[Tensor] = []
    with_labels = torch.tensor([bool(part.annotated) for part in data.slices])[data.slice_of].to(device)
    unit_sum = torch.zeros(network.head.hidden, device=device)
    with network.ready_for(probes):
        for batch, out in outputs(network, data.text, batch_size=batch_size, probes=probes):
            refs = batch.refs
            logits[refs] = out.logits[:, kept]
            if odds is not None:
                given = logits[refs][:, :1] + odds[refs]
                logits[refs] = torch.where(given.isnan(), logits[refs], given)
            chosen = is_entity[refs] | (is_other[refs] & (logits[refs].argmax(1) != 0))  # kept[0] is O
            pool.append(refs[chosen])
            features.append(out.features[chosen])
            unit_sum += F.normalize(out.features[with_labels[refs]], dim=1).sum(0)
            for probe in probes:
                _store(readings, probe, out.readings[probe.name], batch, words, data.text.windows)
    refs = torch.cat([*pool, torch.empty(0, dtype=torch.long, device=device)])
    order = refs.argsort()
    return WordScores(
        logits=logits,
        defined_other=is_other & (logits.argmax(1) != 0),
        confidence=confidence(logits, None if group_of is None else torch.tensor(group_of).to(device)[kept]),
        pool=refs[order],
        pool_features=torch.cat([*features, logits.new_empty(0, network.head.hidden)])[order],
        unit_sum=unit_sum,
        annotated=int(with_labels.sum()),
        readings=readings,
        axes={probe.name: probe.axes for probe in probes},
    )


def word_logits(network: Network, data: StepData, *, batch_size: int = 64) -> Tensor:
    """[N, C] the network's scores for every word, over all labels that it has."""
    logits = torch.empty(data.text.words, network.labels, device=network.device)
    for batch, out in outputs(network, data.text, batch_size=batch_size):
        logits[batch.refs] = out.logits
    return logits


def confidence(logits: Tensor, group_of: Tensor | None) -> Tensor:
    """[N] probability of the label with the largest of ``logits [N, K]``, of which the first is O's.

    ``group_of [K]``: only labels of the same group, and O, compete. O's confidence is then its probability in
    the group that comes closest to claiming the word.
    """
    if group_of is None or logits.shape[1] < 2:
        return logits.softmax(1).max(1).values
    best = logits.argmax(1)
    claimed = torch.where(best == 0, 1 + logits[:, 1:].argmax(1), best)
    rivals = group_of[claimed][:, None] == group_of  # [N, K]
    rivals[:, 0] = True
    own = logits.masked_fill(~rivals, float("-inf")).softmax(1)
    return own.gather(1, best[:, None])[:, 0]


def _store(
    readings: dict[str, Reading], probe: Probe, found: Reading, batch: TokenBatch, words: int, windows: int
) -> None:
    """Put a batch's reading in its place among those of the whole step."""
    if probe.name not in readings:
        readings[probe.name] = tuple(
            tensor.new_empty(words if axis == "word" else windows, *tensor.shape[1:])
            for tensor, axis in zip(found, probe.axes, strict=True)
        )
    for whole, part, axis in zip(readings[probe.name], found, probe.axes, strict=True):
        whole[batch.refs if axis == "word" else batch.windows] = part
