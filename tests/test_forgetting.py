"""The step x type matrix against plain arithmetic on random counts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfner.errors import StreamError
from cfner.evaluation.forgetting import StepMatrix, mean_and_std
from cfner.evaluation.scores import Counts, Scores


@st.composite
def matrices(draw: st.DrawFn) -> tuple[StepMatrix, list[list[str]]]:
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=5))
    groups = [[f"T{step}{i}" for i in range(size)] for step, size in enumerate(sizes)]
    matrix = StepMatrix()
    for step in range(len(groups)):
        types = tuple(type_ for group in groups[: step + 1] for type_ in group)
        counts = {}
        for type_ in types:
            n_gold, n_predicted = draw(st.integers(0, 9)), draw(st.integers(0, 9))
            counts[type_] = Counts(draw(st.integers(0, min(n_gold, n_predicted))), n_gold, n_predicted)
        matrix = matrix.with_step(Scores(types, counts))
    return matrix, groups


@settings(deadline=None, max_examples=150)
@given(matrices())
def test_what_follows_from_the_matrix(drawn):
    matrix, groups = drawn
    last = len(groups) - 1
    f1 = np.full((len(groups), len(matrix.types)), np.nan)
    for row, scores in enumerate(matrix.steps):
        for column, type_ in enumerate(matrix.types):
            if type_ in scores.types:
                f1[row, column] = scores.counts[type_].f1
    for row, by_type in enumerate(matrix.per_type):
        ours = [math.nan if by_type[type_] is None else by_type[type_] for type_ in matrix.types]
        np.testing.assert_array_equal(ours, f1[row])
    assert matrix.types == tuple(type_ for group in groups for type_ in group)
    assert matrix.mean_macro == pytest.approx(np.mean([np.nanmean(row) for row in f1]))
    assert matrix.mean_micro == pytest.approx(np.mean([scores.micro_f1 for scores in matrix.steps]))
    assert matrix.last_macro == pytest.approx(np.nanmean(f1[-1]))
    assert matrix.last_micro == matrix.steps[-1].micro_f1

    lost = []
    for column, type_ in enumerate(matrix.types):
        if type_ in groups[last] or not matrix.steps[last].counts[type_].n_gold:
            assert matrix.forgetting[type_] is None
        else:
            lost.append(np.nanmax(f1[:last, column]) - f1[last, column])
            assert matrix.forgetting[type_] == pytest.approx(lost[-1])
    if lost:
        assert matrix.mean_forgetting == pytest.approx(np.mean(lost))
    else:
        assert matrix.mean_forgetting is None


def test_no_step_yet():
    empty = StepMatrix()
    assert (empty.types, empty.forgetting, empty.mean_forgetting) == ((), {}, None)
    with pytest.raises(StreamError, match="No step has been scored"):
        _ = empty.mean_micro


def test_a_type_cannot_vanish():
    with pytest.raises(StreamError, match="step 2 lack the type 'A'"):
        StepMatrix().with_step(Scores(("A",), {"A": Counts(1, 1, 1)})).with_step(Scores((), {}))


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(0, 100), min_size=1, max_size=8))
def test_mean_and_sample_deviation(values):
    mean, std = mean_and_std(values)
    assert mean == pytest.approx(np.mean(values))
    if len(values) == 1:
        assert std is None
    else:
        assert std == pytest.approx(np.std(values, ddof=1), abs=1e-9)


def test_no_value_has_no_mean():
    with pytest.raises(ValueError, match="at least one"):
        mean_and_std([])
