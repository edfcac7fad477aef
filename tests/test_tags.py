"""Tags <-> spans: round trips, detection, repairs."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfner.corpus.report import Repair
from cfner.corpus.sentence import Sentence, Span
from cfner.corpus.tags import (
    NEEDLESS_BEGIN,
    ORPHAN_END,
    ORPHAN_INSIDE,
    SCHEMES,
    TYPE_CHANGE,
    UNCLOSED,
    Scheme,
    TagError,
    detect_scheme,
    labels_of,
    parse_tag,
    scheme_named,
    spans_from_tags,
    tags_from_spans,
)
from cfner.errors import CorpusError

TYPES = ("PER", "LOC", "product-car", "e_mail", "B-x", "O", "I")
schemes = st.sampled_from(SCHEMES)


@st.composite
def annotated(draw: st.DrawFn, types: tuple[str, ...] = TYPES) -> tuple[list[Span], int]:
    """Disjoint spans, often touching, and the length of their sentence."""
    spans, position = [], 0
    for gap, length, type_ in draw(
        st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3), st.sampled_from(types)), max_size=6)
    ):
        spans.append(Span(position + gap, position + gap + length, type_))
        position += gap + length
    return spans, position + draw(st.integers(0, 2))


def touching(spans: list[Span]) -> bool:
    return any(a.end == b.start and a.type == b.type for a, b in pairwise(spans))


@given(annotated(), schemes)
@settings(deadline=None, derandomize=True, max_examples=200)
def test_spans_survive_the_round_trip(case: tuple[list[Span], int], scheme: Scheme) -> None:
    spans, length = case
    if scheme == "IO" and touching(spans):
        with pytest.raises(TagError, match="IO cannot express"):
            tags_from_spans(spans, length, scheme)
        return
    tags = tags_from_spans(spans, length, scheme)
    assert len(tags) == length
    assert set(tags) <= {"O", *labels_of({span.type for span in spans}, scheme)}
    assert spans_from_tags(tags, scheme) == (spans, [])


@given(st.lists(annotated(), max_size=5), schemes)
@settings(deadline=None, derandomize=True, max_examples=200)
def test_detection_finds_the_scheme_or_one_that_reads_the_same(
    cases: list[tuple[list[Span], int]], scheme: Scheme
) -> None:
    cases = [case for case in cases if scheme != "IO" or not touching(case[0])]
    sequences = [tags_from_spans(spans, length, scheme) for spans, length in cases]
    found = detect_scheme(sequences)
    if not any(spans for spans, _ in cases):
        assert found == "BIO"
    elif scheme == "IOB1" and not any(touching(spans) for spans, _ in cases):
        assert found == "IO"
    else:
        assert found == scheme
    assert [spans_from_tags(tags, found) for tags in sequences] == [(spans, []) for spans, _ in cases]


@given(schemes, st.data())
@settings(deadline=None, derandomize=True, max_examples=200)
def test_any_sequence_of_known_tags_is_repaired_into_valid_spans(scheme: Scheme, data: st.DataObject) -> None:
    tags = data.draw(st.lists(st.sampled_from(["O", *labels_of(["X", "Y"], scheme)]), max_size=8))
    spans, repairs = spans_from_tags(tags, scheme)
    Sentence(words=("w",) * len(tags), spans=tuple(spans))  # checks order and overlap itself
    covered = {position for span in spans for position in range(span.start, span.end)}
    assert covered == {position for position, tag in enumerate(tags) if tag != "O"}
    for span in spans:
        assert {tags[position][2:] for position in range(span.start, span.end)} == {span.type}
    assert all(0 <= repair.position < len(tags) for repair in repairs)
    if not (scheme == "IO" and touching(spans)):
        # No repair exactly where the tags are what their own spans would be written as.
        assert (tags == tags_from_spans(spans, len(tags), scheme)) == (not repairs)


@pytest.mark.parametrize(
    ("scheme", "tags", "spans", "repairs"),
    [
        ("BIO", "O I-X I-X", [Span(1, 3, "X")], [Repair(ORPHAN_INSIDE, 1)]),
        ("BIO", "B-X I-Y", [Span(0, 1, "X"), Span(1, 2, "Y")], [Repair(TYPE_CHANGE, 1)]),
        ("IOB1", "B-X I-X O", [Span(0, 2, "X")], [Repair(NEEDLESS_BEGIN, 0)]),
        ("BIOES", "B-X O S-X", [Span(0, 1, "X"), Span(2, 3, "X")], [Repair(UNCLOSED, 0)]),
        ("BIOES", "O E-X", [Span(1, 2, "X")], [Repair(ORPHAN_END, 1)]),
        ("BILOU", "B-X I-X", [Span(0, 2, "X")], [Repair(UNCLOSED, 1)]),
        ("BILOU", "B-X L-Y", [Span(0, 1, "X"), Span(1, 2, "Y")], [Repair(TYPE_CHANGE, 1)]),
    ],
)
def test_repairs(scheme: Scheme, tags: str, spans: list[Span], repairs: list[Repair]) -> None:
    assert spans_from_tags(tags.split(), scheme) == (spans, repairs)


@pytest.mark.parametrize(
    ("tags", "scheme"),
    [
        ("O O", "BIO"),
        ("I-X I-X O I-Y", "IO"),
        ("PER PER O LOC", "IO"),
        ("person-actor O e-mail t-shirt", "IO"),
        ("I-X B-X O I-X", "IOB1"),
        ("B-X I-X B-X", "BIO"),
        ("B-X I-X O I-X O B-Y", "BIO"),  # one slip among beginnings
        ("I-X B-X O I-X O B-Y", "IOB1"),
        ("B-X M-X E-X S-Y", "BIOES"),
        ("U-X O B-X L-X", "BILOU"),
        ("b-x i-x o", "BIO"),
        ("B_X I_X", "BIO"),
    ],
)
def test_detection_by_example(tags: str, scheme: Scheme) -> None:
    assert detect_scheme([tags.split()]) == scheme


def test_bare_names_are_types_as_they_stand() -> None:
    spans, repairs = spans_from_tags(["PER", "PER", "e-mail", "O", "person-actor"], "IO")
    assert spans == [Span(0, 2, "PER"), Span(2, 3, "e-mail"), Span(4, 5, "person-actor")]
    assert repairs == []


@pytest.mark.parametrize("tag", ["", "B-", "B", "I_", "-", "_", "B--"])
def test_a_tag_without_its_type_is_refused_with_its_position(tag: str) -> None:
    for call in (lambda: spans_from_tags(["O", tag], "BIO"), lambda: detect_scheme([[], ["O", tag]])):
        with pytest.raises(TagError, match="names no type") as caught:
            call()
        assert caught.value.position == 1
    assert caught.value.sentence == 1


def test_unknown_and_mixed_prefixes_are_refused() -> None:
    with pytest.raises(TagError, match="unknown prefix"):
        parse_tag("Q-PER")
    for tags in (["S-X", "U-X"], ["PER", "B-PER"], ["B-PER", "PER"]):
        with pytest.raises(TagError, match="mix two schemes") as caught:
            detect_scheme([["O"], tags])
        assert (caught.value.sentence, caught.value.position) == (1, 1)
    with pytest.raises(TagError, match="is not a tag of the scheme BIO"):
        spans_from_tags(["O", "S-X"], "BIO")


def test_labels_and_names_of_schemes() -> None:
    assert labels_of(["A", "B"], "BIO") == ["B-A", "I-A", "B-B", "I-B"]
    assert labels_of(["A"], "BILOU") == ["B-A", "I-A", "L-A", "U-A"]
    assert [scheme_named(name) for name in ("bio", "IOB2", "iobes", "BILUO")] == [
        "BIO",
        "BIO",
        "BIOES",
        "BILOU",
    ]
    with pytest.raises(CorpusError, match="Did you mean 'BIOES'"):
        scheme_named("BIOESS")
