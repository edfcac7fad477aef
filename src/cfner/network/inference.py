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
    """From scores to labels to mentions: the one way, for evaluation, prediction, the server and ONNX.

    A word gets the label with the largest column, which is O where no label's log-odds are above 0. Its score
    is the probability of the label's type in the label's own group, so that scores stay what they are when
    types are added.
    """

    def __init__(self, labels: LabelSpace) -> None:
        self.labels = labels
        type_of = [labels.type_of(number) for number in range(len(labels))]
        # [C, C]: 1 where two labels are of the same type
        self._mates = torch.tensor([[float(one == other) for one in type_of] for other in type_of])
        groups = torch.tensor(labels.group_of)
        with_other = (groups[:, None] == groups) | (torch.arange(len(labels)) == labels.other_id)
        # [C, C]: 0 for the labels of a label's group and O, -inf for those that it does not compete with
        self._rivals = torch.zeros(with_other.shape).masked_fill(~with_other, float("-inf"))
        # labels that mean nothing speak for their whole group: [S, C] who is in it, [S] which they are
        self._silent = torch.tensor(labels.silent, dtype=torch.long)
        self._silenced = (groups[self._silent][:, None] == groups) & (
            torch.arange(len(labels)) != labels.other_id
        )

    def best(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """(best label [W], probability of its type [W]) from columns [W, C]."""
        columns = self._heard(logits.float())
        best = columns.argmax(1)
        in_group = best
        if self.labels.has_own_others:  # how sure O is depends on who comes closest to claiming the word
            other = self.labels.other_id
            runner_up = columns.index_fill(1, torch.tensor([other]), float("-inf")).argmax(1)
            in_group = torch.where(best == other, runner_up, best)
        probabilities = (columns + self._rivals[in_group]).softmax(1)
        return best, (probabilities * self._mates[best]).sum(1).clamp(max=1.0)

    def _heard(self, columns: Tensor) -> Tensor:
        """Where a label that means nothing is the largest of its group, the group claims nothing."""
        for label, group in zip(self._silent.tolist(), self._silenced, strict=True):
            largest = columns[:, label] >= columns[:, group].amax(1)
            columns = columns.masked_fill(largest[:, None] & group, float("-inf"))
        return columns

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
