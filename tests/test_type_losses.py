"""What each type lost, against a slow computation from the counts, and on examples worked out by hand."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfner.evaluation.forgetting import StepMatrix
from cfner.evaluation.scores import Counts, Scores
from cfner.evaluation.type_losses import TypeLosses, WorstType

MENTIONS = st.sampled_from([0, 1, 29, 30, 31, 99, 100, 101, 400])  # around the two limits


@st.composite
def matrices(draw: st.DrawFn) -> StepMatrix:
    """Types join step by step; the test data mentions a type as often in every step."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=5))
    mentions: dict[str, int] = {}
    steps = []
    for step, size in enumerate(sizes):
        mentions |= {f"T{step}{i}": draw(MENTIONS) for i in range(size)}
        counts = {}
        for type_, n_gold in mentions.items():
            n_predicted = draw(st.integers(0, 400))
            counts[type_] = Counts(draw(st.integers(0, min(n_gold, n_predicted))), n_gold, n_predicted)
        steps.append(Scores(tuple(mentions), counts))
    return StepMatrix(tuple(steps))


def slow(matrix: StepMatrix, least: int) -> list[tuple[str, float, float, bool]]:
    """(type, F1 when learned, F1 at the end, learned before the last step) of types mentioned that often."""
    found = []
    for type_ in matrix.types:
        course = [scores.counts[type_] for scores in matrix.steps if type_ in scores.types]
        if course[-1].n_gold >= max(least, 1):
            f1 = [200 * c.tp / (c.n_gold + c.n_predicted) for c in course]
            found.append((type_, f1[0], f1[-1], len(course) > 1))
    return found


@settings(deadline=None, max_examples=150)
@given(matrices(), st.sampled_from([0, 1, 30, 100, 1000]))
def test_means_and_the_worst_type_are_those_of_a_slow_computation(matrix: StepMatrix, least: int) -> None:
    losses, every = matrix.losses, slow(matrix, least)
    old = [(type_, when, end) for type_, when, end, earlier in every if earlier]
    assert losses.last_macro(least) == mean_of([end for _, _, end, _ in every])
    assert losses.mean_when_learned(least) == mean_of([when for _, when, _ in old])
    assert losses.mean_at_the_end(least) == mean_of([end for _, _, end in old])
    assert losses.mean_lost(least) == mean_of([when - end for _, when, end in old])
    worst = losses.worst_type(least)
    if not old:
        assert worst is None
    else:
        assert worst is not None and worst.lost == pytest.approx(max(when - end for _, when, end in old))
        assert worst.lost == losses.lost[worst.type] and losses.mentions[worst.type] >= least


def mean_of(values: list[float]) -> object:
    return pytest.approx(statistics.fmean(values)) if values else None


@settings(deadline=None, max_examples=150)
@given(matrices())
def test_lost_is_when_learned_less_at_the_end(matrix: StepMatrix) -> None:
    losses, forgetting = matrix.losses, matrix.forgetting
    assert tuple(losses.lost) == matrix.types == tuple(losses.when_learned) == tuple(losses.at_the_end)
    for type_, lost in losses.lost.items():
        when, end = losses.when_learned[type_], losses.at_the_end[type_]
        assert (when is None) == (end is None) == (losses.mentions[type_] == 0)
        assert (lost is None) == (forgetting[type_] is None)  # the same types can lose something
        if lost is not None:
            assert when is not None and end is not None and lost == when - end
            assert lost <= forgetting[type_] + 1e-9  # the best earlier F1 is at least the first
        elif when is not None:
            assert when == end  # learned in the last step
    if (mean := losses.mean_lost()) is not None:
        assert losses.mean_when_learned() - losses.mean_at_the_end() == pytest.approx(mean)


@settings(deadline=None, max_examples=50)
@given(matrices())
def test_results_hold_the_figures_and_the_mentions(matrix: StepMatrix) -> None:
    written, losses = matrix.to_json(), matrix.losses
    assert written["steps"][-1]["mentions"] == losses.mentions
    assert (written["lost"], written["mean_lost"]) == (losses.lost, losses.mean_lost(30))
    assert written["last_macro_f1_30"] == losses.last_macro(30)
    for key, least in (("worst_type", 100), ("worst_type_30", 30)):
        worst = losses.worst_type(least)
        assert written[key] == (None if worst is None else {"type": worst.type, "lost": worst.lost})
    if all(count >= 30 for count in losses.mentions.values()):
        assert written["last_macro_f1_30"] == pytest.approx(matrix.last_macro)


def test_an_example_by_hand() -> None:
    def scores(**found: int) -> Scores:  # as many predicted as in the gold, so that F1 is the share found
        gold = {"CITY": 200, "DATE": 40, "RARE": 20, "NEW": 100}
        return Scores(tuple(found), {t: Counts(n, gold[t], gold[t]) for t, n in found.items()})

    losses = StepMatrix(
        (
            scores(CITY=160, DATE=30, RARE=20),
            scores(CITY=180, DATE=20, RARE=2),
            scores(CITY=100, DATE=10, RARE=0, NEW=70),
        )
    ).losses
    assert losses.when_learned == {"CITY": 80, "DATE": 75, "RARE": 100, "NEW": 70}
    assert losses.at_the_end == {"CITY": 50, "DATE": 25, "RARE": 0, "NEW": 70}
    assert losses.lost == {"CITY": 30, "DATE": 50, "RARE": 100, "NEW": None}
    assert (losses.mean_when_learned(), losses.mean_at_the_end(), losses.mean_lost()) == (77.5, 37.5, 40)
    assert losses.last_macro() == pytest.approx((50 + 25 + 70) / 3)
    assert losses.worst_type() == WorstType("CITY", 30)
    assert losses.worst_type(30) == WorstType("DATE", 50)


def test_before_the_first_step_there_is_nothing_to_lose() -> None:
    empty = StepMatrix().losses
    assert empty == TypeLosses({}, {}, {}, {})
    assert (empty.last_macro(), empty.mean_lost(), empty.worst_type()) == (None, None, None)


def test_steps_with_equal_scores_are_still_different_steps() -> None:
    same = Scores(("A",), {"A": Counts(10, 100, 100)})
    assert StepMatrix((same, same)).losses.lost == {"A": 0}
    assert StepMatrix((same,)).losses.lost == {"A": None}
