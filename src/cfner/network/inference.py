"""A network's scores for every word of a text, in large batches sorted by length."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from cfner.batches.encoding import EncodedText, IntArray
from cfner.batches.loader import TokenBatch, inference_batches
from cfner.corpus.sentence import Span
from cfner.network.calibration import Calibration
from cfner.network.decoder import Decoder
from cfner.network.network import TaggerOutput
from cfner.network.probes import Probe
from cfner.stream.labels import LabelSpace


class WordScorer(Protocol):
    """Scores the words of a batch: a ``Network``, or an exported one in a different runtime.

    ``subwords_per_batch``: the size of batch that it computes fastest; None: the larger, the faster.
    ``batches_at_once``: how many batches are computed at the same time, each by one thread. 1: one batch is
    computed by all threads.
    ``ranks``: of the labels, if older types claim their words first; else empty.
    """

    training: bool

    @property
    def ranks(self) -> Sequence[int]: ...

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


def label_words(
    network: WordScorer, text: EncodedText, decoder: Decoder, *, batch_size: int = 64
) -> tuple[Tensor, Tensor]:
    """(label id [N], probability of that label's type [N]) for every word, by TokenRef.

    A sentence is decoded as soon as all its words have scores: only those of several windows have to wait.
    """
    ids = torch.zeros(text.words, dtype=torch.long)
    scores = torch.zeros(text.words)
    lengths = np.diff(text.sentence_bounds)
    sentence_of = np.repeat(np.arange(len(lengths)), lengths)
    windows_of = np.bincount(sentence_of[text.word_refs[text.word_bounds[:-1]]], minlength=len(lengths))
    waits = torch.from_numpy(windows_of[sentence_of] > 1)

    def take(refs: Tensor, logits: Tensor) -> None:
        refs, order = refs.sort()
        words_of = np.unique(sentence_of[refs.numpy()], return_counts=True)[1]
        ids[refs] = decoder.labels_of(logits[order], words_of.tolist())
        scores[refs] = decoder.scores_of(logits[order], ids[refs])

    waiting: list[tuple[Tensor, Tensor]] = []
    for batch, out in outputs(network, text, batch_size=batch_size, subwords=network.subwords_per_batch):
        refs, logits = batch.refs.cpu(), out.logits.cpu()
        late = waits[refs]
        take(refs[~late], logits[~late])
        waiting.append((refs[late], logits[late]))
    if waiting:
        take(torch.cat([refs for refs, _ in waiting]), torch.cat([logits for _, logits in waiting]))
    return ids, scores


def predict_spans(
    network: WordScorer,
    text: EncodedText,
    labels: LabelSpace,
    *,
    calibration: Calibration | None = None,
    batch_size: int = 64,
) -> list[tuple[Span, ...]]:
    decoder = Decoder(labels, calibration, network.ranks)
    ids, _ = label_words(network, text, decoder, batch_size=batch_size)
    return decoder.spans(ids, text.sentence_bounds.tolist())
