"""Words to subwords: every word comes out once, whatever the sentence's length and the encoder's limit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cfner.batches.encoding import EncodedText, _windows, encode, special_tokens
from cfner.corpus.sentence import Sentence
from cfner.errors import EncoderError, MissingExtraError
from cfner.store.pretrained import _load_tokenizer, resolve

ZERO_WIDTH_SPACE = "\u200b"

relaxed = settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
words = st.one_of(
    st.sampled_from(["the", "Boston", "[SEP]", "[CLS]", "[PAD]", ZERO_WIDTH_SPACE, "a" * 40, "3.5%"]),
    st.text(st.characters(exclude_categories=["Z", "Cs", "Cc"]), min_size=1, max_size=12),
)
sentences = st.lists(st.lists(words, max_size=50).map(lambda chosen: Sentence(tuple(chosen))), max_size=5)


@pytest.fixture(scope="module")
def tokenizer(tiny_encoder: Path) -> Any:
    return _load_tokenizer(tiny_encoder)


def plain(words: list[str]) -> list[Sentence]:
    return [Sentence(tuple(words))]


def starts_of(sizes: list[int]) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])


@st.composite
def divisions(draw: st.DrawFn) -> tuple[list[int], int, int]:
    """Subwords per word, how many a window holds, how many neighbours share."""
    capacity = draw(st.integers(1, 40))
    sizes = draw(st.lists(st.integers(1, capacity), max_size=120))
    return sizes, capacity, draw(st.integers(0, capacity - 1))


@settings(deadline=None, max_examples=400)
@given(divisions())
def test_every_word_is_owned_by_exactly_one_window(division: tuple[list[int], int, int]) -> None:
    sizes, capacity, shared = division
    owned = [
        word
        for _, _, first, end in _windows(starts_of(sizes), capacity, shared)
        for word in range(first, end)
    ]
    assert owned == list(range(len(sizes)))


@settings(deadline=None, max_examples=400)
@given(divisions())
def test_a_window_holds_the_words_it_owns_and_no_more_subwords_than_fit(
    division: tuple[list[int], int, int],
) -> None:
    sizes, capacity, shared = division
    starts = starts_of(sizes)
    for begin, end, first, last in _windows(starts, capacity, shared):
        assert begin <= first <= last <= end
        assert 0 < starts[end] - starts[begin] <= capacity


@settings(deadline=None, max_examples=200)
@given(st.integers(1, 200), st.integers(4, 40), st.data())
def test_an_owned_word_has_context_on_both_sides(words: int, capacity: int, data: st.DataObject) -> None:
    """With words of one subword each: half the overlap at least, towards every inner edge."""
    shared = data.draw(st.integers(0, capacity - 1))
    found = _windows(starts_of([1] * words), capacity, shared)
    for index, (begin, end, first, last) in enumerate(found):
        if index and last > first:
            assert first - begin >= shared // 2
        if index + 1 < len(found) and last > first:
            assert end - last >= shared // 2


def owners(text: EncodedText) -> list[int]:
    return sorted(text.word_refs.tolist())


@relaxed
@given(sentences, st.integers(3, 64), st.one_of(st.none(), st.integers(0, 80)))
def test_as_many_words_come_out_as_went_in(
    tokenizer: Any, sentences: list[Sentence], max_length: int, overlap: int | None
) -> None:
    text = encode(sentences, tokenizer, max_length=max_length, overlap=overlap)
    assert owners(text) == list(range(sum(len(sentence) for sentence in sentences)))
    assert text.lengths.max(initial=0) <= max_length
    assert np.diff(text.sentence_bounds).tolist() == [len(sentence) for sentence in sentences]
    assert (text.word_positions >= 1).all()  # never on [CLS]
    lengths_of_words = np.repeat(text.lengths, np.diff(text.word_bounds))
    assert (text.word_positions < lengths_of_words - 1).all()  # never on [SEP]


@settings(deadline=None, max_examples=20)
@given(sentences, st.integers(3, 128))
def test_the_same_with_the_embedded_encoder(sentences: list[Sentence], max_length: int) -> None:
    try:
        source = resolve("minilm")
    except MissingExtraError:
        pytest.skip("the extra 'demo' is not installed")
    text = encode(sentences, _load_tokenizer(Path(source)), max_length=max_length)
    assert owners(text) == list(range(sum(len(sentence) for sentence in sentences)))
    assert text.lengths.max(initial=0) <= max_length


@relaxed
@given(st.lists(words, min_size=1, max_size=12))
def test_a_word_stands_where_its_first_subword_stands(tokenizer: Any, words: list[str]) -> None:
    text = encode(plain(words), tokenizer, max_length=10_000)
    alone = [
        tokenizer([word], is_split_into_words=True, add_special_tokens=False)["input_ids"] for word in words
    ]
    expected = [(ids or [tokenizer.unk_token_id])[0] for ids in alone]
    assert text.input_ids[text.word_positions].tolist() == expected


@relaxed
@given(sentences)
def test_locate_names_sentence_and_word_of_a_ref(tokenizer: Any, sentences: list[Sentence]) -> None:
    text = encode(sentences, tokenizer, max_length=16)
    places = [(i, j) for i, sentence in enumerate(sentences) for j in range(len(sentence))]
    assert [text.locate(ref) for ref in range(text.words)] == places


def test_the_owner_of_a_ref_is_the_window_that_holds_it(tokenizer: Any) -> None:
    text = encode(plain(["the"] * 100), tokenizer, max_length=16)
    owner = text.window_of_refs()
    for window in range(text.windows):
        refs = text.word_refs[text.word_bounds[window] : text.word_bounds[window + 1]]
        assert (owner[refs] == window).all()


def test_a_word_without_subwords_gets_the_unknown_token(tokenizer: Any) -> None:
    text = encode(plain(["the", ZERO_WIDTH_SPACE, "in"]), tokenizer, max_length=16)
    assert text.words == 3
    assert text.input_ids[text.word_positions[1]] == tokenizer.unk_token_id


def test_a_giant_word_is_shortened_and_counted(tokenizer: Any) -> None:
    text = encode(plain(["the", "x" * 90, "y" * 95, "in"]), tokenizer, max_length=32)
    assert (text.words, text.shortened_words) == (4, 2)
    assert text.lengths.max() <= 32


def test_a_word_that_just_fits_is_not_counted_as_shortened(tokenizer: Any) -> None:
    assert encode(plain(["x" * 30]), tokenizer, max_length=32).shortened_words == 0


@pytest.mark.parametrize("word", ["[SEP]", "[CLS]", "[PAD]", "[MASK]"])
def test_a_special_token_in_the_text_is_read_as_text(tokenizer: Any, word: str) -> None:
    text = encode(plain(["the", word, "in"]), tokenizer, max_length=32)
    inside = text.input_ids[1:-1]  # between the two that the encoder itself puts there
    assert tokenizer.convert_tokens_to_ids(word) not in inside.tolist()


def test_an_empty_text_has_no_windows(tokenizer: Any) -> None:
    text = encode([Sentence(())], tokenizer, max_length=16)
    assert (text.windows, text.words, len(text.input_ids)) == (0, 0, 0)


def test_special_tokens_are_learned_from_the_tokenizer(tokenizer: Any) -> None:
    assert special_tokens(tokenizer) == ([tokenizer.cls_token_id], [tokenizer.sep_token_id])


def test_a_length_without_room_for_words_is_refused(tokenizer: Any) -> None:
    with pytest.raises(EncoderError, match="leaves no room"):
        encode(plain(["the"]), tokenizer, max_length=2)
