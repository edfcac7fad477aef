"""Heads: rows are added below, never moved; frozen rows stay; imprinted rows have the old ones' scale."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from cfner.network.head import CosineHead, Head, HeadKind, LinearHead, make_head
from cfner.network.network import copy_head

KINDS: list[HeadKind] = ["cosine", "linear"]
relaxed = settings(deadline=None, max_examples=40)
kinds = st.sampled_from(KINDS)
sizes = st.integers(1, 40)


def random_head(kind: HeadKind, hidden: int, labels: int, seed: int = 0) -> Head:
    torch.manual_seed(seed)
    head = make_head(kind, hidden, labels, sigma=7.5)
    if isinstance(head, LinearHead):
        torch.nn.init.normal_(head.bias)
    return head


@relaxed
@given(kinds, sizes, sizes, st.integers(0, 20))
def test_growing_keeps_old_rows_bit_for_bit(kind: HeadKind, hidden: int, labels: int, new: int) -> None:
    head = random_head(kind, hidden, labels)
    rows = torch.randn(new, hidden)
    grown = head.grown(rows)
    assert torch.equal(grown.weight[:labels], head.weight)
    assert torch.equal(grown.weight[labels:], rows)
    assert grown.labels == labels + new
    if isinstance(head, LinearHead) and isinstance(grown, LinearHead):
        assert torch.equal(grown.bias[:labels], head.bias)
    if isinstance(head, CosineHead) and isinstance(grown, CosineHead):
        assert torch.equal(grown.sigma, head.sigma)


@relaxed
@given(kinds, sizes, sizes, sizes)
def test_a_grown_head_says_of_old_labels_what_it_said(
    kind: HeadKind, hidden: int, labels: int, words: int
) -> None:
    head = random_head(kind, hidden, labels)
    features = torch.randn(words, hidden)
    grown = head.grown(torch.randn(5, hidden))
    torch.testing.assert_close(grown(features)[:, :labels], head(features), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("hidden", [32, 384, 768])
def test_a_grown_linear_head_says_of_old_labels_what_it_said_bitwise(hidden: int) -> None:
    head = random_head("linear", hidden, 9)
    features = torch.randn(200, hidden)
    assert torch.equal(head.grown(torch.randn(4, hidden))(features)[:, :9], head(features))


@relaxed
@given(kinds, sizes, sizes, st.integers(1, 60))
def test_head_per_token_is_head_per_batch(kind: HeadKind, hidden: int, labels: int, words: int) -> None:
    head = random_head(kind, hidden, labels)
    features = torch.randn(words, hidden)
    alone = torch.cat([head(features[i : i + 1]) for i in range(words)])
    torch.testing.assert_close(alone, head(features), atol=1e-5, rtol=1e-5)


@relaxed
@given(sizes, sizes, sizes)
def test_cosine_logits_are_sigma_times_the_cosine(hidden: int, labels: int, words: int) -> None:
    head = random_head("cosine", hidden, labels)
    features = torch.randn(words, hidden)
    oracle = torch.stack([F.cosine_similarity(features, row[None]) for row in head.weight], 1) * 7.5
    torch.testing.assert_close(head(features), oracle, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("optimiser", ["sgd", "adamw"])
def test_frozen_rows_do_not_move_and_the_others_do(kind: HeadKind, optimiser: str) -> None:
    head = random_head(kind, 16, 7)
    head.freeze([0, 2, 5])
    before = {name: value.detach().clone() for name, value in head.named_parameters()}
    groups = [{"params": head.parameters(), "weight_decay": 0.0}]
    descend = (
        torch.optim.SGD(groups, lr=0.1, momentum=0.9)
        if optimiser == "sgd"
        else torch.optim.AdamW(groups, lr=0.1)
    )
    for _ in range(5):
        F.cross_entropy(head(torch.randn(30, 16)), torch.randint(7, (30,))).backward()
        descend.step()
        descend.zero_grad()
    moved = (head.weight != before["weight"]).any(1)
    assert moved.tolist() == [False, True, False, True, True, False, True]
    if isinstance(head, LinearHead):
        assert (head.bias != before["bias"]).tolist() == moved.tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_freeze_replaces_what_was_frozen(kind: HeadKind) -> None:
    head = random_head(kind, 8, 4)
    head.freeze([0, 1])
    head.freeze([3])
    head(torch.randn(9, 8)).square().sum().backward()
    assert head.weight.grad is not None
    assert head.weight.grad.any(1).tolist() == [True, True, True, False]


@pytest.mark.parametrize("kind", KINDS)
def test_a_copied_head_freezes_its_own_rows_only(kind: HeadKind) -> None:
    head = random_head(kind, 8, 4)
    twin = copy_head(head)
    twin.freeze([0])
    for one in (head, twin):
        one(torch.randn(9, 8)).square().sum().backward()
    assert head.weight.grad is not None and head.weight.grad[0].any()
    assert twin.weight.grad is not None and not twin.weight.grad[0].any()
    assert torch.equal(head.weight, twin.weight)


@pytest.mark.parametrize("kind", KINDS)
def test_imprinted_rows_point_where_they_should_at_the_old_rows_scale(kind: HeadKind) -> None:
    head = random_head(kind, 24, 6)
    means = torch.randn(3, 24) * 100
    rows = head.imprint_rows(means)
    torch.testing.assert_close(rows.norm(dim=1), head.weight.norm(dim=1).mean().expand(3))
    torch.testing.assert_close(F.cosine_similarity(rows, means), torch.ones(3))


def test_a_frozen_row_ignores_a_gradient_that_is_not_finite() -> None:
    head = random_head("linear", 4, 2)
    head.freeze([0])
    head.weight.backward(torch.tensor([[float("nan")] * 4, [1.0] * 4]))
    assert head.weight.grad is not None
    assert torch.equal(head.weight.grad, torch.tensor([[0.0] * 4, [1.0] * 4]))
