"""Nearest neighbours against brute force, in every block arrangement; the table and the bank by TokenRef."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import oracle
from cfner.errors import ConfigError
from cfner.objective import matching
from cfner.objective.matching import (
    MatchTable,
    ScoreBank,
    build_match_table,
    check_weights,
    default_weights,
    nearest_neighbours,
)

quick = settings(deadline=None, max_examples=50)


def random_features(seed: int, n: int, width: int) -> Tensor:
    return torch.tensor(np.random.default_rng(seed).normal(0, 1, (n, width)))


def assert_nearest(features: Tensor, indices: Tensor, cosines: Tensor, k: int) -> None:
    """Correct whatever the order among equals: other tokens, none twice, none nearer left out."""
    n = len(features)
    unit = np.array(features, dtype=np.float64)
    unit = unit / np.linalg.norm(unit, axis=1, keepdims=True)
    expected = min(k, max(n - 1, 0))
    assert indices.shape == cosines.shape == (n, expected)
    for row in range(n):
        chosen = indices[row].tolist()
        assert row not in chosen
        assert len(set(chosen)) == expected
        similar = unit @ unit[row]
        similar[row] = -np.inf
        best = np.sort(similar)[::-1][:expected]
        np.testing.assert_allclose(similar[chosen], best, atol=1e-6)
        np.testing.assert_allclose(cosines[row], best, atol=1e-6)


# -- neighbours ------------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1), st.integers(0, 25), st.integers(1, 6), st.integers(0, 5))
@quick
def test_neighbours_are_the_oracles(seed: int, n: int, width: int, k: int) -> None:
    """Tiny pools too: no token, one, two, K, K + 1."""
    features = random_features(seed, n, width + 1)
    indices, cosines = nearest_neighbours(features, k)
    assert indices.tolist() == [row[: max(n - 1, 0)] for row in oracle.neighbours(features.tolist(), k)]
    assert_nearest(features, indices, cosines, k)


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(1, 5), st.integers(1, 9), st.integers(1, 9))
@quick
def test_block_borders_change_nothing(seed: int, n: int, k: int, queries: int, keys: int) -> None:
    features = random_features(seed, n, 4)
    whole = nearest_neighbours(features, k)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matching, "_QUERIES_AT_A_TIME", queries)
        patch.setattr(matching, "_KEYS_AT_A_TIME", keys)
        blocked = nearest_neighbours(features, k)
    assert torch.equal(whole[0], blocked[0])
    torch.testing.assert_close(whole[1], blocked[1], rtol=0, atol=1e-12)


@pytest.fixture(scope="module")
def large_pool() -> tuple[Tensor, np.ndarray, np.ndarray]:
    """6,000 features with their 3 nearest others and the cosines, from all 36 million similarities."""
    features = random_features(5, 6000, 16)
    unit = features.numpy() / np.linalg.norm(features.numpy(), axis=1, keepdims=True)
    similar = unit @ unit.T
    np.fill_diagonal(similar, -np.inf)
    best = np.empty((6000, 3), dtype=np.int64)
    rows = np.arange(6000)
    cosines = np.empty((6000, 3))
    for place in range(3):
        best[:, place] = similar.argmax(1)
        cosines[:, place] = similar[rows, best[:, place]]
        similar[rows, best[:, place]] = -np.inf
    return features, best, cosines


@pytest.mark.parametrize(("queries", "keys"), [(2048, 16384), (1000, 700)])
def test_a_pool_beyond_5000_tokens_is_searched_whole(
    monkeypatch: pytest.MonkeyPatch,
    large_pool: tuple[Tensor, np.ndarray, np.ndarray],
    queries: int,
    keys: int,
) -> None:
    """Fault: "matching looks only at the first 5,000 tokens of a pool"."""
    monkeypatch.setattr(matching, "_QUERIES_AT_A_TIME", queries)
    monkeypatch.setattr(matching, "_KEYS_AT_A_TIME", keys)
    features, expected, expected_cosines = large_pool
    indices, cosines = nearest_neighbours(features, 3)
    assert np.array_equal(indices.numpy(), expected)
    np.testing.assert_allclose(cosines.numpy(), expected_cosines, atol=1e-12)
    assert (indices[:1000] >= 5000).any()
    assert (indices[5000:] < 5000).any()


@given(st.integers(0, 2**32 - 1), st.integers(2, 20), st.integers(1, 4), st.integers(1, 5))
@quick
def test_duplicates(seed: int, n: int, k: int, block: int) -> None:
    """The same word in the same context, again and again: copies are neighbours, a token not its own."""
    draw = np.random.default_rng(seed)
    features = torch.tensor(draw.normal(0, 1, (3, 4))[draw.integers(0, 3, n)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matching, "_QUERIES_AT_A_TIME", block)
        patch.setattr(matching, "_KEYS_AT_A_TIME", block + 1)
        assert_nearest(features, *nearest_neighbours(features, k), k)


def test_length_of_a_feature_does_not_matter() -> None:
    features = random_features(0, 30, 5)
    stretched = features * torch.rand(30, 1, dtype=torch.float64).add(0.1)
    assert torch.equal(nearest_neighbours(features, 3)[0], nearest_neighbours(stretched, 3)[0])


def test_a_zero_feature_is_survived() -> None:
    features = random_features(0, 6, 4)
    features[2] = 0
    indices, cosines = nearest_neighbours(features, 2)
    assert torch.isfinite(cosines).all()
    assert 2 not in indices[2].tolist()


class Accounting(TorchDispatchMode):
    """Counts the bytes of tensors alive at the same time, of those made while it is on."""

    def __init__(self) -> None:
        super().__init__()
        self.owners: dict[int, int] = {}  # storages by address: how many tensors share one
        self.alive = self.peak = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = {t.untyped_storage().data_ptr() for t in tree_leaves(args) if isinstance(t, Tensor)}
        out = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(out):
            if isinstance(tensor, Tensor):
                storage = tensor.untyped_storage()
                if storage.data_ptr() in self.owners or storage.data_ptr() not in given:
                    self._count(tensor, storage.data_ptr(), storage.nbytes())
        return out

    def _count(self, tensor: Tensor, address: int, size: int) -> None:
        self.owners[address] = self.owners.get(address, 0) + 1
        if self.owners[address] == 1:
            self.alive += size
            self.peak = max(self.peak, self.alive)
        weakref.finalize(tensor, self._forget, address, size)

    def _forget(self, address: int, size: int) -> None:
        self.owners[address] -= 1
        if not self.owners[address]:
            del self.owners[address]
            self.alive -= size


def most_bytes(n: int, width: int, k: int) -> int:
    """What matching may take beyond its features: the gathered pool, one block, and the results."""
    queries, keys = matching._QUERIES_AT_A_TIME, matching._KEYS_AT_A_TIME
    block = queries * keys + 3 * (queries + keys) * width + 8 * queries * k
    return 4 * (n * width + block) + 6 * 8 * n * (k + 1)


@pytest.mark.parametrize("pools", [1, 2])
def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch, pools: int) -> None:
    """No normalised copy of the pool, no n x n similarities; 1 million tokens of width 384 fit into 2 GB."""
    assert most_bytes(1_000_000, 384, 3) < 2e9
    monkeypatch.setattr(matching, "_QUERIES_AT_A_TIME", 64)
    monkeypatch.setattr(matching, "_KEYS_AT_A_TIME", 128)
    features = torch.randn(3000, 256)
    with Accounting() as accounting:
        build_match_table(features, torch.arange(3000).split(3000 // pools), k=3)
    gathered = 4 * features.numel() // pools
    assert gathered < accounting.peak < gathered + most_bytes(3000, 256, 3) - 4 * features.numel()


# -- weights ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", range(6))
def test_default_weights(k: int) -> None:
    weights = default_weights(k)
    assert len(weights) == k + 1
    assert sum(weights) == pytest.approx(1)
    assert check_weights(weights, k) == weights
    assert weights[0] == (0.5 if k else 1.0)


@pytest.mark.parametrize("weights", [(), (1.0,), (0.5, 0.4), (0.4, 0.6), (1.5, -0.5), (float("nan"), 0.5)])
def test_bad_weights(weights: tuple[float, ...]) -> None:
    with pytest.raises(ConfigError):
        check_weights(weights, 1)


@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=3),
    st.lists(st.floats(0, 1), min_size=1, max_size=5).filter(lambda values: sum(values) > 0.1),
)
@quick
def test_weights_in_use_sum_to_1_and_never_increase(sizes: list[int], drawn: list[float]) -> None:
    """For any pool size: with fewer matches than weights, too."""
    weights = tuple(sorted((value / sum(drawn) for value in drawn), reverse=True))
    k = len(weights) - 1
    refs = torch.arange(sum(sizes)).split(sizes)
    table = build_match_table(random_features(1, sum(sizes), 4), refs, k, weights)
    every = torch.cat([table.anchor_weights[:, None], table.match_weights], 1)
    torch.testing.assert_close(every.sum(1), torch.ones(len(every)))
    assert (every[:, :-1] >= every[:, 1:] - 1e-6).all()
    assert (table.match_weights[table.neighbours < 0] == 0).all()
    wanted = [
        oracle.matched_weights(min(k, size - 1), weights) + [0.0] * (k - min(k, size - 1))
        for size in sizes
        for _ in range(size)
    ]
    if wanted:
        torch.testing.assert_close(every, torch.tensor(wanted), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("size", range(7))
def test_pools_around_k(size: int) -> None:
    """Fault: "crash when a pool has fewer than K tokens". 1/2 and 1/(2K') each; a token alone weighs 1."""
    table = build_match_table(random_features(2, 9, 4), [torch.arange(size), torch.arange(0)], k=3)
    matches = min(3, max(size - 1, 0))
    assert (table.neighbours >= 0).sum(1).tolist() == [matches] * size
    assert table.anchor_weights.tolist() == [0.5 if matches else 1.0] * size
    expected = (
        torch.tensor([1 / (2 * matches)] * matches + [0.0] * (3 - matches)) if matches else torch.zeros(3)
    )
    torch.testing.assert_close(table.match_weights, expected.expand(size, 3))


# -- by TokenRef -----------------------------------------------------------------------------------------


def refs_of_neighbours(table: MatchTable, ref: int) -> list[int]:
    row = int(table.row_of_ref[ref])
    return [int(table.refs[other]) for other in table.neighbours[row] if other >= 0]


@given(st.integers(0, 2**32 - 1), st.integers(0, 30), st.integers(1, 4))
@quick
def test_pools_are_matched_with_themselves_only(seed: int, n: int, k: int) -> None:
    draw = np.random.default_rng(seed)
    features = random_features(seed, n, 4)
    kind = draw.integers(0, 3, n)  # two pools, and tokens of none
    pools = [np.flatnonzero(kind == which) for which in (0, 1)]
    table = build_match_table(features, [torch.tensor(pool) for pool in pools], k)
    for pool in pools:
        found = oracle.neighbours(features[pool].tolist(), k)
        for row, ref in enumerate(pool):
            assert refs_of_neighbours(table, ref) == [pool[j] for j in found[row]]
    assert (table.row_of_ref[np.flatnonzero(kind == 2)] == -1).all()


@given(st.integers(0, 2**32 - 1), st.integers(1, 20))
@quick
def test_mixtures_survive_shuffling(seed: int, n: int) -> None:
    """Fault: "the training data cannot be shuffled". What an anchor reads depends on its TokenRef alone."""
    draw = np.random.default_rng(seed)
    table = build_match_table(random_features(seed, n + 3, 4), [torch.arange(n)], k=3)
    bank = ScoreBank(table, random_features(seed + 1, n, 5))
    refs = torch.arange(n + 3)
    weights, matched = bank.mixture(refs, 2.0)
    order = torch.tensor(draw.permutation(n + 3)[: draw.integers(0, n + 3)], dtype=torch.long)
    shuffled_weights, shuffled_matched = bank.mixture(refs[order], 2.0)
    assert torch.equal(shuffled_weights, weights[order])
    assert torch.equal(shuffled_matched, matched[order])


@given(st.integers(0, 2**32 - 1), st.integers(0, 12), st.integers(0, 4), st.sampled_from([0.5, 1.0, 3.0]))
@quick
def test_mixture_is_the_oracles(seed: int, n: int, k: int, temperature: float) -> None:
    """Softmax before averaging; tokens of no pool read nothing."""
    features, scores = random_features(seed, n + 2, 4), random_features(seed + 1, n, 5)
    table = build_match_table(features, [torch.arange(n)], k)
    weights, matched = ScoreBank(table, scores).mixture(torch.arange(n + 2), temperature)
    found = oracle.neighbours(features[:n].tolist(), k)
    for ref in range(n + 2):
        others = found[ref] if ref < n else []
        share = oracle.matched_weights(len(others))
        assert weights[ref].item() == pytest.approx(share[0])
        own = [0.0] * 5  # leaves the matched tokens' part of the average alone
        distributions = [oracle.softmax(scores[j].tolist(), temperature) for j in others]
        assert matched[ref].tolist() == pytest.approx(oracle.averaged(own, distributions, share), abs=1e-6)


def test_the_bank_remembers_the_latest_scores_of_pool_tokens() -> None:
    table = build_match_table(random_features(0, 10, 4), [torch.tensor([1, 4, 7])], k=2)
    bank = ScoreBank(table, torch.zeros(3, 2))
    bank.update(torch.tensor([7, 2, 1]), torch.tensor([[7.0, 7.0], [2.0, 2.0], [1.0, 1.0]]))
    assert bank.logits[table.row_of_ref[torch.tensor([1, 4, 7])]].tolist() == [[1, 1], [0, 0], [7, 7]]


def test_the_bank_keeps_its_own_copy() -> None:
    table = build_match_table(random_features(0, 3, 4), [torch.arange(3)], k=1)
    given_scores = torch.zeros(3, 2)
    bank = ScoreBank(table, given_scores)
    given_scores += 1
    assert not bank.logits.any()


def test_an_exchange_gives_every_process_what_any_has_seen() -> None:
    table = build_match_table(torch.randn(6, 4), [torch.arange(6)], 2)
    start = torch.randn(6, 3)
    banks = [ScoreBank(table, start) for _ in range(2)]
    said = [torch.randn(6, 3) for _ in banks]
    banks[0].update(torch.tensor([0, 1]), said[0][:2])
    banks[1].update(torch.tensor([1, 4]), said[1][[1, 4]])
    parts = [[bank.seen.float(), bank.logits * bank.seen[:, None]] for bank in banks]
    for bank in banks:
        sums = iter([a + b for a, b in zip(*parts, strict=True)])
        bank.exchange(lambda _, sums=sums: next(sums))
    expected = start.clone()
    expected[0], expected[4] = said[0][0], said[1][4]
    expected[1] = (said[0][1] + said[1][1]) / 2  # seen by both
    for bank in banks:
        torch.testing.assert_close(bank.logits, expected)
        assert not bank.seen.any()
