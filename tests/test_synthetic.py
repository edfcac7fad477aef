"""The demo corpus: reproducible, well-formed, held out where it says so, and not a toy."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections import Counter, defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfner.corpus.corpus import Corpus
from cfner.corpus.sentence import Sentence, Span
from cfner.errors import ConfigError, MissingExtraError
from cfner.synthetic.generate import TYPES, generate, templates

pytest.importorskip("faker", reason="the demo corpus needs the extra 'demo'")

# Ages and dates are too few to be held out; initials and short forms of hospitals ("LB", "SGH") may collide.
_OPEN_TYPES = ("AGE", "DATE")


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return generate()


def _surface(sentence: Sentence, span: Span) -> str:
    return " ".join(sentence.words[span.start : span.end])


def _template_ids(sentences: tuple[Sentence, ...]) -> set[str]:
    sources = [sentence.source or "" for sentence in sentences]
    assert all(source.startswith("template:") for source in sources)
    return {name for source in sources for name in source.removeprefix("template:").split("+")}


def _held_out_surfaces(sentences: tuple[Sentence, ...]) -> set[str]:
    mentions = ((_surface(s, span).lower(), span.type) for s in sentences for span in s.spans)
    return {
        text for text, kind in mentions if kind not in _OPEN_TYPES and not re.fullmatch(r"[a-z]{1,5}", text)
    }


def _names(sentences: tuple[Sentence, ...], types: tuple[str, ...]) -> set[str]:
    """The words of mentions that are a matter of choice: what is left after initials and joining words."""
    words = {
        word.lower()
        for sentence in sentences
        for span in sentence.spans
        if span.type in types
        for word in sentence.words[span.start : span.end]
    }
    return {word for word in words if len(word) > 3 and word.isalpha()}


# ---- reproducible ----------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=5)
@given(seed=st.integers(0, 2**31))
def test_the_same_seed_gives_the_same_sentences_and_another_seed_others(seed: int) -> None:
    first = generate(train=30, dev=10, test=10, seed=seed)
    assert first == generate(train=30, dev=10, test=10, seed=seed)
    assert first.train != generate(train=30, dev=10, test=10, seed=seed + 1).train


def test_a_smaller_corpus_is_the_beginning_of_a_larger_one(corpus: Corpus) -> None:
    assert generate(train=50, dev=0, test=0).train == corpus.train[:50]


def test_the_sentences_do_not_depend_on_the_hash_seed_of_the_interpreter() -> None:
    program = (
        "import hashlib; from cfner.synthetic.generate import generate; c = generate(120, 40, 40);"
        "print(hashlib.sha256(repr((c.train, c.dev, c.test)).encode()).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("0", "1", "4242")
    }
    assert len(digests) == 1


# ---- well-formed -----------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 2**31), sizes=st.tuples(*[st.integers(0, 40)] * 3))
def test_sizes_spans_and_offsets_hold_for_every_seed(seed: int, sizes: tuple[int, int, int]) -> None:
    made = generate(*sizes, seed=seed)
    assert (len(made.train), len(made.dev), len(made.test)) == sizes
    for sentence in made.train + made.dev + made.test:
        assert sentence.words and sentence.text is not None and sentence.offsets is not None
        assert tuple(sentence.text[a:b] for a, b in sentence.offsets) == sentence.words
        assert all(span.type in TYPES for span in sentence.spans)
        assert "{" not in sentence.text and "}" not in sentence.text
        assert all(re.fullmatch(r"\w+|\d+([.,]\d+)+|[^\w\s]", word) for word in sentence.words)


def test_no_sentence_occurs_twice(corpus: Corpus) -> None:
    everything = corpus.train + corpus.dev + corpus.test
    assert len({sentence.key for sentence in everything}) == len(everything)


def test_negative_sizes_are_refused() -> None:
    with pytest.raises(ConfigError, match="dev must be 0 or more, not -1"):
        generate(train=1, dev=-1, test=1)


def test_without_faker_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faker", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[demo\]'"):
        generate(train=1, dev=1, test=1)


# ---- size and frequencies --------------------------------------------------------------------------------


def test_the_default_size_is_made_in_a_few_seconds() -> None:
    start = time.perf_counter()
    generate()
    assert time.perf_counter() - start < 10


def test_every_type_is_frequent_enough_to_pass_the_fifty_mention_filter(corpus: Corpus) -> None:
    mentions = Counter(span.type for sentence in corpus.train for span in sentence.spans)
    assert set(mentions) == set(TYPES)
    assert min(mentions.values()) >= 50, mentions
    rare = {"USERNAME", "COUNTRY", "ZIP"}
    assert all(
        mentions[often] > 4 * mentions[seldom] for often in ("DATE", "DOCTOR", "HOSPITAL") for seldom in rare
    )
    assert all(sum(span.type == kind for s in corpus.test for span in s.spans) >= 15 for kind in TYPES)


def test_lengths_mixtures_and_entity_free_sentences(corpus: Corpus) -> None:
    for split in (corpus.train, corpus.dev, corpus.test):
        assert 8 <= sum(map(len, split)) / len(split) <= 25
        assert 0.28 <= sum(not sentence.spans for sentence in split) / len(split) <= 0.4
    with_mentions = [sentence for sentence in corpus.train if sentence.spans]
    assert sum(len(sentence.types) > 1 for sentence in with_mentions) / len(with_mentions) > 0.6


# ---- held out --------------------------------------------------------------------------------------------


def test_there_are_many_templates_and_each_is_used_where_it_belongs(corpus: Corpus) -> None:
    assert sum(template.family != "clause" for template in templates()) >= 150
    home = {template.id: template.home for template in templates()}
    assert len(home) == len(templates())
    train, dev, test = (_template_ids(split) for split in (corpus.train, corpus.dev, corpus.test))
    assert {home[name] for name in train} == {"train"}
    assert {home[name] for name in test} == {"test"}
    assert {home[name] for name in dev} == {"train", "dev"}


def test_test_and_dev_values_were_not_seen_in_training(corpus: Corpus) -> None:
    train, dev, test = (_held_out_surfaces(split) for split in (corpus.train, corpus.dev, corpus.test))
    assert not train & test
    assert not train & dev
    assert not dev & test


def test_a_name_of_one_split_is_no_part_of_a_name_in_another(corpus: Corpus) -> None:
    people = ("PATIENT", "DOCTOR")
    assert not _names(corpus.train, people) & _names(corpus.test, people)
    assert not _names(corpus.train, (*people, "CITY")) & _names(corpus.test, people)


# ---- not a toy -------------------------------------------------------------------------------------------


def test_many_surfaces_belong_to_several_types_or_to_none(corpus: Corpus) -> None:
    types_of: dict[str, set[str]] = defaultdict(set)
    for sentence in corpus.train:
        for span in sentence.spans:
            types_of[_surface(sentence, span).lower()].add(span.type)
    ambiguous = {text: kinds for text, kinds in types_of.items() if len(kinds) > 1}
    assert len(ambiguous) > 200
    pairs = {
        frozenset(pair) for kinds in ambiguous.values() for a in kinds for b in kinds if (pair := {a, b})
    }
    for pair in (
        {"DOCTOR", "PATIENT"},
        {"PHONE", "MEDICALRECORD"},
        {"IDNUM", "MEDICALRECORD"},
        {"PHONE", "IDNUM"},
        {"ZIP", "IDNUM"},
        {"CITY", "PATIENT"},
        {"HOSPITAL", "DOCTOR"},
    ):
        assert frozenset(pair) in pairs, pair
    free_words = {
        word.lower()
        for s in corpus.train
        for i, word in enumerate(s.words)
        if not any(span.start <= i < span.end for span in s.spans)
    }
    assert len(free_words & types_of.keys()) > 100


def _shape(word: str) -> str:
    letters = re.sub(r"[a-z]+", "x", re.sub(r"[A-Z]+", "X", word))
    return re.sub(r"\d", "0", letters)


def _tags(sentence: Sentence) -> list[str]:
    tags = ["O"] * len(sentence)
    for span in sentence.spans:
        for at in range(span.start, span.end):
            tags[at] = f"{'B' if at == span.start else 'I'}-{span.type}"
    return tags


def _spans(tags: list[str]) -> set[tuple[int, int, str]]:
    spans: set[tuple[int, int, str]] = set()
    start = 0
    for at, tag in enumerate([*tags, "O"]):
        if at and tags[at - 1] != "O" and tag != f"I-{tags[at - 1][2:]}":
            spans.add((start, at, tags[at - 1][2:]))
        if at < len(tags) and (at == 0 or tag[0] == "B" or tag[2:] != tags[at - 1][2:]):
            start = at
    return spans


def _most_frequent(counts: dict[str, Counter[str]]) -> dict[str, str]:
    return {key: counter.most_common(1)[0][0] for key, counter in counts.items()}


def test_looking_up_words_and_shapes_is_far_from_enough(corpus: Corpus) -> None:
    """Each word gets the most frequent tag of itself in training or, if it is new, of its shape."""
    by_word: dict[str, Counter[str]] = defaultdict(Counter)
    by_shape: dict[str, Counter[str]] = defaultdict(Counter)
    for sentence in corpus.train:
        for word, tag in zip(sentence.words, _tags(sentence), strict=True):
            by_word[word.lower()][tag] += 1
            by_shape[_shape(word)][tag] += 1
    words, shapes = _most_frequent(by_word), _most_frequent(by_shape)
    right = guessed = there = 0
    for sentence in corpus.test:
        tags = [words.get(word.lower(), shapes.get(_shape(word), "O")) for word in sentence.words]
        predicted, gold = _spans(tags), _spans(_tags(sentence))
        assert gold == {(span.start, span.end, span.type) for span in sentence.spans}
        right, guessed, there = right + len(predicted & gold), guessed + len(predicted), there + len(gold)
    micro_f1 = 200 * right / (guessed + there)
    assert micro_f1 < 40


def test_even_with_the_boundaries_given_a_mention_does_not_tell_its_type(corpus: Corpus) -> None:
    """The most frequent type of the surface or, if it is new, of the shape of the whole mention."""
    by_surface: dict[str, Counter[str]] = defaultdict(Counter)
    by_shape: dict[str, Counter[str]] = defaultdict(Counter)
    for sentence in corpus.train:
        for span in sentence.spans:
            by_surface[_surface(sentence, span).lower()][span.type] += 1
            by_shape[_shape(_surface(sentence, span))][span.type] += 1
    surfaces, shapes = _most_frequent(by_surface), _most_frequent(by_shape)
    verdicts = [
        surfaces.get(text.lower(), shapes.get(_shape(text))) == span.type
        for sentence in corpus.test
        for span in sentence.spans
        if (text := _surface(sentence, span))
    ]
    accuracy = sum(verdicts) / len(verdicts)
    assert accuracy < 0.65
