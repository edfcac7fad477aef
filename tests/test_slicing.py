"""Algorithm 1 against a plain transcription, and what holds for any sampling."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfner.corpus.sentence import Sentence, Span
from cfner.errors import ConfigError, StreamError
from cfner.stream.slicing import greedy_slices, quotas, slices_by

GROUPS = st.sampled_from(
    [
        (("A",),),
        (("A",), ("B",)),
        (("A", "B"), ("C",), ("D",)),
        (("D", "B"), ("A", "C")),
        (("C",), ("A",), ("B",)),
    ]
)


@st.composite
def sentence_lists(draw: st.DrawFn) -> list[Sentence]:
    # "Z" belongs to no group: a dropped type.
    per_sentence = draw(st.lists(st.lists(st.sampled_from("ABCDZ"), max_size=4), max_size=60))
    return [
        Sentence(
            tuple(f"w{number}" for _ in range(4)),
            tuple(Span(i, i + 1, type_) for i, type_ in enumerate(types)),
        )
        for number, types in enumerate(per_sentence)
    ]


def transcribed_algorithm_1(data: list[Sentence], groups: tuple[tuple[str, ...], ...], seed: int):
    """The paper's pseudocode, line by line; n_j rounded down, and no slice left means leftover."""
    rng = random.Random(seed)
    slices: list[list[int]] = [[] for _ in groups]
    cnt = [0 for _ in groups]
    entities = [e for group in groups for e in group]
    n = [int(len(data) * len(group) / len(entities) + 1e-9) for group in groups]
    frequency = {e: sum(span.type == e for s in data for span in s.spans) for e in entities}
    entities.sort(key=lambda e: frequency[e])
    leftover = []
    for i, sentence in enumerate(data):
        is_select = False
        for e in entities:
            if e not in [span.type for span in sentence.spans]:
                continue
            (j,) = [j for j, group in enumerate(groups) if e in group]
            if cnt[j] < n[j]:
                slices[j].append(i)
                cnt[j] += 1
                is_select = True
                break
        if not is_select:
            incomplete = [j for j in range(len(groups)) if cnt[j] < n[j]]
            if not incomplete:
                leftover.append(i)
                continue
            j = incomplete[int(rng.random() * len(incomplete))]
            slices[j].append(i)
            cnt[j] += 1
    return slices, leftover


@settings(deadline=None, max_examples=200)
@given(sentence_lists(), GROUPS, st.integers(0, 5))
def test_greedy_is_algorithm_1(data, groups, seed):
    slices, leftover = transcribed_algorithm_1(data, groups, seed)
    result = greedy_slices(data, groups, seed)
    assert [list(part) for part in result.parts] == slices
    assert list(result.leftover) == leftover


@settings(deadline=None, max_examples=150)
@given(sentence_lists(), GROUPS, st.integers(0, 5), st.sampled_from(["greedy", "random"]))
def test_every_sentence_goes_to_one_place(data, groups, seed, sampling):
    result = slices_by(sampling, data, groups, seed)
    placed = [i for part in result.parts for i in part]
    assert sorted([*placed, *result.leftover]) == list(range(len(data)))
    assert [len(part) for part in result.parts] == quotas(len(data), groups)
    assert len(result.leftover) < len(groups)
    assert all(list(part) == sorted(part) for part in result.parts)
    assert result == slices_by(sampling, data, groups, seed)


def many(count: int) -> list[Sentence]:
    return [Sentence((f"w{i}",), (Span(0, 1, "ABCD"[i % 4]),) if i % 3 else ()) for i in range(count)]


@pytest.mark.parametrize("sampling", ["greedy", "random"])
def test_the_seed_matters(sampling):
    groups = (("A", "B"), ("C",), ("D",))
    assert slices_by(sampling, many(90), groups, 0) != slices_by(sampling, many(90), groups, 1)


def test_splits_stay_the_same_for_ever():
    """Known answers: a change here would silently change everybody's splits."""
    groups = (("A",), ("B", "C"))
    assert greedy_slices(many(12), groups, 7).parts == ((0, 3, 4, 7), (1, 2, 5, 6, 8, 9, 10, 11))
    assert slices_by("random", many(12), groups, 7).parts == ((3, 6, 8, 10), (0, 1, 2, 4, 5, 7, 9, 11))


def test_greedy_puts_mentions_where_they_are_learned():
    data = [Sentence((f"w{i}",), (Span(0, 1, "AB"[i % 2]),)) for i in range(100)]
    result = greedy_slices(data, (("A",), ("B",)), 0)
    assert result.parts == (tuple(range(0, 100, 2)), tuple(range(1, 100, 2)))


@pytest.mark.parametrize("sampling", ["greedy", "random"])
def test_bad_groups_and_seeds_are_refused(sampling):
    with pytest.raises(StreamError, match="'A' is to be learned twice"):
        slices_by(sampling, many(4), (("A",), ("A", "B")), 0)
    with pytest.raises(StreamError, match="no types to learn"):
        slices_by(sampling, many(4), (), 0)
    with pytest.raises(ConfigError, match="seed"):
        slices_by(sampling, many(4), (("A",),), -1)


def test_an_unknown_sampling_names_the_nearest():
    with pytest.raises(ConfigError, match="Did you mean 'greedy'"):
        slices_by("gredy", many(4), (("A",),), 0)
