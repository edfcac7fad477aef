"""Sentences held out for choosing the epoch: the share asked for, and no copy of what is trained on."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cfner.corpus.corpus import Corpus
from cfner.corpus.sentence import Sentence, Span
from cfner.errors import ConfigError
from cfner.practice.learn.new_data import NewData


def corpus(copies: list[int]) -> Corpus:
    """Sentences that are repeated so often each."""
    numbers = [number for number, times in enumerate(copies) for _ in range(times)]
    sentences = (Sentence((f"oslo{number}", "rains"), (Span(0, 1, "city"),)) for number in numbers)
    return Corpus("new", tuple(sentences), (), ())


@given(st.lists(st.integers(1, 12), min_size=1, max_size=40), st.floats(0, 0.999))
def test_no_more_than_the_share_is_held_out_and_no_copy(copies: list[int], share: float) -> None:
    made = corpus(copies)
    fresh = NewData.of(made, share)
    assert sorted(s.key for s in (*fresh.train, *fresh.dev)) == sorted(s.key for s in made.train)
    assert fresh.train
    assert len(fresh.dev) <= max(1, round(share * len(made.train)))
    assert not {s.key for s in fresh.train} & {s.key for s in fresh.dev}


def test_sentences_that_differ_are_held_out_to_the_share() -> None:
    fresh = NewData.of(corpus([1] * 200), 0.15)
    assert (len(fresh.train), len(fresh.dev)) == (170, 30)


def test_repeated_sentences_do_not_use_up_what_is_trained_on() -> None:
    fresh = NewData.of(corpus([5] * 40), 0.15)
    assert (len(fresh.train), len(fresh.dev)) == (170, 30)
    assert not NewData.of(corpus([10] * 4), 0.15).dev  # none of them fits


@pytest.mark.parametrize("share", [-0.1, 1.0, 7.0, math.inf, math.nan])
def test_a_share_that_makes_no_sense_is_refused(share: float) -> None:
    with pytest.raises(ConfigError, match="must be at least 0"):
        NewData.of(corpus([1] * 30), share)
