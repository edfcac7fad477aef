"""Words to subwords. A sentence longer than the encoder's limit becomes overlapping windows; no word is lost.

Every word is *owned* by exactly one window, the one in which it has most context on both sides, so each
word is trained on once per epoch and predicted once. A word is named by its **TokenRef**: its position
in the concatenation of all sentences of the data set. Labels, teacher scores, neighbours and the score
bank are arrays indexed by it, so batches may be shuffled at will.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cfner.corpus.sentence import Sentence
from cfner.errors import EncoderError

TokenRef: TypeAlias = int
IntArray: TypeAlias = npt.NDArray[np.int64]

_SENTENCES_AT_A_TIME = 2048


@dataclass(frozen=True)
class EncodedText:
    """All windows of a data set as flat arrays (``bounds[i]:bounds[i + 1]`` is the i-th group)."""

    input_ids: npt.NDArray[np.int32]  # [subwords], window after window, special tokens included
    window_bounds: IntArray  # [windows + 1] into input_ids
    word_positions: npt.NDArray[np.int32]  # [words] place of an owned word's first subword in its window
    word_refs: IntArray  # [words] its TokenRef, window after window
    word_bounds: IntArray  # [windows + 1] into word_positions and word_refs
    sentence_bounds: IntArray  # [sentences + 1]: TokenRefs of a sentence
    subword_refs: IntArray  # [subwords] TokenRef of the word that a subword is of; -1: a special token
    pad_id: int
    mask_id: int  # the subword id that replaces a masked word
    shortened_words: int  # words with more subwords than a window holds: the encoder does not see their tail

    @property
    def windows(self) -> int:
        return len(self.window_bounds) - 1

    @property
    def words(self) -> int:
        return len(self.word_refs)

    @property
    def lengths(self) -> IntArray:
        return np.diff(self.window_bounds)

    def locate(self, ref: TokenRef) -> tuple[int, int]:
        """(sentence, word) of a TokenRef."""
        sentence = int(np.searchsorted(self.sentence_bounds, ref, side="right")) - 1
        return sentence, int(ref - self.sentence_bounds[sentence])

    def masked(self, words: npt.NDArray[np.bool_]) -> EncodedText:
        """The same windows with every subword of these words ``[words]`` masked, by TokenRef."""
        hidden = (self.subword_refs >= 0) & words[self.subword_refs]
        ids = np.where(hidden, self.mask_id, self.input_ids).astype(np.int32)
        return replace(self, input_ids=ids)

    def window_of_refs(self) -> IntArray:
        """[words] the window that owns each TokenRef."""
        owner = np.empty(self.words, dtype=np.int64)
        owner[self.word_refs] = np.repeat(np.arange(self.windows), np.diff(self.word_bounds))
        return owner


def special_tokens(tokenizer: Any) -> tuple[list[int], list[int]]:
    """The ids that the tokenizer puts before and after a sequence, read off the tokenizer itself."""
    inner = tokenizer(["a"], is_split_into_words=True, add_special_tokens=False)["input_ids"]
    outer = tokenizer(["a"], is_split_into_words=True, add_special_tokens=True)["input_ids"]
    for start in range(len(outer) - len(inner) + 1):
        if outer[start : start + len(inner)] == inner:
            return outer[:start], outer[start + len(inner) :]
    raise EncoderError(
        f"The tokenizer {type(tokenizer).__name__} changes a word when it adds special tokens.",
        remedy="Use an encoder with a fast tokenizer from the tokenizers library.",
    )


def encode(
    sentences: Sequence[Sentence], tokenizer: Any, *, max_length: int, overlap: int | None = None
) -> EncodedText:
    """Encode sentences for an encoder that reads ``max_length`` subwords, special tokens included.

    ``overlap``: how many subwords neighbouring windows of a long sentence share (default: a quarter).
    """
    prefix, suffix = special_tokens(tokenizer)
    capacity = max_length - len(prefix) - len(suffix)
    if capacity < 1:
        raise EncoderError(
            f"max_length {max_length} leaves no room for words beside "
            f"{len(prefix) + len(suffix)} special tokens.",
            remedy="Set a larger max_length.",
        )
    shared = min(capacity // 4 if overlap is None else overlap, capacity - 1)
    parts: list[npt.NDArray[np.int32]] = []
    positions: list[npt.NDArray[np.int32]] = []
    refs: list[IntArray] = []
    words_of: list[IntArray] = []
    sentence_bounds = np.concatenate([[0], np.cumsum([len(s) for s in sentences], dtype=np.int64)])
    shortened = 0
    head, tail = np.array(prefix, dtype=np.int32), np.array(suffix, dtype=np.int32)
    around = np.full(len(head), -1), np.full(len(tail), -1)
    for index, (all_ids, all_starts) in enumerate(_subwords(sentences, tokenizer)):
        ids, starts, cut = _shorten_giants(all_ids, all_starts, capacity)
        shortened += cut
        first_ref = int(sentence_bounds[index])
        for begin, end, own_from, own_to in _windows(starts, capacity, shared):
            parts.append(np.concatenate([head, ids[starts[begin] : starts[end]], tail]))
            positions.append((starts[own_from:own_to] - starts[begin] + len(prefix)).astype(np.int32))
            refs.append(np.arange(first_ref + own_from, first_ref + own_to, dtype=np.int64))
            read = np.repeat(np.arange(first_ref + begin, first_ref + end), np.diff(starts[begin : end + 1]))
            words_of.append(np.concatenate([around[0], read, around[1]]))
    return EncodedText(
        input_ids=np.concatenate(parts) if parts else np.empty(0, np.int32),
        window_bounds=_bounds(parts),
        word_positions=np.concatenate(positions) if positions else np.empty(0, np.int32),
        word_refs=np.concatenate(refs) if refs else np.empty(0, np.int64),
        word_bounds=_bounds(refs),
        sentence_bounds=sentence_bounds,
        subword_refs=np.concatenate(words_of) if words_of else np.empty(0, np.int64),
        mask_id=_mask_id(tokenizer),
        pad_id=tokenizer.pad_token_id if tokenizer.pad_token_id is not None else 0,
        shortened_words=shortened,
    )


def _mask_id(tokenizer: Any) -> int:
    """The tokenizer's mask; its unknown token, or padding, if it has none."""
    known = (tokenizer.mask_token_id, tokenizer.unk_token_id, tokenizer.pad_token_id)
    return int(next((number for number in known if number is not None), 0))


