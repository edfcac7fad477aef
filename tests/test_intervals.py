"""Counts per sentence are those of the metrics; intervals are those of a plain bootstrap over sentences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfner.corpus.sentence import Span
from cfner.evaluation import intervals
from cfner.evaluation.intervals import (
    f1_of,
    interval,
    precision_of,
    recall_of,
    resampled,
    sentence_counts,
)
from cfner.evaluation.metrics import score

TYPES = ("animal", "city")

spans = st.lists(
    st.builds(
        lambda a, n, t: Span(a, a + n, t), st.integers(0, 6), st.integers(1, 2), st.sampled_from(TYPES)
    ),
    max_size=3,
    unique=True,
)


@settings(max_examples=60)
@given(st.lists(st.tuples(spans, spans), min_size=1, max_size=12))
def test_sums_of_the_counts_give_the_figures_of_the_metrics(
    rows: list[tuple[list[Span], list[Span]]],
) -> None:
    gold, predicted = [one for one, _ in rows], [other for _, other in rows]
    total = sentence_counts(gold, predicted, TYPES).sum(0)
    expected = score(gold, predicted, TYPES).counts
    for index, type_ in enumerate(TYPES):
        assert f1_of(total)[index] == pytest.approx(expected[type_].f1)
        assert precision_of(total)[index] == pytest.approx(expected[type_].precision)
        assert recall_of(total)[index] == pytest.approx(expected[type_].recall)


def test_other_types_do_not_count() -> None:
    assert not sentence_counts([[Span(0, 1, "dish")]], [[Span(0, 1, "dish")]], TYPES).any()


def _some_counts(sentences: int) -> intervals.Floats:
    """[S, 1, 3]: two of three mentions are found; most sentences hold none."""
    gold = [[Span(0, 1, "city")] if i % 3 == 0 else [] for i in range(sentences)]
    predicted = [[Span(i % 9 // 6, 1 + i % 9 // 6, "city")] if spans else [] for i, spans in enumerate(gold)]
    return sentence_counts(gold, predicted, ("city",))


def test_the_interval_is_that_of_a_plain_bootstrap() -> None:
    counts = _some_counts(120)
    random = np.random.default_rng(7)
    plain = [f1_of(counts[random.integers(0, 120, 120)].sum(0))[0] for _ in range(4000)]
    got = interval(f1_of(counts.sum(0))[0], f1_of(resampled(counts, seed=0))[:, 0])
    low, high = np.percentile(plain, [2.5, 97.5])
    assert got.value == pytest.approx(100 * 2 / 3, abs=2)
    assert (got.low, got.high) == (pytest.approx(low, abs=2), pytest.approx(high, abs=2))


def test_draws_depend_on_the_seed_alone_not_on_how_many_are_held_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts = _some_counts(60)
    complete = resampled(counts, seed=3)
    assert not np.array_equal(complete, resampled(counts, seed=4), equal_nan=True)
    monkeypatch.setattr(intervals, "_CELLS", 5000)
    np.testing.assert_array_equal(complete, resampled(counts, seed=3))


def test_a_draw_without_a_mention_says_nothing() -> None:
    counts = np.zeros((50, 1, 3))
    counts[0] = 1  # one sentence with one mention, found
    drawn = f1_of(resampled(counts, seed=0))
    assert np.isnan(drawn).mean() == pytest.approx((1 - 1 / 50) ** 50, abs=0.05)
    assert interval(100.0, drawn) == (100, 100, 100)
