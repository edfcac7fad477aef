"""A network's scores for every word of a text, in large batches sorted by length."""

from __future__ import annotations

import copy
import itertools
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from cfner.batches.encoding import EncodedText, IntArray
from cfner.batches.loader import TokenBatch, inference_batches
from cfner.corpus.sentence import Span
from cfner.network.calibration import Calibration
from cfner.network.network import TaggerOutput
from cfner.network.probes import Probe
from cfner.stream.labels import LabelSpace


class WordScorer(Protocol):
    """Scores the words of a batch: a ``Network``, or an exported one in a different runtime.

    ``subwords_per_batch``: the size of batch that it computes fastest; None: the larger, the faster.
    ``batches_at_once``: how many batches are computed at the same time, each by one thread. 1: one batch is
    computed by all threads.
    """

    training: bool

    @property
    def subwords_per_batch(self) -> int | None: ...
    @property
    def batches_at_once(self) -> int: ...

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
    subwords: int | None = None,
) -> Iterator[tuple[TokenBatch, TaggerOutput]]:
    """Run the network in eval mode over all windows (or some); its mode is restored afterwards.

    Batches have at most ``batch_size`` windows and ``subwords``.
    """
    training = network.training
    network.eval()
    batches = inference_batches(text, batch_size=batch_size, windows=windows, subwords=subwords)
    placed = (batch.to(network.device) for batch in batches)
    try:
        if network.batches_at_once > 1:
            yield from _at_once(network, placed, probes)
        else:
            for batch in placed:
                yield batch, network(batch, probes)
    finally:
        network.train(training)


def _at_once(
    network: WordScorer, batches: Iterable[TokenBatch], probes: Sequence[Probe]
) -> Iterator[tuple[TokenBatch, TaggerOutput]]:
    """The same outputs in the same order; while the caller uses one, the next are computed."""
    batches = list(itertools.islice(unread := iter(batches), 2))
    if len(batches) < 2:  # not worth starting threads
        yield from ((batch, network(batch, probes)) for batch in batches)
        return
    ahead: deque[tuple[TokenBatch, Future[TaggerOutput]]] = deque()
    with (
        _one_torch_thread(),
        ThreadPoolExecutor(network.batches_at_once, thread_name_prefix="cfner-batch") as pool,
    ):
        try:
            for batch in itertools.chain(batches, unread):
                ahead.append((batch, pool.submit(network, batch, probes)))
                if len(ahead) > network.batches_at_once:
                    first, out = ahead.popleft()
                    yield first, out.result()
            for last, out in ahead:
                yield last, out.result()
        finally:  # after an error, what has not begun is not wanted
            pool.shutdown(cancel_futures=True)


@contextmanager
def _one_torch_thread() -> Iterator[None]:
    """What torch does with the scores is small, but its threads would keep the cores busy while they wait."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


class _Figures(NamedTuple):
    """The calibration of each label's type [C]."""

    shift: Tensor
    bias: Tensor
    temperature: Tensor

    @classmethod
    def of(cls, calibration: Calibration, type_of: Sequence[str | None]) -> _Figures:
        each = [calibration.of(type_) for type_ in type_of]
        return cls(*(torch.tensor([getattr(one, name) for one in each]) for name in cls._fields))


