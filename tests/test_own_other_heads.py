"""Heads with own Others: columns against loops, what growing leaves alone, and what may move."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import oracle_groups as slow
from cfner.network.head import CosineHead, Head, HeadKind, LinearHead, empty_head, make_head
from cfner.network.network import copy_head

KINDS: list[HeadKind] = ["cosine", "linear"]
quick = settings(deadline=None, max_examples=60)
# groups of the rows that each growth adds; -1: the next group, 0: group 0, 1: the first own group
growths = st.lists(st.lists(st.sampled_from([-1, -1, 0, 1]), min_size=1, max_size=4), min_size=1, max_size=4)


def random_head(kind: HeadKind, hidden: int, labels: int, other: int = 0) -> Head:
    head = make_head(kind, hidden, labels, sigma=7.5, other=other)
    if isinstance(head, LinearHead):
        torch.nn.init.normal_(head.bias)
    return head


def grow(head: Head, wanted: list[int]) -> Head:
    """With rows in these groups, as a label space numbers them; sigmas differ, as after training."""
    groups, last = [], head.own_groups
    for kind in wanted:
        last += kind == -1
        groups.append(last if kind == -1 else min(kind, last))
    new = last - head.own_groups
    grown = head.grown(torch.randn(len(wanted), head.hidden), groups, torch.randn(new, head.hidden))
    if isinstance(grown, CosineHead) and new:
        with torch.no_grad():
            grown.sigmas[-new:] += torch.rand(new)
    return grown


def expected_columns(head: Head, features: Tensor) -> Tensor:
    space = slow.Space(list(head.groups), head.other, [None] * head.labels)
    rows = head.weight.tolist()
    found = []
    for feature in features.tolist():
        if isinstance(head, CosineHead):
            own = head.own_groups
            sigmas = [float(head.sigma.detach()), *(head.sigmas.tolist() if own else [])]
            scores = slow.cosine_scores(feature, rows, sigmas, head.others.tolist() if own else [], space)
        else:
            assert isinstance(head, LinearHead)
            scores = slow.linear_scores(feature, rows, head.bias.tolist(), space)
        found.append(slow.columns(*scores, space))
    return torch.tensor(found)


@given(st.sampled_from(KINDS), st.integers(1, 5), st.integers(0, 4), growths, st.integers(0, 2**32 - 1))
@quick
def test_columns(kind: HeadKind, labels: int, other: int, wanted: list[list[int]], seed: int) -> None:
    torch.manual_seed(seed)
    head = random_head(kind, 6, labels, min(other, labels - 1))
    features = torch.randn(5, 6)
    for rows in wanted:
        head = grow(head, rows)
        torch.testing.assert_close(head(features), expected_columns(head, features), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hidden", [32, 384, 768])
@pytest.mark.parametrize("words", [1, 7, 200])
def test_what_was_there_stays_bit_for_bit(kind: HeadKind, hidden: int, words: int) -> None:
    """Of group 0 and of own groups, whatever comes later: a checkpoint, or an older folder, gains types."""
    torch.manual_seed(0)
    head = random_head(kind, hidden, 9, other=8)
    features = torch.randn(words, hidden)
    for rows in ([-1, -1], [-1], [-1, 1, -1], [-1, -1, -1, -1, -1]):
        before, labels = head(features), head.labels
        head = grow(head, rows)
        assert torch.equal(head(features)[:, :labels], before)
    assert torch.equal(copy_head(head)(features), head(features))


def test_rows_of_a_new_linear_group_are_differences() -> None:
    head = random_head("linear", 4, 3)
    rows, others = torch.randn(3, 4), torch.randn(2, 4)
    grown = head.grown(rows, [1, 1, 2], others)
    assert isinstance(grown, LinearHead)
    torch.testing.assert_close(grown.weight[3:], rows - others[[0, 0, 1]])
    assert (grown.bias[3:] == 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_o_of_an_empty_head_says_nothing(kind: HeadKind) -> None:
    head = grow(empty_head(kind, 8), [-1, -1])
    assert (head(torch.randn(5, 8))[:, 0] == 0).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("optimiser", [torch.optim.SGD, torch.optim.AdamW])
@pytest.mark.parametrize(
    ("trained", "moving_groups"),
    [
        ({5, 6}, {1}),  # all of group 1: its Other and its scale move with it
        ({5}, set()),  # a part of it
        ({5, 6, 7}, {1, 2}),
        ({1, 2, 3, 4}, set()),  # all labels of group 0, but not O
        ({0, 1, 2, 3, 4}, {0}),
    ],
)
def test_only_what_may_move_moves(
    kind: HeadKind, optimiser: type[torch.optim.Optimizer], trained: set[int], moving_groups: set[int]
) -> None:
    torch.manual_seed(0)
    head = grow(random_head(kind, 6, 5), [-1])
    head = head.grown(torch.randn(2, 6), [1, 2], torch.randn(1, 6))
    assert head.groups == (0, 0, 0, 0, 0, 1, 1, 2)
    head.freeze([row for row in range(head.labels) if row not in trained])
    before = {name: value.detach().clone() for name, value in head.named_parameters()}
    steps = optimiser(head.parameters(), lr=0.1, weight_decay=0.0)  # type: ignore[call-arg]
    for _ in range(3):
        steps.zero_grad()
        head(torch.randn(20, 6)).logsumexp(1).square().sum().backward()
        steps.step()
    moved = (head.weight != before["weight"]).any(1).nonzero()[:, 0].tolist()
    assert set(moved) == trained
    if isinstance(head, LinearHead):
        assert set((head.bias != before["bias"]).nonzero()[:, 0].tolist()) == trained
    elif isinstance(head, CosineHead):
        sigmas = {0} if not torch.equal(head.sigma, before["sigma"]) else set()
        sigmas |= {1 + g for g in (head.sigmas != before["sigmas"]).nonzero()[:, 0].tolist()}
        others = {1 + g for g in (head.others != before["others"]).any(1).nonzero()[:, 0].tolist()}
        assert sigmas == moving_groups and others == moving_groups - {0}
