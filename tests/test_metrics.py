"""Scores against seqeval, confusions against word-by-word counting."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.metrics import classification_report

from cfner.corpus.sentence import Span
from cfner.errors import ConfigError
from cfner.evaluation.metrics import confusions, score
from cfner.evaluation.scores import Confusions, Counts, Scores

TYPES = ("LOC", "ORG-x", "PER")


@st.composite
def sentence_spans(draw: st.DrawFn, length: int) -> tuple[Span, ...]:
    spans, start = [], 0
    while start < length:
        size = draw(st.integers(1, 3))
        type_ = draw(st.sampled_from((None, None, *TYPES)))
        if type_ is not None:
            spans.append(Span(start, min(start + size, length), type_))
        start += size if type_ is not None else 1
    return tuple(spans)


@st.composite
def scored_corpora(draw: st.DrawFn):
    lengths = draw(st.lists(st.integers(0, 7), max_size=6))
    gold = [draw(sentence_spans(length)) for length in lengths]
    # Predictions are often right, so that true positives occur.
    predicted = [
        spans if draw(st.booleans()) else draw(sentence_spans(length))
        for spans, length in zip(gold, lengths, strict=True)
    ]
    return lengths, gold, predicted


def bio(spans: tuple[Span, ...], length: int) -> list[str]:
    tags = ["O"] * length
    for span in spans:
        tags[span.start : span.end] = [f"B-{span.type}"] + [f"I-{span.type}"] * (span.end - span.start - 1)
    return tags


@settings(deadline=None, max_examples=200)
@given(scored_corpora())
def test_scores_are_seqevals(corpus):
    lengths, gold, predicted = corpus
    ours = score(gold, predicted)
    if not ours.types:
        assert ours.micro_f1 == ours.macro_f1 == 0  # seqeval has no answer here
        return
    gold_tags = [bio(spans, length) for spans, length in zip(gold, lengths, strict=True)]
    predicted_tags = [bio(spans, length) for spans, length in zip(predicted, lengths, strict=True)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = classification_report(gold_tags, predicted_tags, output_dict=True, zero_division=0)
    for type_, counts in ours.counts.items():
        assert counts.precision == pytest.approx(100 * theirs[type_]["precision"])
        assert counts.recall == pytest.approx(100 * theirs[type_]["recall"])
        assert counts.f1 == pytest.approx(100 * theirs[type_]["f1-score"])
        assert counts.n_gold == theirs[type_]["support"]
    assert ours.micro_f1 == pytest.approx(100 * theirs["micro avg"]["f1-score"])
    assert ours.micro.precision == pytest.approx(100 * theirs["micro avg"]["precision"])
    assert ours.micro.recall == pytest.approx(100 * theirs["micro avg"]["recall"])
    assert ours.macro_f1 == pytest.approx(100 * theirs["macro avg"]["f1-score"])


@settings(deadline=None, max_examples=100)
@given(scored_corpora())
def test_macro_is_over_the_types_given(corpus):
    _, gold, predicted = corpus
    types = (*TYPES, "NEVER")
    scores = score(gold, predicted, types)
    seen = score(gold, predicted)
    assert scores.types == types
    assert scores.macro_f1 == pytest.approx(sum(c.f1 for c in seen.counts.values()) / len(types))
    assert scores.micro == seen.micro


def test_predictions_of_an_unlisted_type_stay_false_positives():
    gold = [(Span(0, 1, "PER"),)]
    predicted = [(Span(0, 1, "PER"), Span(2, 3, "LOC"))]
    scores = score(gold, predicted, ["PER"])
    assert scores.micro == Counts(1, 1, 2)
    assert scores.types == ("PER",)
    assert scores.macro_f1 == 100


def test_sentences_are_scored_apart():
    scores = score([(Span(0, 1, "PER"),), ()], [(), (Span(0, 1, "PER"),)])
    assert scores.micro == Counts(0, 1, 1)


def test_unlisted_gold_and_unequal_lists_are_refused():
    with pytest.raises(ConfigError, match=r"'PRE'.*Did you mean 'PER'"):
        score([(Span(0, 1, "PRE"),)], [()], ["PER"])
    with pytest.raises(ValueError, match=r"1 sentences .* 2"):
        score([()], [(), ()])
    with pytest.raises(ConfigError, match="old and as new"):
        confusions([()], [()], [3], ["PER"], ["PER"])
    with pytest.raises(ConfigError, match="not among the types"):
        confusions([(Span(0, 1, "ORG"),)], [()], [3], ["PER"], ["LOC"])
    with pytest.raises(ValueError, match="2 lengths"):
        confusions([()], [()], [3, 3], ["PER"], ["LOC"])
    with pytest.raises(ValueError, match="not inside"):
        confusions([(Span(2, 4, "PER"),)], [()], [3], ["PER"], ["LOC"])


@settings(deadline=None, max_examples=150)
@given(scored_corpora(), st.integers(0, 3))
def test_confusions_are_counted_by_word(corpus, split):
    lengths, gold, predicted = corpus
    old, new = TYPES[:split], TYPES[split:]
    pairs = [
        (gold_tag[2:], predicted_tag[2:])
        for g, p, length in zip(gold, predicted, lengths, strict=True)
        for gold_tag, predicted_tag in zip(bio(g, length), bio(p, length), strict=True)
    ]
    found = confusions(gold, predicted, lengths, old, new)
    assert found.old_words == sum(g in old for g, _ in pairs)
    assert found.old_as_other == sum(g in old and p == "" for g, p in pairs)
    assert found.not_new_words == sum(g not in new for g, _ in pairs)
    assert found.as_new == sum(g not in new and p in new for g, p in pairs)
    expected = 100 * found.old_as_other / found.old_words if found.old_words else None
    assert found.old_to_other == expected


def test_shares_of_nothing_are_none_and_percent_otherwise():
    assert Confusions(0, 0, 0, 0).old_to_other is None
    assert Confusions(0, 0, 0, 0).to_new is None
    assert Confusions(4, 1, 10, 2).old_to_other == 25
    assert Confusions(4, 1, 10, 2).to_new == 20


@settings(deadline=None, max_examples=50)
@given(scored_corpora())
def test_scores_survive_json(corpus):
    lengths, gold, predicted = corpus
    scores = score(gold, predicted, TYPES)
    for version in (
        scores,
        replace(scores, confusions=confusions(gold, predicted, lengths, ["LOC"], TYPES[1:])),
    ):
        assert Scores.from_json(json.loads(json.dumps(version.to_json()))) == version