def _bounds(groups: Sequence[npt.NDArray[Any]]) -> IntArray:
    return np.concatenate([[0], np.cumsum([len(group) for group in groups], dtype=np.int64)])


def _subwords(sentences: Sequence[Sentence], tokenizer: Any) -> Any:
    """Yield, per sentence, its subword ids and [words + 1] where each word's subwords start."""
    unknown = tokenizer.unk_token_id
    for at in range(0, len(sentences), _SENTENCES_AT_A_TIME):
        chunk = sentences[at : at + _SENTENCES_AT_A_TIME]
        encoded = tokenizer(
            [list(sentence.words) for sentence in chunk],
            is_split_into_words=True,
            add_special_tokens=False,
            truncation=False,
            return_attention_mask=False,
            return_token_type_ids=False,
            verbose=False,
        )
        for row, sentence in enumerate(chunk):
            ids = np.array(encoded["input_ids"][row], dtype=np.int32)
            word_of = np.array(encoded.word_ids(row), dtype=np.int64)
            # a word the tokenizer strips to nothing (a zero-width space) still needs one subword
            missing = np.setdiff1d(np.arange(len(sentence)), word_of)
            if len(missing):
                if unknown is None:
                    raise EncoderError(
                        f"The tokenizer gives no subword for {sentence.words[missing[0]]!r} "
                        "and has no unknown token.",
                        where=sentence.source,
                        remedy="Remove the word or use a different encoder.",
                    )
                at_subword = np.searchsorted(word_of, missing)
                ids = np.insert(ids, at_subword, unknown).astype(np.int32)
                word_of = np.insert(word_of, at_subword, missing)
            yield ids, np.searchsorted(word_of, np.arange(len(sentence) + 1))


def _shorten_giants(
    ids: npt.NDArray[np.int32], starts: IntArray, capacity: int
) -> tuple[npt.NDArray[np.int32], IntArray, int]:
    """Cut words that do not fit one window (a pasted key, a URL of thousands of characters)."""
    sizes = np.diff(starts)
    giants = int((sizes > capacity).sum())
    if not giants:
        return ids, starts, 0
    kept = np.minimum(sizes, capacity)
    within = np.arange(len(ids)) - np.repeat(starts[:-1], sizes)
    ids = ids[within < np.repeat(kept, sizes)]
    return ids, np.concatenate([[0], np.cumsum(kept)]), giants


def _windows(starts: IntArray, capacity: int, shared: int) -> list[tuple[int, int, int, int]]:
    """(first word, end word, first owned, end owned) of each window over one sentence."""
    words = len(starts) - 1
    if words == 0:
        return []
    reaches: list[tuple[int, int]] = []
    begin = 0
    while True:
        end = int(np.searchsorted(starts, starts[begin] + capacity, side="right")) - 1
        reaches.append((begin, end))
        if end >= words:
            break
        # the next window starts `shared` subwords before this one ends, and always moves on
        begin = min(max(int(np.searchsorted(starts, starts[end] - shared)), begin + 1), end)
    # between two windows that overlap, ownership changes in the middle of what they share
    borders = [0]
    borders += [(following[0] + window[1] + 1) // 2 for window, following in itertools.pairwise(reaches)]
    borders.append(words)
    return [(*reach, borders[i], borders[i + 1]) for i, reach in enumerate(reaches)]