class Decoder:
    """From scores to labels to mentions. Evaluation, prediction, the server and ONNX all use it.

    A word gets the label with the largest column, which is O where no label's log-odds are above 0. Its score
    is the probability of the label's type in the label's own group, so that adding types does not change it.
    The parts of a merged type may be in several groups: the largest probability counts.

    A ``calibration`` has three figures per type. The shift is added to the log-odds of the type's labels
    before the largest is chosen. Scores are computed without the shift, with the type's bias and temperature:
    the score of a mention does not depend on the threshold of its type. No figure changes the log-odds or the
    scores of another type.
    """

    def __init__(self, labels: LabelSpace, calibration: Calibration | None = None) -> None:
        self.labels = labels
        self._type_of = type_of = [labels.type_of(number) for number in range(len(labels))]
        # [C, C]: 1 where two labels are of the same type
        self._mates = torch.tensor([[float(one == other) for one in type_of] for other in type_of])
        groups = torch.tensor(labels.group_of)
        with_other = (groups[:, None] == groups) | (torch.arange(len(labels)) == labels.other_id)
        # [C, C]: 0 for O and the labels of a label's group, -inf for those that it does not compete with
        self._rivals = torch.zeros(with_other.shape).masked_fill(~with_other, float("-inf"))
        # labels that mean nothing act for their whole group: [S, C] which labels it has, [S] their own ids
        self._silent = torch.tensor(labels.silent, dtype=torch.long)
        self._silenced = (groups[self._silent][:, None] == groups) & (
            torch.arange(len(labels)) != labels.other_id
        )
        # merged types with labels in several groups: their labels, and one label of each group
        self._merged = []
        for ids in (labels.ids_of([type_]) for type_ in labels.merged):
            one_of_group = {labels.group_of[label]: label for label in ids}
            if len(one_of_group) > 1:
                self._merged.append((torch.tensor(ids), list(one_of_group.values())))
        # [C] each, of the label's type; None without a calibration
        self._figures: _Figures | None = None
        if calibration is not None:
            self._figures = _Figures.of(calibration, type_of)

    def calibrated(self, calibration: Calibration) -> Decoder:
        """The same decoder with a different calibration; cheap."""
        decoder = copy.copy(self)
        decoder._figures = _Figures.of(calibration, self._type_of)
        return decoder

    def columns(self, logits: Tensor) -> Tensor:
        """[W, C] the scores that decide: with the shift of each label's type added."""
        logits = logits.float()
        return logits if self._figures is None else logits + self._figures.shift

    def best(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """(best label [W], probability of its type [W]) from columns [W, C]."""
        logits = logits.float()
        columns = self._heard(self.columns(logits))
        best = columns.argmax(1)
        in_group = best
        if self.labels.has_own_others:  # O's probability depends on the group that comes closest to the word
            other = self.labels.other_id
            runner_up = columns.index_fill(1, torch.tensor([other]), float("-inf")).argmax(1)
            in_group = torch.where(best == other, runner_up, best)
        probabilities = self._in_group(logits, in_group)
        scores = (probabilities * self._mates[best]).sum(1)
        heard = logits.masked_fill(columns.isneginf(), float("-inf"))
        for ids, one_of_group in self._merged:
            words = torch.isin(best, ids).nonzero()[:, 0]
            for label in one_of_group:
                probabilities = self._in_group(heard[words], torch.tensor(label))
                scores[words] = torch.maximum(scores[words], (probabilities * self._mates[label]).sum(1))
        return best, scores.clamp(max=1.0)

    def _in_group(self, logits: Tensor, labels: Tensor) -> Tensor:
        """[W, C] calibrated probabilities in the groups of labels [W] (or of one)."""
        if (figures := self._figures) is not None:
            logits = logits + figures.bias[labels][..., None] * self._mates[labels]
            logits = logits / figures.temperature[labels][..., None]
        return (logits + self._rivals[labels]).softmax(1)

    def margin(self, logits: Tensor) -> Tensor:
        """[W] the change of probabilities that would change a word's label, from columns [W, C]."""
        if logits.shape[1] < 2:
            return logits.new_ones(len(logits))
        logits = self.columns(logits)
        probabilities, columns = logits.softmax(1), self._heard(logits)
        first, second = probabilities.gather(1, columns.topk(2, dim=1).indices).T
        # where only one label is possible, no small change gives another
        margin = torch.where(columns.isfinite().sum(1) > 1, first - second, 1.0)
        for label, group in zip(self._silent.tolist(), self._silenced, strict=True):
            mates = group.clone()
            mates[self._silent] = False
            if bool(mates.any()):  # its group may be silenced or come back, and must then also be the largest
                loudest = probabilities[:, mates].amax(1)
                change = (probabilities[:, label] - loudest).abs()
                margin = torch.minimum(margin, torch.maximum(change, first - loudest))
        return margin

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
    for batch, out in outputs(network, text, batch_size=batch_size, subwords=network.subwords_per_batch):
        refs = batch.refs.cpu()
        ids[refs], scores[refs] = decoder.best(out.logits.cpu())
    return ids, scores


def predict_spans(
    network: WordScorer,
    text: EncodedText,
    labels: LabelSpace,
    *,
    calibration: Calibration | None = None,
    batch_size: int = 64,
) -> list[tuple[Span, ...]]:
    decoder = Decoder(labels, calibration)
    return decoder.spans(label_words(network, text, decoder, batch_size=batch_size)[0], text)
