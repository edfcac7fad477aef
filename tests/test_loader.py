"""Batches: each window once per epoch, in an order that seed and epoch decide, with little padding."""

from __future__ import annotations

import numpy as np
import pytest
from accelerate.data_loader import BatchSamplerShard
from hypothesis import given, settings
from hypothesis import strategies as st

from cfner.batches.encoding import EncodedText, encode
from cfner.batches.loader import LengthBuckets, collate, inference_batches, training_loader
from cfner.corpus.corpus import Corpus
from cfner.corpus.sentence import Sentence
from cfner.store.pretrained import _load_tokenizer

relaxed = settings(deadline=None, max_examples=100)
lengths_of_windows = st.lists(st.integers(3, 64), max_size=300).map(lambda n: np.array(n, dtype=np.int64))


@pytest.fixture(scope="module")
def text(tiny_encoder: object, tiny_corpus: Corpus) -> EncodedText:
    long = Sentence(("the", "in", "by") * 50)
    tokenizer = _load_tokenizer(tiny_encoder)
    return encode([*tiny_corpus.train, long], tokenizer, max_length=48)


@relaxed
@given(lengths_of_windows, st.integers(1, 40), st.integers(0, 5), st.integers(0, 20))
def test_every_window_comes_once_per_epoch(
    lengths: np.ndarray, batch_size: int, seed: int, epoch: int
) -> None:
    order = LengthBuckets(lengths, batch_size, seed)
    order.set_epoch(epoch)
    batches = list(order)
    assert sorted(window for batch in batches for window in batch) == list(range(len(lengths)))
    assert len(batches) == len(order)
    assert all(1 <= len(batch) <= batch_size for batch in batches)


@relaxed
@given(lengths_of_windows, st.integers(0, 5), st.integers(0, 20))
def test_the_order_is_a_pure_function_of_seed_and_epoch(lengths: np.ndarray, seed: int, epoch: int) -> None:
    one, other = LengthBuckets(lengths, 8, seed), LengthBuckets(lengths, 8, seed)
    for earlier in range(3):  # what was read before does not matter
        one.set_epoch(earlier)
        list(one)
    one.set_epoch(epoch)
    other.set_epoch(epoch)
    assert list(one) == list(other) == list(other)


def test_epochs_and_seeds_differ() -> None:
    lengths = np.arange(200) % 50 + 3
    orders = []
    for seed, epoch in [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2)]:
        order = LengthBuckets(lengths, 8, seed)
        order.set_epoch(epoch)
        orders.append(str(list(order)))
    assert len(set(orders)) == len(orders)


def test_there_is_far_less_padding_than_in_random_order() -> None:
    random = np.random.default_rng(0)
    lengths = random.geometric(0.05, 2000) + 2

    def padding(batches: list[list[int]]) -> int:
        return sum(int(lengths[batch].max() * len(batch) - lengths[batch].sum()) for batch in batches)

    shuffled = random.permutation(2000).reshape(-1, 16).tolist()
    assert padding(list(LengthBuckets(lengths, 16, 0))) < 0.25 * padding(shuffled)


@relaxed
@given(st.integers(1, 200), st.integers(1, 16), st.integers(1, 4), st.integers(0, 5))
def test_several_processes_together_read_every_window_in_equally_many_batches(
    windows: int, batch_size: int, processes: int, epoch: int
) -> None:
    """Unequal numbers of batches would leave one process waiting for ever; a lost batch is lost data."""
    order = LengthBuckets(np.arange(windows) % 30 + 3, batch_size, seed=0)
    order.set_epoch(epoch)
    shares = [list(BatchSamplerShard(order, processes, rank)) for rank in range(processes)]
    assert {len(share) for share in shares} == {len(BatchSamplerShard(order, processes, 0))}
    assert {window for share in shares for batch in share for window in batch} == set(range(windows))


def test_a_batch_holds_the_windows_padded_and_masked(text: EncodedText) -> None:
    windows = [5, 0, text.windows - 1]
    batch = collate(text, windows)
    for row, window in enumerate(windows):
        real = text.input_ids[text.window_bounds[window] : text.window_bounds[window + 1]]
        assert batch.input_ids[row, : len(real)].tolist() == real.tolist()
        assert (batch.input_ids[row, len(real) :] == text.pad_id).all()
        assert batch.attention_mask[row].tolist() == [1] * len(real) + [0] * (
            batch.input_ids.shape[1] - len(real)
        )
        refs = text.word_refs[text.word_bounds[window] : text.word_bounds[window + 1]]
        assert batch.refs[batch.rows == row].tolist() == refs.tolist()


def test_inference_reads_every_word_once_longest_windows_first(text: EncodedText) -> None:
    batches = list(inference_batches(text, batch_size=7))
    refs = [ref for batch in batches for ref in batch.refs.tolist()]
    widths = [batch.input_ids.shape[1] for batch in batches]
    assert sorted(refs) == list(range(text.words))
    assert widths == sorted(widths, reverse=True)


@pytest.mark.parametrize("most", [1, 40, 10**6])
def test_inference_batches_hold_at_most_so_many_subwords(text: EncodedText, most: int) -> None:
    batches = list(inference_batches(text, batch_size=7, subwords=most))
    assert sorted(ref for batch in batches for ref in batch.refs.tolist()) == list(range(text.words))
    for batch in batches:
        windows, width = batch.input_ids.shape
        assert windows == 1 or (windows <= 7 and windows * width <= most)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_loader_reads_every_word_once_in_the_order_of_its_sampler(text: EncodedText, workers: int) -> None:
    loader, order = training_loader(text, batch_size=8, seed=3, workers=workers)
    order.set_epoch(2)
    batches = list(loader)
    assert [batch.windows.tolist() for batch in batches] == list(order)
    assert sorted(ref for batch in batches for ref in batch.refs.tolist()) == list(range(text.words))
