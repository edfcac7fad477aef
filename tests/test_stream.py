"""Streams: what each step may see, the protocol's filters, and the manifest that identifies a split."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfner.corpus.corpus import Corpus
from cfner.corpus.sentence import Sentence, Span
from cfner.errors import ConfigError, StreamError
from cfner.stream.slicing import slices_by
from cfner.stream.step import Step
from cfner.stream.stream import TaskStream

TYPES = ("A", "B", "C", "D", "E")


def sentence(name: str, types: str = "") -> Sentence:
    words = (name, *(f"w{i}" for i in range(2 * len(types))))
    spans = tuple(Span(1 + 2 * i, 2 + 2 * i, type_) for i, type_ in enumerate(types))
    return Sentence(words, spans, source=f"{name}:1")


def corpus_of(train, dev=(), test=(), name="tiny") -> Corpus:
    return Corpus(name=name, train=tuple(train), dev=tuple(dev), test=tuple(test))


TRAIN = [sentence(f"train{i}", "ABCDE"[i % 5] + "BDA"[i % 3]) for i in range(61)] + [sentence("nothing")]
DEV = [sentence(f"dev{i}", "ABCDE"[i % 5 :]) for i in range(10)]
TEST = [sentence(f"test{i}", "EDCBA"[i % 5 :]) for i in range(12)]
TINY = corpus_of(TRAIN, DEV, TEST)


@st.composite
def settings_of_streams(draw: st.DrawFn) -> dict:
    return {
        "first": draw(st.integers(1, 6)),
        "per_step": draw(st.integers(1, 6)),
        "order": draw(st.none() | st.permutations(TYPES)),
        "sampling": draw(st.sampled_from(["greedy", "random"])),
        "seed": draw(st.integers(0, 3)),
    }


@settings(deadline=None, max_examples=60)
@given(settings_of_streams())
def test_what_the_steps_see(chosen):
    stream = TaskStream.split(TINY, **chosen, min_mentions=1)
    order = tuple(chosen["order"] or sorted(TYPES))
    assert stream.types == order
    assert [len(step.types) for step in stream][:1] == [min(chosen["first"], 5)]
    assert all(len(step.types) == chosen["per_step"] for step in list(stream)[1:-1])
    assert len(stream) == len(list(stream))

    expected = slices_by(chosen["sampling"], TRAIN, stream.types_per_step, chosen["seed"])
    assert stream.leftover == len(expected.leftover)
    for number, (step, part) in enumerate(zip(stream, expected.parts, strict=True)):
        mine = [TRAIN[i] for i in part]
        assert step.index == number
        assert stream[number] is step
        assert step.types_so_far == order[: len(step.known) + len(step.types)]
        assert step.train == tuple(s.only(step.types) for s in mine)
        assert step.dev == tuple(s.only(step.types) for s in DEV)
        assert step.hidden_train == tuple(s.only(step.types_so_far) for s in mine)
        assert step.joint_dev == tuple(s.only(step.types_so_far) for s in DEV)
        so_far = [TRAIN[i] for earlier in expected.parts[: number + 1] for i in earlier]
        assert step.joint_train == tuple(s.only(step.types_so_far) for s in so_far)
        assert stream.test_up_to(step) == tuple(s.only(step.types_so_far) for s in TEST)
        assert stream.test_up_to(number) == stream.test_up_to(step)


@settings(deadline=None, max_examples=40)
@given(settings_of_streams())
def test_the_manifest_counts_and_identifies(chosen):
    stream = TaskStream.split(TINY, **chosen, min_mentions=1)
    manifest = stream.manifest()
    assert json.loads(json.dumps(manifest)) == manifest
    placed = sum(step["sentences"] for step in manifest["steps"])
    assert placed + manifest["leftover"] == len(TRAIN)
    for facts, step in zip(manifest["steps"], stream, strict=True):
        labelled = Counter(span.type for s in step.train for span in s.spans)
        assert facts["mentions"] == {type_: labelled[type_] for type_ in step.types}
        assert set(facts["mentions"]) | set(facts["unlabelled_mentions"]) == set(TYPES)
    asked = chosen["first"] if len(stream) == 1 else chosen["per_step"]
    assert manifest["missing_in_last_step"] == asked - len(stream[-1].types)

    # Another machine: other file names, another folder, the same words and labels.
    moved = corpus_of(
        *([replace(s, source="elsewhere") for s in part] for part in (TRAIN, DEV, TEST)), name="x"
    )
    assert TaskStream.split(moved, **chosen, min_mentions=1).manifest()["hash"] == manifest["hash"]


BASE = {"first": 2, "per_step": 1, "min_mentions": 1}


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"sampling": "random"},
        {"first": 1},
        {"per_step": 2},
        {"order": tuple("BACDE")},
    ],
    ids=str,
)
def test_every_setting_is_in_the_hash(change):
    one, other = TaskStream.split(TINY, **BASE), TaskStream.split(TINY, **(BASE | change))
    assert one.manifest()["hash"] != other.manifest()["hash"]


@pytest.mark.parametrize("part", ["train", "dev", "test"])
def test_every_sentence_and_label_is_in_the_hash(part):
    sentences = list(getattr(TINY, part))
    original = TaskStream.split(TINY, **BASE).manifest()["hash"]
    other_word = (*sentences[3].words[:-1], "other")
    moved_span = [replace(sentences[3].spans[0], end=sentences[3].spans[0].end - 1, start=0)]
    for changed in (replace(sentences[3], words=other_word), sentences[3].with_spans(moved_span)):
        data = {"train": TRAIN, "dev": DEV, "test": TEST} | {part: [*sentences[:3], changed, *sentences[4:]]}
        assert TaskStream.split(corpus_of(**data), **BASE).manifest()["hash"] != original


KNOWN_HASH = "b68acf48f0b08d68fb4d8d211382c0a9f065e0715bca093c37d47d5ed9d2f95b"


def test_the_hash_stays_the_same_for_ever():
    """A known answer: published manifests must stay comparable."""
    words = Sentence(("Zoë", "saw", "\ud800", "Bern"), (Span(0, 1, "A"), Span(3, 4, "B")))
    corpus = corpus_of(
        [words, sentence("x", "A"), sentence("y", "B"), sentence("z")], [], [sentence("t", "AB")]
    )
    stream = TaskStream.split(corpus, first=1, per_step=1, min_mentions=1, seed=3)
    assert stream.manifest()["hash"] == KNOWN_HASH


def test_rare_types_are_dropped_and_counted():
    train = [*(sentence(f"a{i}", "A") for i in range(50)), *(sentence(f"b{i}", "B") for i in range(49))]
    test = [sentence("t", "ABZ")]
    stream = TaskStream.split(corpus_of(train, test=test), first=1, per_step=1)
    assert stream.types == ("A",)
    assert stream.dropped_types == {"B": 49, "Z": 0}
    assert stream.test_up_to(0)[0].types == {"A"}
    assert all(s.types <= {"A"} for s in stream[0].joint_train)
    with pytest.raises(StreamError, match=r"has 51 or more.*'A': 50.*Lower `min_mentions`"):
        TaskStream.split(corpus_of(train), first=1, per_step=1, min_mentions=51)


def test_types_that_the_order_leaves_out_are_stated():
    stream = TaskStream.split(TINY, first=1, per_step=1, order=["D", "A"], min_mentions=1)
    assert stream.types == ("D", "A")
    assert stream.left_out_types == ("B", "C", "E")
    assert stream.manifest()["left_out_types"] == ["B", "C", "E"]
    assert stream.setting == "FG-1-PG-1"


def test_overlaps_are_found():
    twin = sentence("twin")
    # First, so that neither is among the sentences that rounding leaves over.
    leak, both = sentence("leak", "A"), sentence("both", "B")
    train = [leak, both, *[twin] * 9, *TRAIN]
    corpus = corpus_of(train, [*DEV, both], [*TEST, Sentence(leak.words), both])
    stream = TaskStream.split(corpus, first=1, per_step=1, min_mentions=1)
    manifest = stream.manifest()
    found = {(o["first"], o["second"]): o["sentences"] for o in manifest["overlaps"]}
    holders = {
        name: {s.words[0] for s in part}
        for name, part in [
            *((step.name, stream.slices[step.index]) for step in stream),
            ("dev", stream.dev),
            ("test", stream.test),
        ]
    }
    names = list(holders)
    for i, first in enumerate(names):
        for second in names[i + 1 :]:
            shared = len(holders[first] & holders[second])
            assert found.get((first, second), 0) == shared
            assert ((first, second) in found) == (shared > 0)
    assert any(first.startswith("step") and second.startswith("step") for first, second in found)
    assert "leak" not in json.dumps(manifest)  # a manifest is handed on with a model: no text of the corpus
    assert manifest["warnings"][:4] == [
        "1 sentence(s) are in more than one slice",
        "1 sentence(s) are both in training and dev data",
        "2 sentence(s) are both in training and test data",
        "1 sentence(s) are both in dev and test data",
    ]
    assert TaskStream.split(TINY, **BASE).manifest()["overlaps"] == []


def test_no_dev_and_no_test_is_allowed():
    stream = TaskStream.split(corpus_of(TRAIN), **BASE)
    assert [step.dev for step in stream] == [()] * 4
    assert stream[-1].joint_dev == () == stream.test_up_to(-1)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"first": 0}, ConfigError, "first must be 1 or more, not 0"),
        ({"per_step": -1}, ConfigError, "per_step must be 1 or more, not -1"),
        ({"sampling": "gready"}, ConfigError, "Did you mean 'greedy'"),
        ({"order": ["A", "a"]}, StreamError, "'a', which is not in the corpus"),
        ({"order": ["A", "A"]}, StreamError, "'A' 2 times"),
    ],
)
def test_bad_settings_are_refused(change, error, message):
    with pytest.raises(error, match=message):
        TaskStream.split(TINY, **(BASE | change))


def test_too_few_sentences_are_refused():
    with pytest.raises(StreamError, match="a slice would be empty"):
        TaskStream.split(corpus_of([sentence("x", "ABCDE")]), **BASE)


def test_a_step_by_hand():
    step = Step(types=("A",), train=(sentence("x", "A"),), known=("B",))
    assert step.types_so_far == ("B", "A")
    with pytest.raises(StreamError, match="has no joint_train"):
        _ = step.joint_train
    with pytest.raises(StreamError, match=r"^x:1: .*labelled with 'B'"):
        Step(types=("A",), train=(sentence("x", "AB"),))
    with pytest.raises(StreamError, match="'A' more than once"):
        Step(types=("A",), train=(), known=("A",))
    with pytest.raises(StreamError, match="no type to learn"):
        Step(types=(), train=())
