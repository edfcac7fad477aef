"""The guard refuses what is surely forgotten, passes what is surely kept, and says when it cannot tell."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfner.corpus.sentence import Sentence, Span
from cfner.evaluation.metrics import score
from cfner.practice.learn import guard as module
from cfner.practice.learn.agreement import agreement
from cfner.practice.learn.guard import GuardReport, guard

TYPES = ("animal", "city")


def sentences(count: int, types: tuple[str, ...] = TYPES) -> list[Sentence]:
    words = ("the", "heron", "of", "oslo")
    spans = tuple(Span(1 + 2 * i, 2 + 2 * i, t) for i, t in enumerate(types))
    return [Sentence(words, spans) for _ in range(count)]


def losing(data: list[Sentence], type_: str, share: float, seed: int = 0) -> list[tuple[Span, ...]]:
    """Perfect predictions, but for a share of one type's mentions."""
    draw = random.Random(seed)
    return [tuple(span for span in s.spans if span.type != type_ or draw.random() >= share) for s in data]


def verdicts(report: GuardReport) -> dict[str, str]:
    return {row.type: row.verdict for row in report.types}


def test_a_ruined_type_is_forgotten_and_the_other_kept() -> None:
    data = sentences(100)
    report = guard(data, losing(data, "city", 0), losing(data, "city", 0.6), TYPES)
    assert verdicts(report) == {"animal": "kept", "city": "forgotten"}
    assert report.refused and report.forgotten == ("city",)


def test_the_whole_interval_must_lie_beyond_the_limit() -> None:
    """The same predictions, whose loss is certain, and limits below, inside and above its interval."""
    data = sentences(200)
    before, after = losing(data, "city", 0), losing(data, "city", 0.2)

    def judged(limit: float) -> tuple[module.Interval, str]:
        row = next(
            r for r in guard(data, before, after, TYPES, max_forgetting=limit).types if r.type == "city"
        )
        return row.loss, row.verdict

    loss, verdict = judged(0.0)
    assert verdict == "forgotten" and 2 < loss.low < loss.value < loss.high
    assert judged(loss.low - 0.01)[1] == "forgotten"
    assert judged(loss.low + 0.01)[1] == "unclear"
    assert judged(loss.high - 0.01)[1] == "unclear"
    assert judged(loss.high)[1] == "kept"


def test_a_loss_that_is_accepted_does_not_refuse() -> None:
    data = sentences(100)
    report = guard(data, losing(data, "city", 0), losing(data, "city", 0.6), TYPES, accepted=["city"])
    assert verdicts(report)["city"] == "accepted" and not report.refused


def test_few_mentions_are_not_passed_in_silence() -> None:
    data = [*sentences(5), *(Sentence(("a", "word")) for _ in range(50))]
    same = losing(data, "city", 0)
    assert set(verdicts(guard(data, same, same, TYPES)).values()) == {"too few mentions"}


def test_but_losing_all_of_a_few_mentions_is_certain_enough() -> None:
    data = [*sentences(6), *(Sentence(("a", "word")) for _ in range(50))]
    report = guard(data, losing(data, "city", 0), losing(data, "city", 1), TYPES)
    assert verdicts(report)["city"] == "forgotten"


def test_one_lost_mention_proves_nothing() -> None:
    data = [*sentences(1), *(Sentence(("a", "word")) for _ in range(50))]
    report = guard(data, losing(data, "city", 0), losing(data, "city", 1), TYPES)
    assert verdicts(report)["city"] == "too few mentions"


@pytest.mark.parametrize(("holding", "others"), [(6, 400), (3, 97), (2, 2), (1, 60)])
@pytest.mark.parametrize("mentions", [6, 40])
def test_a_type_that_is_lost_is_forgotten_however_its_mentions_lie(
    holding: int, others: int, mentions: int
) -> None:
    data = [*_crowded(holding, mentions), *(Sentence(("a", "word")) for _ in range(others))]
    report = guard(data, losing(data, "city", 0), losing(data, "city", 1), TYPES)
    assert verdicts(report)["city"] == "forgotten"
    assert next(row for row in report.types if row.type == "city").loss == (100, 100, 100)


