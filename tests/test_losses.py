"""Each loss function against its plain transcription, at its edges, and its derivative."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import oracle
from cfner.objective import losses
from random_steps import layer_sums

seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(0, 9)
TIGHT = {"rel": 1e-9, "abs": 1e-9}
quick = settings(deadline=None, max_examples=50)


def numbers(draw: np.random.Generator, *shape: int, spread: float = 1.0) -> Tensor:
    return torch.tensor(draw.normal(0, spread, shape), dtype=torch.float64).reshape(shape)


@given(seeds, sizes, st.integers(1, 7), st.sampled_from([0.1, 3.0, 30.0]))
@quick
def test_cross_entropy(seed: int, n: int, labels: int, spread: float) -> None:
    draw = np.random.default_rng(seed)
    logits = numbers(draw, n, labels, spread=spread)
    gold = draw.integers(0, labels, n)
    ours = losses.cross_entropy(logits.log_softmax(1), torch.tensor(gold))
    assert float(ours) == pytest.approx(oracle.cross_entropy(logits.tolist(), gold.tolist()), **TIGHT)


@given(seeds, sizes, st.integers(1, 4), st.integers(1, 4), st.sampled_from([0.5, 1.0, 2.0]), st.booleans())
@quick
def test_distillation(seed: int, n: int, kept: int, new: int, temperature: float, hard: bool) -> None:
    """The student's mass is that of its softmax over *all* labels: it is not renormalised over the old."""
    draw = np.random.default_rng(seed)
    student, teacher = numbers(draw, n, kept + new, spread=2), numbers(draw, n, kept, spread=2)
    log_probs = (student / temperature).log_softmax(1)[:, :kept]
    one_hot = torch.nn.functional.one_hot(teacher.argmax(1), kept).double()
    target = one_hot if hard else teacher.softmax(1)
    tokens = [oracle.Token(oracle.OTHER, student[i].tolist(), teacher[i].tolist()) for i in range(n)]
    expected = oracle.distillation(tokens, list(range(kept)), temperature, 1.0, hard)
    assert float(losses.distillation(log_probs, target)) == pytest.approx(expected, **TIGHT)


def test_distillation_punishes_mass_on_a_new_type() -> None:
    teacher = torch.tensor([[2.0, 1.0]])
    quiet, loud = torch.tensor([[2.0, 1.0, -9.0]]), torch.tensor([[2.0, 1.0, 3.0]])
    values = [losses.distillation(s.log_softmax(1)[:, :2], teacher.softmax(1)) for s in (quiet, loud)]
    assert values[0] < 1e-4 < 1 < values[1]


@given(seeds, sizes, st.integers(1, 8))
@quick
def test_feature_distance(seed: int, n: int, width: int) -> None:
    draw = np.random.default_rng(seed)
    ours, theirs = numbers(draw, n, width), numbers(draw, n, width)
    tokens = [
        oracle.Token(0, (), student_feature=a.tolist(), teacher_feature=b.tolist())
        for a, b in zip(ours, theirs, strict=True)
    ]
    assert float(losses.feature_distance(ours, theirs)) == pytest.approx(
        oracle.feature_distance(tokens), **TIGHT
    )


@given(seeds, sizes, st.integers(1, 4), st.floats(0, 1))
@quick
def test_margin_ranking(seed: int, n: int, new: int, margin: float) -> None:
    draw = np.random.default_rng(seed)
    cosines = torch.tensor(draw.uniform(-1, 1, (n, 1 + new)))
    tokens = [oracle.Token(oracle.OTHER, (), cosines=row.tolist()) for row in cosines]
    expected = oracle.margin_ranking(tokens, list(range(1, 1 + new)), margin)
    assert float(losses.margin_ranking(cosines[:, 0], cosines[:, 1:], margin)) == pytest.approx(
        expected, **TIGHT
    )


@given(seeds, sizes, st.integers(2, 6), st.floats(0.1, 40), st.floats(0, 1))
@quick
def test_nca(seed: int, n: int, labels: int, sigma: float, margin: float) -> None:
    draw = np.random.default_rng(seed)
    cosines = torch.tensor(draw.uniform(-1, 1, (n, labels)))
    gold = draw.integers(0, labels, n)
    tokens = [oracle.Token(int(y), (), cosines=row.tolist()) for y, row in zip(gold, cosines, strict=True)]
    ours = losses.nca(cosines, torch.tensor(gold), torch.tensor(sigma, dtype=torch.float64), margin)
    assert float(ours) == pytest.approx(oracle.nca(tokens, sigma, margin), **TIGHT)


