"""The adaptive weight and the curriculum, against the oracle."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from cfner.errors import ConfigError
from cfner.objective.schedules import Curriculum, adaptive_weight

unit = st.floats(0, 1)


@given(st.integers(1, 40), unit, unit, st.integers(1, 20))
@settings(deadline=None)
def test_threshold_is_the_oracles(epoch: int, a: float, b: float, m: int) -> None:
    curriculum = Curriculum(max(a, b), min(a, b), m)
    assert curriculum.threshold(epoch) == pytest.approx(
        oracle.curriculum_delta(epoch, max(a, b), min(a, b), m), abs=1e-12
    )


@given(unit, unit, st.integers(2, 20))
@settings(deadline=None)
def test_threshold_falls_from_delta_1_to_delta_m_and_stays(a: float, b: float, m: int) -> None:
    curriculum = Curriculum(max(a, b), min(a, b), m)
    values = [curriculum.threshold(epoch) for epoch in range(1, m + 5)]
    assert values[0] == curriculum.delta_1
    assert all(earlier >= later - 1e-15 for earlier, later in itertools.pairwise(values))
    assert all(value == curriculum.delta_m for value in values[m - 1 :])


def test_paper_values_of_the_curriculum() -> None:
    """delta_1 = 1, delta_m = 0, m = 10: a ninth less each epoch, and nothing is selected in the first."""
    curriculum = Curriculum()
    assert [curriculum.threshold(i) for i in (1, 4, 10, 20)] == pytest.approx([1, 2 / 3, 0, 0])


def test_m_of_1_means_delta_m_at_once() -> None:
    assert Curriculum(1.0, 0.25, 1).threshold(1) == 0.25


@pytest.mark.parametrize(
    ("delta_1", "delta_m", "m"),
    [(0.2, 0.8, 5), (1.5, 0.0, 5), (1.0, -0.1, 5), (1.0, 0.0, 0), (math.nan, 0, 3)],
)
def test_impossible_curricula_are_refused(delta_1: float, delta_m: float, m: int) -> None:
    with pytest.raises(ConfigError):
        Curriculum(delta_1, delta_m, m)


@given(st.floats(0, 100), st.integers(0, 50), st.integers(1, 50))
@settings(deadline=None)
def test_adaptive_weight_is_the_oracles(base: float, old: int, new: int) -> None:
    assert adaptive_weight(base, old, new) == pytest.approx(oracle.adaptive_weight(base, old, new), abs=1e-12)


def test_more_to_keep_weighs_more() -> None:
    weights = [adaptive_weight(2.0, old, 1) for old in range(6)]
    assert weights == sorted(weights)
    assert adaptive_weight(2.0, 4, 1) == 4.0