def _crowded(sentences: int, mentions: int) -> list[Sentence]:
    """Mentions of cities, spread over so many sentences as evenly as can be."""
    sizes = [mentions // sentences + (i < mentions % sentences) for i in range(sentences)]
    return [Sentence(("oslo",) * n, tuple(Span(i, i + 1, "city") for i in range(n))) for n in sizes]


def test_a_type_that_is_suddenly_seen_everywhere_is_forgotten() -> None:
    data = [*_crowded(2, 12), *(Sentence(("a", "word")) for _ in range(60))]
    everywhere = [tuple(Span(i, i + 1, "city") for i in range(len(s))) for s in data]
    assert verdicts(guard(data, losing(data, "city", 0), everywhere, TYPES))["city"] == "forgotten"


def test_a_few_lost_mentions_of_one_sentence_prove_nothing() -> None:
    data = [*_crowded(1, 12), *(Sentence(("a", "word")) for _ in range(60))]
    after = [s.spans[3:] for s in data]
    assert verdicts(guard(data, losing(data, "city", 0), after, TYPES))["city"] == "too few sentences"


def test_a_type_that_was_also_seen_where_it_is_not_can_still_be_lost() -> None:
    """As many wrong predictions are mended as mentions are lost: no more errors than before, and no use."""
    data = [*_crowded(10, 10), *(Sentence(("a", "word")) for _ in range(10))]
    before = [s.spans or (Span(0, 1, "city"),) for s in data]
    report = guard(data, before, [()] * len(data), TYPES)
    assert verdicts(report)["city"] == "forgotten"


def test_losses_of_both_kinds_count_together() -> None:
    data = [*_crowded(20, 20), *(Sentence(("a", "word")) for _ in range(20))]
    after = [*([()] * 4), *([s.spans for s in data[4:20]]), *([(Span(0, 1, "city"),)] * 4), *([()] * 16)]
    report = guard(data, losing(data, "city", 0), after, TYPES)
    assert verdicts(report)["city"] == "forgotten"


def test_another_end_is_one_error() -> None:
    data = _crowded(1, 5)
    after = [tuple(Span(s.start, s.end + 1, s.type) for s in one.spans[:3]) + one.spans[3:] for one in data]
    errors = module._errors([s.spans for s in data], after)["city"]
    assert (len(errors.missed), len(errors.stray)) == (3, 0)


@given(st.integers(0, 60), st.integers(0, 60))
def test_the_sign_test_is_the_exact_one(new: int, mended: int) -> None:
    as_uneven = 2 * sum(math.comb(new + mended, fewer) for fewer in range(min(new, mended) + 1))
    exact = min(1.0, as_uneven / 2 ** (new + mended))
    assert module._sign_test(new, mended) == pytest.approx(exact, rel=1e-6)


def test_a_small_loss_on_little_data_is_unclear() -> None:
    data = sentences(30)
    report = guard(data, losing(data, "city", 0), _without_two(data), TYPES)
    assert verdicts(report)["city"] == "unclear" and not report.refused


def _without_two(data: list[Sentence]) -> list[tuple[Span, ...]]:
    return [s.spans[:1] if i < 2 else s.spans for i, s in enumerate(data)]


def test_types_that_the_data_does_not_mention_are_named() -> None:
    data = sentences(20, ("animal",))
    same = losing(data, "city", 0)
    report = guard(data, same, same, TYPES)
    assert report.absent == ("city",) and [row.type for row in report.types] == ["animal"]


spans = st.lists(
    st.builds(
        lambda a, n, t: Span(a, a + n, t), st.integers(0, 6), st.integers(1, 2), st.sampled_from(TYPES)
    ),
    max_size=3,
    unique=True,
)


@settings(max_examples=60)
@given(st.lists(st.tuples(spans, spans, spans), min_size=1, max_size=12))
def test_point_estimates_are_the_metrics_and_intervals_are_ordered(
    rows: list[tuple[list[Span], ...]],
) -> None:
    gold = [tuple(g for g in one if not _overlap(g, one)) for one, _, _ in rows]
    data = [Sentence(("w",) * 8, tuple(sorted(g))) for g in gold]
    before, after = [tuple(b) for _, b, _ in rows], [tuple(a) for _, _, a in rows]
    report = guard(data, before, after, TYPES)
    for row in report.types:
        for side, found in ((row.before, before), (row.after, after)):
            assert side.value == pytest.approx(score(gold, found, TYPES).f1_of[row.type])
            assert side.low <= side.high
        assert row.loss.value == pytest.approx(row.before.value - row.after.value)
    backwards = guard(data, after, before, TYPES)
    for row, mirrored in zip(report.types, backwards.types, strict=True):
        assert row.loss.low == pytest.approx(-mirrored.loss.high)


def _overlap(span: Span, others: list[Span]) -> bool:
    return any(o is not span and span.start < o.end and o.start < span.end for o in others)


def test_the_bootstrap_agrees_with_a_plain_one() -> None:
    data = sentences(60)
    before, after = losing(data, "city", 0.1, 1), losing(data, "city", 0.4, 2)
    row = next(r for r in guard(data, before, after, TYPES).types if r.type == "city")
    draw = np.random.default_rng(5)
    losses = []
    for _ in range(2000):
        chosen = draw.integers(0, len(data), len(data))
        f1 = [
            score([data[i].spans for i in chosen], [found[i] for i in chosen], TYPES).f1_of["city"]
            for found in (before, after)
        ]
        losses.append(f1[0] - f1[1])
    low, high = np.percentile(losses, [2.5, 97.5])
    assert (row.loss.low, row.loss.high) == (pytest.approx(low, abs=2), pytest.approx(high, abs=2))


def test_agreement_leaves_out_what_the_new_data_labels() -> None:
    old = [(Span(0, 1, "city"), Span(3, 5, "animal"))]
    new = [(Span(0, 1, "city"), Span(4, 5, "animal"), Span(6, 7, "dish"))]
    plain = agreement("text", old, new, TYPES)
    assert [(t.type, t.old, t.new, t.both) for t in plain.types] == [("animal", 1, 1, 0), ("city", 1, 1, 1)]
    assert plain.agreement == 50
    marked = agreement("text", old, new, TYPES, labelled=[(Span(4, 5, "dish"),)])
    assert marked.agreement == 100
    assert "f1" not in str(marked.to_json()).lower()
