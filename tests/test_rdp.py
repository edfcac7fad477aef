"""RDP: its pseudo-labels and terms, each beside a slow transcription of the definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cfner.methods.rdp import BeCertain, KeepRelations, prototypical_labels
from random_steps import Shape, random_step

quick = settings(max_examples=30)


def softmax(values: list[float]) -> list[float]:
    top = max(values)
    raised = [math.exp(value - top) for value in values]
    return [value / sum(raised) for value in raised]


def slow_labels(features: list[list[float]], logits: list[list[float]]) -> list[int]:
    predicted = [row.index(max(row)) for row in logits]
    prototypes = {
        label: np.mean([f for f, p in zip(features, predicted, strict=True) if p == label], axis=0)
        for label in set(predicted)
    }
    chosen = []
    for feature, row in zip(features, logits, strict=True):
        near = softmax([-float(np.linalg.norm(feature - prototypes[label])) for label in sorted(prototypes)])
        products = {label: n * softmax(row)[label] for label, n in zip(sorted(prototypes), near, strict=True)}
        chosen.append(max(products, key=lambda label: products[label]))
    return chosen


@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(2, 5))
@quick
def test_pseudo_labels(seed: int, words: int, labels: int) -> None:
    draw = np.random.default_rng(seed)
    features, logits = draw.normal(0, 2, (words, 3)), draw.normal(0, 1, (words, labels))
    ours = prototypical_labels(torch.tensor(features), torch.tensor(logits))
    assert ours.tolist() == slow_labels(features.tolist(), logits.tolist())


def test_a_word_far_from_its_predicted_classes_prototype_loses_its_label() -> None:
    """What the paper claims. Four words of each label lie together; one of label 1 lies among those of 0."""
    features = torch.tensor([[0.0, 0.0]] * 4 + [[9.0, 0.0]] * 4 + [[0.0, 0.0]])
    logits = torch.tensor([[2.0, 0.0]] * 4 + [[0.0, 2.0]] * 4 + [[0.0, 0.5]])
    assert logits.argmax(1)[-1] == 1
    assert prototypical_labels(features, logits).tolist() == [0] * 4 + [1] * 4 + [0]


@given(st.integers(0, 1000))
@quick
def test_terms(seed: int) -> None:
    step = random_step(Shape(seed, old_types=2, new_types=2, tokens=9, in_batch=7))
    inputs, roles = step.inputs, step.inputs.roles
    assert inputs.teacher is not None
    relations, entropies = [], []
    for row in range(len(inputs.gold)):
        scores = [0.0] * roles.labels
        for place, label in enumerate(roles.kept.tolist()):
            scores[label] = 1 / (1 + math.exp(-float(inputs.teacher.logits[row, place])))
        if int(inputs.gold[row]) in roles.new:
            scores[int(inputs.gold[row])] = 1.0
        p = softmax(inputs.logits[row].tolist())
        relations.append(-sum(t * math.log(q) for t, q in zip(softmax(scores), p, strict=True)))
        entropies.append(-sum(q * math.log(q) for q in p if q > 0))
    assert KeepRelations()(inputs).item() == pytest.approx(np.mean(relations), rel=1e-6)
    assert BeCertain()(inputs).item() == pytest.approx(np.mean(entropies), rel=1e-6)


def test_the_objective_has_the_papers_weights() -> None:
    step = random_step(Shape(0))
    terms = {term.name: term.weight for term in step.objective("rdp", {}).terms}
    assert terms == {"cross_entropy": 1.0, "distil": 2.0, "relations": 0.3, "entropy": 0.1}