@given(seeds, st.lists(st.integers(1, 5), max_size=5), st.integers(1, 6), st.integers(1, 4))
@quick
def test_pod_spatial(seed: int, lengths: list[int], width: int, depth: int) -> None:
    """Per sequence: another sequence of the batch, or the order of words in it, changes nothing."""
    draw = np.random.default_rng(seed)
    order = draw.permutation(sum(lengths))
    rows = torch.tensor(np.repeat(np.arange(len(lengths)), lengths)[order], dtype=torch.long)
    plain: list[list[list[list[float]]]] = []
    sums = []
    for _ in range(2):  # student, teacher
        layers = [numbers(draw, sum(lengths), width) for _ in range(depth)]
        plain.append([[layer[rows == row].tolist() for row in range(len(lengths))] for layer in layers])
        sums.append(layer_sums(layers, rows, len(lengths)))
    assert float(losses.pod_spatial(*sums, rows)) == pytest.approx(oracle.pod_spatial(*plain), **TIGHT)


def test_pod_spatial_counts_every_sequence_alone() -> None:
    """A sentence's distance does not depend on its batch mates."""
    draw = np.random.default_rng(0)
    layers = [numbers(draw, 6, 4) for _ in range(2)]
    both = torch.tensor([0, 0, 0, 1, 1, 1])

    def value(chosen: Tensor, rows: Tensor, sequences: int) -> Tensor:
        return losses.pod_spatial(*[layer_sums((layer[chosen],), rows, sequences) for layer in layers], rows)

    one = torch.zeros(3, dtype=torch.long)
    apart = (value(torch.arange(3), one, 1) + value(torch.arange(3, 6), one, 1)) / 2
    assert value(torch.arange(6), both, 2) == pytest.approx(apart.item())


# -- edges -----------------------------------------------------------------------------------------------


def every_loss(logits: Tensor, features: Tensor) -> dict[str, Tensor]:
    """All losses as functions of [n, 4] scores and [n, 4] features; the teacher's part is made up."""
    n, draw = len(logits), np.random.default_rng(7)
    gold, rows = torch.arange(n) % 4, torch.arange(n) % 2
    teacher = numbers(draw, n, 4).to(logits)
    layers = layer_sums((features, features * features), rows, min(n, 2))
    old_layers = layer_sums((teacher, teacher.roll(1, 1)), rows, min(n, 2))
    return {
        "cross_entropy": losses.cross_entropy(logits.log_softmax(1), gold),
        "distillation": losses.distillation(logits.log_softmax(1)[:, :2], teacher[:, :2].softmax(1)),
        "feature_distance": losses.feature_distance(features, teacher),
        "margin_ranking": losses.margin_ranking(logits[:, 0], logits[:, 1:], 0.5),
        "nca": losses.nca(logits, gold, torch.tensor(2.0).to(logits), 0.6),
        "pod_spatial": losses.pod_spatial(layers, old_layers, rows),
    }


@pytest.mark.parametrize("loss", list(every_loss(torch.ones(1, 4), torch.ones(1, 4))))
def test_no_token_is_an_exact_zero_that_lets_backward_run(loss: str) -> None:
    logits = torch.empty(0, 4, requires_grad=True)
    features = torch.empty(0, 4, requires_grad=True)
    value = every_loss(logits * 1, features * 1)[loss]
    assert value.shape == ()
    assert value.item() == 0.0
    value.backward()
    leaf = features if loss in ("feature_distance", "pod_spatial") else logits
    assert leaf.grad is not None


@pytest.mark.parametrize("loss", list(every_loss(torch.ones(1, 4), torch.ones(1, 4))))
@pytest.mark.parametrize("n", [1, 2, 5])
def test_derivatives(loss: str, n: int) -> None:
    draw = np.random.default_rng(n)
    leaves = numbers(draw, n, 4).requires_grad_(), numbers(draw, n, 4).requires_grad_()
    assert torch.autograd.gradcheck(lambda a, b: every_loss(a, b)[loss], leaves)


def test_pod_spatial_where_student_and_teacher_agree() -> None:
    """At the start of a step they do: a square root of 0 must not make the gradient infinite."""
    features = torch.randn(5, 4, requires_grad=True)
    rows = torch.tensor([0, 0, 1, 1, 1])
    sums = layer_sums((features,), rows, 2)
    teacher = layer_sums((features.detach(),), rows, 2)
    value = losses.pod_spatial(sums, teacher, rows)
    value.backward()
    assert value.item() == pytest.approx(0, abs=1e-6)
    assert features.grad is not None and torch.isfinite(features.grad).all()


def test_certain_predictions_stay_finite() -> None:
    logits = torch.tensor([[1e4, -1e4, 0.0, 0.0], [-1e4, 1e4, 0.0, 0.0]], requires_grad=True)
    values = every_loss(logits, torch.randn(2, 4, requires_grad=True))
    sum(values.values()).backward()  # type: ignore[union-attr]
    assert all(torch.isfinite(value) for value in values.values())
    assert torch.isfinite(logits.grad).all()  # type: ignore[arg-type]
