"""What a network says of every word of a text, in large batches sorted by length."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import torch

from cfner.batches.encoding import EncodedText, IntArray
from cfner.batches.loader import TokenBatch, inference_batches
from cfner.corpus.sentence import Span
from cfner.network.network import TaggerOutput
from cfner.network.probes import Probe
from cfner.stream.labels import LabelSpace


class WordScorer(Protocol):
    """What scores the words of a batch: a ``Network``, or an exported one that another runtime computes."""

    training: bool

    @property
    def device(self) -> torch.device: ...
    def eval(self) -> Any: ...
    def train(self, mode: bool = True) -> Any: ...
    def __call__(self, batch: TokenBatch, probes: Sequence[Probe] = ()) -> TaggerOutput: ...


@torch.no_grad()
def outputs(
    network: WordScorer,
    text: EncodedText,
    *,
    batch_size: int = 64,
    windows: IntArray | None = None,
    probes: Sequence[Probe] = (),
) -> Iterator[tuple[TokenBatch, TaggerOutput]]:
    """Run the network in eval mode over all windows (or some); its mode is restored afterwards."""
    training = network.training
    network.eval()
    try:
        for batch in inference_batches(text, batch_size=batch_size, windows=windows):
            placed = batch.to(network.device)
            yield placed, network(placed, probes)
    finally:
        network.train(training)


def label_ids(
    network: WordScorer, text: EncodedText, *, batch_size: int = 64
) -> tuple[torch.Tensor, torch.Tensor]:
    """(label id [N], its probability [N]) for every word, by TokenRef."""
    ids = torch.zeros(text.words, dtype=torch.long)
    scores = torch.zeros(text.words)
    for batch, out in outputs(network, text, batch_size=batch_size):
        best = out.logits.softmax(1).max(1)
        refs = batch.refs.cpu()
        ids[refs] = best.indices.cpu()
        scores[refs] = best.values.float().cpu()
    return ids, scores


def decode(ids: torch.Tensor, text: EncodedText, labels: LabelSpace) -> list[tuple[Span, ...]]:
    """Mentions per sentence, repaired to valid spans."""
    flat, bounds = ids.tolist(), text.sentence_bounds.tolist()
    return [labels.decode(flat[a:b]) for a, b in itertools.pairwise(bounds)]


def predict_spans(
    network: WordScorer, text: EncodedText, labels: LabelSpace, *, batch_size: int = 64
) -> list[tuple[Span, ...]]:
    ids, _ = label_ids(network, text, batch_size=batch_size)
    return decode(ids, text, labels)
