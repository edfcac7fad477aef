"""Batches of windows of similar length. The order is a pure function of seed and epoch, so it resumes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler

from cfner.batches.encoding import EncodedText, IntArray
from cfner.errors import ConfigError

_BATCHES_PER_BUCKET = 32


class TokenBatch(NamedTuple):
    """B windows padded to T subwords; W words, each with its place in the batch and its TokenRef."""

    input_ids: Tensor  # [B, T]
    attention_mask: Tensor  # [B, T]
    rows: Tensor  # [W] which window
    positions: Tensor  # [W] which subword of it
    refs: Tensor  # [W] TokenRef
    windows: Tensor  # [B] index of each window in its EncodedText

    def to(self, device: torch.device | str, non_blocking: bool = False) -> TokenBatch:
        return TokenBatch(*(tensor.to(device, non_blocking=non_blocking) for tensor in self))


def collate(text: EncodedText, windows: Sequence[int] | IntArray) -> TokenBatch:
    """Pad the given windows into one batch."""
    chosen = np.asarray(windows, dtype=np.int64)
    starts, lengths = text.window_bounds[chosen], text.lengths[chosen]
    longest = int(lengths.max(initial=0))
    columns = np.arange(longest)
    real = columns[None, :] < lengths[:, None]  # [B, T]
    ids = np.full(real.shape, text.pad_id, dtype=np.int64)
    ids[real] = text.input_ids[(starts[:, None] + columns)[real]]
    counts = text.word_bounds[chosen + 1] - text.word_bounds[chosen]
    first = np.repeat(text.word_bounds[chosen], counts)
    within = np.arange(len(first)) - np.repeat(np.cumsum(counts) - counts, counts)
    words = first + within
    return TokenBatch(
        input_ids=torch.from_numpy(ids),
        attention_mask=torch.from_numpy(real.astype(np.int64)),
        rows=torch.from_numpy(np.repeat(np.arange(len(chosen)), counts)),
        positions=torch.from_numpy(text.word_positions[words].astype(np.int64)),
        refs=torch.from_numpy(text.word_refs[words]),
        windows=torch.from_numpy(chosen),
    )


class LengthBuckets(Sampler[list[int]]):
    """Shuffled batches with little padding: shuffle, sort within buckets, cut, shuffle the batches."""

    def __init__(self, lengths: IntArray, batch_size: int, seed: int) -> None:
        self.lengths = lengths
        # not called batch_size: accelerate would take a smaller batch for the last one and drop sentences
        self.windows_per_batch = batch_size
        self.seed = seed
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return math.ceil(len(self.lengths) / self.windows_per_batch)

    def __iter__(self) -> Iterator[list[int]]:
        random = np.random.default_rng((self.seed, self.epoch))
        order = random.permutation(len(self.lengths))
        size = self.windows_per_batch
        bucket = size * _BATCHES_PER_BUCKET
        batches: list[list[int]] = []
        for at in range(0, len(order), bucket):
            part = order[at : at + bucket]
            part = part[np.argsort(self.lengths[part], kind="stable")]
            batches += [part[i : i + size].tolist() for i in range(0, len(part), size)]
        for index in random.permutation(len(batches)):
            yield batches[index]


def training_loader(
    text: EncodedText, *, batch_size: int, seed: int, workers: int = 0
) -> tuple[DataLoader[Any], LengthBuckets]:
    """A loader over all windows, and its sampler, whose ``set_epoch`` decides the order."""
    sampler = LengthBuckets(text.lengths, batch_size, seed)
    loader: DataLoader[Any] = DataLoader(
        cast("Dataset[int]", range(text.windows)),  # a range has a length and items, as a Dataset must
        batch_sampler=sampler,
        collate_fn=partial(collate, text),
        num_workers=workers,
    )
    return loader, sampler


def inference_batches(
    text: EncodedText, *, batch_size: int, windows: IntArray | None = None, subwords: int | None = None
) -> Iterator[TokenBatch]:
    """Every window once, the longest first, so that running out of memory shows at once.

    ``subwords``: batches of several windows have at most this many, with padding.
    """
    if batch_size < 1:
        raise ConfigError(f"`batch_size` cannot be {batch_size}.", remedy="Give 1 or more.")
    chosen = np.arange(text.windows) if windows is None else windows
    order = chosen[np.argsort(-text.lengths[chosen], kind="stable")]
    at = 0
    while at < len(order):
        longest = int(text.lengths[order[at]])
        size = batch_size if subwords is None else min(batch_size, max(1, subwords // longest))
        yield collate(text, order[at : at + size])
        at += size
