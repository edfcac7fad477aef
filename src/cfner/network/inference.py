"""What a network says of every word of a text, in large batches sorted by length."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

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


class Decoder:
    """From scores to labels to mentions: the one way, for evaluation, prediction, the server and ONNX."""

    def __init__(self, labels: LabelSpace) -> None:
        self.labels = labels
        type_of = [labels.type_of(number) for number in range(len(labels))]
        # [C, C]: 1 where two labels are of the same type
        self._mates = torch.tensor([[float(one == other) for one in type_of] for other in type_of])

    def best(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """(best label [W], probability of its type [W]) from logits [W, C]."""
        probabilities = logits.float().softmax(1)
        best = probabilities.argmax(1)
        return best, (probabilities * self._mates[best]).sum(1).clamp(max=1.0)

    def spans(self, ids: Tensor, text: EncodedText) -> list[tuple[Span, ...]]:
        """Mentions per sentence, repaired to valid spans, from label ids [N] by TokenRef."""
        flat, bounds = ids.tolist(), text.sentence_bounds.tolist()
        return [self.labels.decode(flat[a:b]) for a, b in itertools.pairwise(bounds)]


def label_words(
    network: WordScorer, text: EncodedText, decoder: Decoder, *, batch_size: int = 64
) -> tuple[Tensor, Tensor]:
    """(label id [N], probability of that label's type [N]) for every word, by TokenRef."""
    ids = torch.zeros(text.words, dtype=torch.long)
    scores = torch.zeros(text.words)
    for batch, out in outputs(network, text, batch_size=batch_size):
        refs = batch.refs.cpu()
        ids[refs], scores[refs] = decoder.best(out.logits.cpu())
    return ids, scores


def predict_spans(
    network: WordScorer, text: EncodedText, labels: LabelSpace, *, batch_size: int = 64
) -> list[tuple[Span, ...]]:
    decoder = Decoder(labels)
    return decoder.spans(label_words(network, text, decoder, batch_size=batch_size)[0], text)
