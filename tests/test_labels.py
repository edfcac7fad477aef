"""The label space: append-only, lossless between words' numbers and mentions, at home in any checkpoint."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfner.corpus.sentence import Sentence, Span
from cfner.corpus.tags import SCHEMES, labels_of
from cfner.errors import StreamError
from cfner.stream.labels import LabelSpace

TYPES = ("PER", "LOC", "product-car", "x", "e-mail", "ORG")
# Labels as published checkpoints have them: other orders, O anywhere, other schemes, labels missing.
CHECKPOINTS = {
    "O first": ("O", "B-MISC", "I-MISC", "B-PER", "I-PER"),
    "O last, one B missing": ("B-LOC", "B-MISC", "I-LOC", "I-MISC", "I-PER", "O"),
    "inside only": ("O", "I-LOC", "I-PER"),
    "bare": ("VENDOR", "O", "DATE"),
    "BILOU by prefix": ("B-AGE", "B-ID", "I-AGE", "I-ID", "L-AGE", "L-ID", "O", "U-AGE", "U-ID"),
    "BIOES": ("S-LOC", "B-LOC", "E-LOC", "I-LOC", "O"),
    "special labels": ("O", "X", "B-PER", "I-PER", "[CLS]", "[SEP]"),
}
SCHEME_OF = dict(zip(CHECKPOINTS, ["BIO", "IOB1", "IO", "IO", "BILOU", "BIOES", "BIO"], strict=True))


@st.composite
def sentences(draw: st.DrawFn, types: tuple[str, ...], touching: bool = True) -> Sentence:
    spans, position = [], 0
    for _ in range(draw(st.integers(0, 4))):
        start = position + draw(st.integers(0 if touching else 1, 2))
        position = start + draw(st.integers(1, 3))
        spans.append(Span(start, position, draw(st.sampled_from(types))))
    length = position + draw(st.integers(0, 2))
    return Sentence(tuple(f"w{i}" for i in range(length)), tuple(spans))


@st.composite
def spaces(draw: st.DrawFn) -> LabelSpace:
    scheme = draw(st.sampled_from(SCHEMES))
    labels = draw(st.permutations(["O", *labels_of(TYPES[:3], scheme)]))
    return LabelSpace.of(labels, scheme)


any_space = st.one_of(
    st.just(LabelSpace.start()), spaces(), st.sampled_from([LabelSpace.of(c) for c in CHECKPOINTS.values()])
)


@settings(deadline=None, max_examples=150)
@given(any_space, st.lists(st.lists(st.sampled_from(TYPES), max_size=3), max_size=4))
def test_growing_never_moves_a_label(space, rounds):
    for new_types in rounds:
        grown = space.grown(new_types)
        assert grown.labels[: len(space)] == space.labels
        assert grown.types[: len(space.types)] == space.types
        assert set(grown.types) == {*space.types, *new_types}
        assert (grown.scheme, grown.other_id) == (space.scheme, space.other_id)
        assert grown.grown(new_types) == grown
        if space.types:
            assert set(space.ids_of(space.types)) <= set(grown.ids_of(space.types))
        space = grown


@settings(deadline=None, max_examples=200)
@given(st.data(), any_space)
def test_mentions_survive_encoding(data, space):
    space = space.grown([*space.types, "ORG"])
    sentence = data.draw(sentences(space.types, touching=space.scheme != "IO"))
    ids = space.encode(sentence)
    assert len(ids) == len(sentence)
    assert space.decode(ids) == sentence.spans
    inside = {i: span.type for span in sentence.spans for i in range(span.start, span.end)}
    assert [space.type_of(number) for number in ids] == [inside.get(i) for i in range(len(sentence))]


@settings(deadline=None, max_examples=200)
@given(st.data(), any_space)
def test_any_prediction_decodes_to_valid_mentions(data, space):
    space = space.grown(TYPES)
    ids = data.draw(st.lists(st.integers(0, len(space) - 1), max_size=12))
    spans = space.decode(ids)
    sentence = Sentence(("w",) * len(ids), spans)  # refuses what overlaps or lies outside
    assert [space.type_of(number) for number in ids] == [
        space.type_of(number) for number in space.encode(sentence)
    ]
    assert space.scheme == "IO" or space.decode(space.encode(sentence)) == spans


@settings(deadline=None, max_examples=50)
@given(any_space)
def test_ids_divide_the_labels(space):
    space = space.grown(TYPES)
    by_type = [space.ids_of([type_]) for type_ in space.types]
    together = sorted(number for ids in by_type for number in ids)
    assert tuple(together) == space.ids_of(space.types)
    without_type = [number for number in range(len(space)) if space.type_of(number) is None]
    assert sorted([*together, *without_type]) == list(range(len(space)))
    assert space.other_id in without_type
    assert LabelSpace.from_json(json.loads(json.dumps(space.to_json()))) == space


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_schemes_of_checkpoints(name):
    space = LabelSpace.of(CHECKPOINTS[name])
    assert space.scheme == SCHEME_OF[name]
    assert space.labels[space.other_id] == "O"


def test_growth_follows_the_checkpoint():
    assert LabelSpace.start().grown(["PER"]).labels == ("O", "B-PER", "I-PER")
    assert LabelSpace.of(CHECKPOINTS["bare"]).grown(["AGE"]).labels == ("VENDOR", "O", "DATE", "AGE")
    assert LabelSpace.of(("O", "S-A", "B-A", "I-A", "E-A")).grown(["C"]).labels[5:] == (
        "B-C",
        "I-C",
        "E-C",
        "S-C",
    )
    assert LabelSpace.of(CHECKPOINTS["O last, one B missing"]).grown(["PER"]).labels[6:] == ("B-PER",)


def test_io_labels_touching_mentions_word_by_word():
    space = LabelSpace.of(("O", "I-PER"))
    ids = space.encode(Sentence(("a", "b", "c"), (Span(0, 1, "PER"), Span(1, 2, "PER"))))
    assert ids == [1, 1, 0]
    assert space.decode(ids) == (Span(0, 2, "PER"),)


@pytest.mark.parametrize(
    ("labels", "scheme", "message"),
    [
        (("O", "B-A", "B_A", "I-A"), None, "'B-A' has 2 numbers"),
        (("O", "O"), None, "'O' has 2 numbers"),
        (("B-A", "I-A"), None, "None of these labels is 'O'"),
        (("LABEL_0", "LABEL_1"), None, "None of these labels is 'O'"),
        (("O", "S-A", "U-A"), None, "of no known scheme"),
        (("O", "B-A", "PER"), None, "of no known scheme"),
        (("O", "B-A", "E-A"), "BIO", "'E-A' is not a label of the scheme BIO"),
        (("O", "B-A"), "BOI", "no tag scheme 'BOI'.*BIO"),
        (("O", "B-"), "BIO", "names no type"),
    ],
)
def test_bad_labels_are_refused(labels, scheme, message):
    with pytest.raises(StreamError, match=message):
        LabelSpace.of(labels, scheme)


def test_a_name_that_several_numbers_have_means_the_same():
    with pytest.raises(StreamError, match="'B-A' has 2 numbers"):
        LabelSpace(("O", "B-A", "B-A"))
    space = LabelSpace.of(("O", "B-A", "I-A", "B-A", "I-A", "B-C"))
    assert space.merged == ("A",) and space.types == ("A", "C")
    assert space.ids_of(["A"]) == (1, 2, 3, 4)
    assert space.decode([1, 4, 0, 3]) == (Span(0, 2, "A"), Span(3, 4, "A"))
    assert space.encode(Sentence(("a", "b"), (Span(0, 2, "A"),))) == [1, 2]
    assert LabelSpace.from_json(space.to_json()) == space
    assert LabelSpace.of(("O", "B-A", "B-B", "B-C")).renamed(["A", "B"], "AB").labels == LabelSpace.of(
        ("O", "B-AB", "B-AB", "B-C")
    ).labels  # fmt: skip


def test_unknown_types_and_numbers_are_refused():
    space = LabelSpace.start().grown(["PERSON"])
    with pytest.raises(StreamError, match=r"no type 'PERSN'\. Did you mean 'PERSON'"):
        space.ids_of(["PERSN"])
    with pytest.raises(StreamError, match=r"^notes.txt:3: .*no type 'LOC'"):
        space.encode(Sentence(("a",), (Span(0, 1, "LOC"),), source="notes.txt:3"))
    with pytest.raises(IndexError, match="-100"):
        space.decode([0, -100])
    with pytest.raises(IndexError, match="3 is outside"):
        space.type_of(3)
    with pytest.raises(TypeError, match="PERSON"):
        space.grown("PERSON")
    with pytest.raises(StreamError, match="cannot be called 'O'"):
        LabelSpace.of(CHECKPOINTS["bare"]).grown(["O"])
    with pytest.raises(StreamError, match=r"no label 'B-PER'.*grown"):
        touching = Sentence(("a", "b"), (Span(0, 1, "PER"), Span(1, 2, "PER")))
        LabelSpace.of(CHECKPOINTS["O last, one B missing"]).encode(touching)


def test_new_types_get_groups_of_their_own():
    space = LabelSpace.of(("B-PER", "O"))
    grown = space.grown(["A", "B"], "type").grown(["C", "D"], "step")
    assert grown.group_of == (0, 0, 1, 1, 2, 2, 3, 3, 3, 3)
    assert grown.types_of_groups == {
        0: frozenset({"PER"}),
        1: frozenset({"A"}),
        2: frozenset({"B"}),
        3: frozenset({"C", "D"}),
    }
    assert space.grown(["A"]).groups == () and not space.grown(["A"]).has_own_others
    more = grown.grown(["PER", "D", "E"], "type")  # I-PER was missing: it joins its type's group
    assert more.labels[len(grown) :] == ("I-PER", "B-E", "I-E")
    assert more.group_of[len(grown) :] == (0, 4, 4)
    assert more.group_of[: len(grown)] == grown.group_of
    assert LabelSpace.from_json(json.loads(json.dumps(more.to_json()))) == more


def test_names_change_and_groups_stay():
    space = LabelSpace.start().grown(["A", "B", "C"], "type")
    assert space.renamed(["B"], "Z").groups == space.groups
    merged = space.renamed(["C", "A"], "AC")
    assert merged.groups == space.groups and merged.types == ("AC", "B")
    assert merged.group_of_type("AC") == 1  # it is learned in the first of its groups
    assert merged.types_of_groups == {1: frozenset({"AC"}), 2: frozenset({"B"})}
    assert merged.encode(Sentence(("a",), (Span(0, 1, "AC"),))) == [1]


@pytest.mark.parametrize(
    "space",
    [
        LabelSpace.start().grown(["A", "B", "C"], "type"),
        LabelSpace.of(("B-A", "O", "B-B", "I-A", "B-C")),
        LabelSpace(("O", "A", "B", "C"), "IO", bare=True),
        LabelSpace.start().grown(["A", "D", "B", "C"], "step").renamed(["A", "D"], "A"),
    ],
)
def test_a_type_is_taken_away(space):
    gone = space.without(["A"])
    assert gone.types == ("B", "C") and len(gone) == len(space) and gone.groups == space.groups
    assert gone.silent == space.ids_of(["A"]) and gone.other_id == space.other_id
    assert [gone.type_of(i) for i in gone.silent] == [None] * len(gone.silent)
    assert gone.decode(list(gone.silent)) == ()
    assert gone.ids_of(["B"]) == space.ids_of(["B"])
    assert LabelSpace.from_json(json.loads(json.dumps(gone.to_json()))) == gone
    again = gone.grown(["A"], "type")  # it can be learned again, with other numbers
    assert again.types == ("B", "C", "A") and set(again.ids_of(["A"])).isdisjoint(gone.silent)
    with pytest.raises(StreamError, match="no type 'Q'"):
        space.without(["Q"])


@pytest.mark.parametrize(
    ("groups", "error"),
    [
        ([0, 1], StreamError),  # too few
        ([0], StreamError),
        ([0, 1, 1, 1], StreamError),
        ([0, 2, 2], StreamError),  # no group 1
        ([0, -1, -1], StreamError),
        ([1, 0, 0], StreamError),  # O has an Other of its own
        ([0, 1.0, 1], TypeError),
        ([0, True, 1], TypeError),
        ([0, "1", "1"], TypeError),
        ({"0": 1}, TypeError),
        ("011", TypeError),
        (None, TypeError),
    ],
)
def test_malformed_groups_are_refused(groups, error):
    data = {"labels": ["O", "B-A", "I-A"], "scheme": "BIO", "bare": False, "groups": groups}
    with pytest.raises(error):
        LabelSpace.from_json(data)
