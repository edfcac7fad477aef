"""Labels of a sentence that follow the scheme: an oracle that tries every sequence."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from cfner.corpus.tags import Scheme, spans_from_tags
from cfner.network.decoder import Decoder
from cfner.network.label_order import LabelOrder
from cfner.stream.labels import LabelSpace

TYPES = {"BIO": 2, "BIOES": 1, "BILOU": 1}
seeds = st.integers(0, 2**32 - 1)


def space_of(scheme: Scheme, types: int = 2, free: int = 0) -> LabelSpace:
    letters = {"BIO": "BI", "BIOES": "BIES", "BILOU": "BILU", "IO": "I", "IOB1": "BI"}[scheme]
    labels = ["O", *(f"{letter}-t{n}" for n in range(types) for letter in letters)]
    return LabelSpace(tuple(labels), scheme, free=free)


def valid(labels: LabelSpace, ids: Sequence[int]) -> bool:
    """As the reader of annotated files defines it: nothing has to be repaired."""
    return not spans_from_tags([labels.tags[number] for number in ids], labels.scheme)[1]


def best_of_all(columns: Tensor, labels: LabelSpace) -> float:
    """The largest sum of columns of a valid sequence, by trying all of them."""
    rows = columns.tolist()
    every = itertools.product(range(len(labels)), repeat=len(rows))
    return max(sum(row[n] for row, n in zip(rows, ids, strict=True)) for ids in every if valid(labels, ids))


@pytest.mark.parametrize("scheme", TYPES)
@given(seed=seeds)
@settings(max_examples=25, deadline=None)
def test_the_labels_are_valid_and_no_valid_ones_have_a_larger_sum(scheme: Scheme, seed: int) -> None:
    labels = space_of(scheme, TYPES[scheme])
    draw = np.random.default_rng(seed)
    lengths = [int(draw.integers(1, 6)) for _ in range(3)]
    columns = torch.tensor(draw.normal(0, 2, (sum(lengths), len(labels))), dtype=torch.float32)
    ids = Decoder(labels).labels_of(columns, lengths).tolist()
    alone, at = columns.argmax(1).tolist(), 0
    for length in lengths:
        words = slice(at, at + length)
        assert valid(labels, ids[words])
        if valid(labels, alone[words]):  # nothing changes where each word alone is right
            assert ids[words] == alone[words]
        total = sum(columns[at + n, number].item() for n, number in enumerate(ids[words]))
        assert total == pytest.approx(best_of_all(columns[words], labels), abs=1e-4)
        at += length


@pytest.mark.parametrize("scheme", ["IO", "IOB1"])
def test_schemes_without_an_order_are_decoded_word_by_word(scheme: Scheme) -> None:
    labels = space_of(scheme)
    columns = torch.randn(40, len(labels), generator=torch.Generator().manual_seed(0))
    assert not labels.ordered
    assert torch.equal(Decoder(labels).labels_of(columns, [25, 15]), columns.argmax(1))


def test_labels_of_a_checkpoint_are_free_and_those_learned_later_are_not() -> None:
    theirs = LabelSpace.of(["O", "B-city", "I-city"])
    assert theirs.free == 3 and not theirs.ordered
    grown = theirs.grown(["dish"])
    assert grown.free == 3 and grown.ordered
    assert LabelSpace.from_json(grown.to_json()) == grown
    old = {key: value for key, value in grown.to_json().items() if key != "free"}
    assert not LabelSpace.from_json(old).ordered  # written before labels had an order
    assert LabelSpace.start().grown(["dish"]).free == 0
    order, inside = LabelOrder(grown), grown.labels.index
    ids = torch.tensor([inside(label) for label in ("I-city", "I-dish", "B-city", "I-dish")])
    assert order.misfits(ids, torch.tensor([0, 1, 2, 4])).tolist() == [1, 3]  # sentences of 1, 1 and 2 words


@pytest.mark.parametrize("scheme", TYPES)
@given(seed=seeds)
@settings(max_examples=40, deadline=None)
def test_only_the_words_around_a_misfit_are_searched(scheme: Scheme, seed: int) -> None:
    """No label outside them changes, and a search of the complete sentence finds nothing better."""
    labels = space_of(scheme, 3)
    draw = np.random.default_rng(seed)
    columns = torch.tensor(draw.normal(0, 2, (40, len(labels))), dtype=torch.float32)
    columns[:, 0] += float(draw.choice([0, 2, 5]))  # from hardly any to many words that are O
    decoder, order = Decoder(labels), LabelOrder(labels)
    ids, together = decoder.decided(columns, [40])
    assert valid(labels, ids.tolist())
    assert torch.equal(ids[~together], columns.argmax(1)[~together])
    of_all = torch.from_numpy(order._best(columns.double().numpy(), True, True))
    sums = [columns.double().gather(1, one[:, None]).sum().item() for one in (ids, of_all)]
    assert sums[0] == pytest.approx(sums[1], abs=1e-9)


def test_one_misfit_in_a_long_text_costs_a_search_of_a_few_words() -> None:
    labels = space_of("BIO", 3)
    columns = torch.zeros(20_000, len(labels))
    columns[:, 0] = 3.0
    columns[7_000, 2] = 9.0  # I-t0 after O
    together = Decoder(labels).decided(columns, [20_000])[1]
    assert 0 < together.sum() <= 20 and together[7_000]


def test_many_misfits_are_searched_once() -> None:
    """A stretch that grows is not searched again for every misfit in it."""
    labels = space_of("BIO", 3)
    columns = torch.zeros(2_000, len(labels))
    columns[:, 0], columns[1::2, 2] = 3.0, 9.0  # O I-t0 O I-t0 ...
    decoder, searched = Decoder(labels), 0
    best = decoder.order._best

    def counted(scores: np.ndarray, is_start: bool, is_end: bool) -> np.ndarray:
        nonlocal searched
        searched += len(scores)
        return best(scores, is_start, is_end)

    decoder.order._best = counted  # type: ignore[method-assign]
    ids = decoder.decided(columns, [2_000])[0]
    assert valid(labels, ids.tolist()) and searched <= 4_000


def test_a_label_that_means_nothing_competes_in_its_own_group_alone() -> None:
    """Something is broken elsewhere in the sentence: the mention of a type with its own Other stays."""
    labels = LabelSpace.of(["O", "B-person", "I-person", "B-code", "I-code"])
    labels = labels.grown(["dish"], "type").without(["code"])
    at = labels.labels.index
    columns = torch.zeros(3, len(labels)) - 9
    columns[:, 0] = 0.0
    columns[0, 3], columns[0, at("B-dish")] = 5.0, 3.0
    decoder = Decoder(labels)
    assert decoder.labels_of(columns, [3]).tolist() == [at("B-dish"), 0, 0]
    columns[2, at("I-dish")] = 1.0
    assert decoder.labels_of(columns, [3]).tolist() == [at("B-dish"), 0, 0]
    columns[2, at("I-dish")], columns[1, 3] = 2.0, 7.0  # on word 2 the label without meaning is O, no more
    columns[1, at("I-dish")] = -1.0
    assert decoder.labels_of(columns, [3]).tolist() == [at("B-dish"), at("I-dish"), at("I-dish")]


def test_parts_of_a_merged_type_choose_together() -> None:
    """One of its labels was learned by an older expert, one by a newer: its mention is not cut in two."""
    labels = LabelSpace.start().grown(["a"], "type").grown(["b"], "type").grown(["z"], "type")
    labels = labels.renamed(["a", "b"], "m")
    columns = torch.full((4, len(labels)), -100.0)
    columns[:, 0] = 0.0
    columns[0, 3], columns[1, 2] = 4.0, 4.0  # B- of the newer part, I- of the older
    decoder = Decoder(labels, ranks=(0, 0, 0, 1, 1, 2, 2))
    assert decoder.labels_of(columns, [4]).tolist() == [3, 2, 0, 0]
    columns[3, 6] = 1.0  # I-z after O
    assert decoder.labels_of(columns, [4]).tolist() == [3, 2, 0, 0]


def test_a_merged_type_takes_nothing_from_a_type_of_its_own_step() -> None:
    """Wherever else something is broken: b and y were learned together, and y was ahead."""
    labels = LabelSpace.start().grown(["a"], "type").grown(["b", "y"], "type").grown(["w"], "type")
    labels = labels.renamed(["a", "b"], "m")
    columns = torch.full((3, len(labels)), -9.0)
    columns[:, 0] = 0.0
    columns[0, 3], columns[0, 5], columns[2, 8] = 2.0, 4.0, 1.0  # B-m, B-y; I-w after O
    decoder = Decoder(labels, ranks=(0, 0, 0, 1, 1, 1, 1, 2, 2))
    assert decoder.labels_of(columns, [3]).tolist() == [5, 0, 0]


@given(seed=seeds)
@settings(max_examples=60, deadline=None)
def test_with_ranks_no_label_of_an_older_type_depends_on_a_newer_one(seed: int) -> None:
    """As `experts` with `old_wins` promises. Columns are as its network gives them: a newer label is at -100
    where an older one is above O.
    """
    draw = np.random.default_rng(seed)
    old, new = space_of("BIO", 2), space_of("BIO", 4)
    count = len(old)
    columns = torch.tensor(draw.normal(0, 2, (12, len(new))), dtype=torch.float32)
    claimed = (columns[:, 1:count] > columns[:, :1]).any(1)
    columns[claimed, count:] = columns[claimed, :1] - 100
    ranks = [0] * count + [1] * (len(new) - count)
    lengths = [7, 5]
    before = Decoder(old, ranks=[0] * count).labels_of(columns[:, :count], lengths)
    after = Decoder(new, ranks=ranks).labels_of(columns, lengths)
    assert torch.equal(torch.where(after < count, after, 0), before)


def test_a_mention_of_two_types_becomes_one_mention() -> None:
    """The frequent case: the first word looks like one type, the second like another."""
    labels = space_of("BIO")
    columns = torch.tensor([[0.0, 2.0, -3, 1.5, -3], [0.0, -3, 1.0, -3, 2.0]])
    assert Decoder(labels).words_alone(columns).tolist() == [1, 4]  # B-t0 I-t1
    assert Decoder(labels).labels_of(columns, [2]).tolist() == [3, 4]  # the sum decides: B-t1 I-t1
