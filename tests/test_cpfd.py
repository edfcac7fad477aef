"""CPFD: whom it gives labels, how much they count, and its attention term, beside slow transcriptions."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import median_low

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cfner.corpus.corpus import Corpus
from cfner.methods import IGNORE, create
from cfner.methods.context import ExampleContext
from cfner.methods.cpfd import confident, pooled_distance, sentence_shares
from cfner.stream.stream import TaskStream
from check_method import Subject, prepared_step

quick = settings(max_examples=30)


def slow_entropy(row: list[float]) -> float:
    raised = [math.exp(value - max(row)) for value in row]
    q = [value / sum(raised) for value in raised]
    return -sum(p * math.log(p) for p in q if p > 0) / math.log(len(row))


@given(st.integers(0, 10_000), st.integers(0, 30), st.integers(2, 5))
@quick
def test_exactly_the_words_below_their_classes_median_get_labels(seed: int, words: int, labels: int) -> None:
    draw = np.random.default_rng(seed)
    logits, other = draw.normal(0, 2, (words, labels)), draw.random(words) < 0.7
    entropies = [slow_entropy(row) for row in logits.tolist()]
    predicted = logits.argmax(1) if words else np.empty(0)
    expected = []
    for word in range(words):
        mates = [entropies[i] for i in range(words) if other[i] and predicted[i] == predicted[word]]
        expected.append(bool(other[word]) and entropies[word] < max(median_low(mates), 0.001))
    ours = confident(torch.tensor(logits), torch.tensor(other), 0.001)
    assert ours.tolist() == expected


def test_a_sentence_counts_as_its_share_of_confident_words() -> None:
    sure = torch.tensor([True, False, False, True, True, False])
    other = torch.tensor([True, True, False, True, True, False])
    shares = sentence_shares(sure, other, torch.tensor([0, 3, 5, 6]))
    assert shares.tolist() == [0.5, 0.5, 0.5, 1.0, 1.0, 1.0]  # the last sentence has no O word


def test_the_attention_term_is_the_definitions() -> None:
    draw = np.random.default_rng(0)
    lengths, heads = [3, 5], 2
    ours, theirs = (torch.zeros(2, heads, 5, 5, dtype=torch.float64) for _ in range(2))
    expected = []
    for row, n in enumerate(lengths):
        a, b = draw.random((heads, n, n)), draw.random((heads, n, n))
        ours[row, :, :n, :n], theirs[row, :, :n, :n] = torch.tensor(a), torch.tensor(b)
        expected.append(sum(((a.mean(axis) - b.mean(axis)) ** 2).mean() for axis in (0, 1, 2)))
    real = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], dtype=torch.float64)
    assert pooled_distance(ours, theirs, real).item() == pytest.approx(np.mean(expected))
    wider = torch.nn.functional.pad(ours, (0, 2, 0, 2)), torch.nn.functional.pad(theirs, (0, 2, 0, 2))
    padded = torch.nn.functional.pad(real, (0, 2))
    assert pooled_distance(*wider, padded).item() == pytest.approx(np.mean(expected))


def test_weights_and_targets_of_a_step(tiny_encoder: Path, tiny_corpus: Corpus) -> None:
    stream = TaskStream.split(tiny_corpus, first=2, per_step=1, min_mentions=1)
    subject = Subject("cpfd", tiny_encoder, stream)
    tagger = subject.tagger(epochs=6)
    for number in range(2):
        tagger.learn(subject.step(number))
    assert tagger.model.network.body.config._attn_implementation != "eager"  # only while it trained
    prepared = prepared_step(tagger)
    labels, weights, gold = prepared.targets.labels, prepared.targets.weights, prepared.data.gold
    assert weights is not None
    other = gold == prepared.roles.other
    assert torch.equal(labels[~other], gold[~other])
    given_old = other & torch.isin(labels, torch.tensor(prepared.roles.old))
    assert (labels[other] == IGNORE).any() and given_old.any()
    balance = 0.5 + 1 / (1 + math.exp(-2 / 1))  # two old types, one new
    shares = sentence_shares(
        other & (labels != IGNORE), other, torch.from_numpy(prepared.data.text.sentence_bounds)
    )
    torch.testing.assert_close(weights, torch.where(given_old, shares * balance, shares))
    terms = create("cpfd").objective(ExampleContext(4, 1)).terms
    assert {term.name: term.weight for term in terms} == {
        "cross_entropy": 1.0,
        "distil": 4.0,
        "attention": 4.0,
    }
