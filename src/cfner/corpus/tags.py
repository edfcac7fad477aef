"""Converts tags to spans of words and back, in the schemes IO, IOB1, BIO, BIOES and BILOU.

How a tag is read: ``O``; or a prefix (B I E S L U), a hyphen and a type, which may itself contain hyphens
(``B-product-car``). ``B_PER``, ``b-per`` and the ``M-``/``W-`` of BMES and BMEWO are variants of the same.
A tag with no such prefix is a bare type name (``PER``), and a file of those is IO.

docs/formats.md has the table of how the scheme is detected (``detect_scheme``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple, get_args

from cfner.corpus.report import Repair
from cfner.corpus.sentence import Span
from cfner.errors import CorpusError, nearest

Scheme = Literal["IO", "IOB1", "BIO", "BIOES", "BILOU"]
SCHEMES: tuple[Scheme, ...] = get_args(Scheme)

PREFIXES: dict[Scheme, str] = {"IO": "I", "IOB1": "BI", "BIO": "BI", "BIOES": "BIES", "BILOU": "BILU"}

ORPHAN_INSIDE = "inside tag with no beginning"
ORPHAN_END = "end tag with no beginning"
TYPE_CHANGE = "type changes inside a mention"
UNCLOSED = "mention with no end tag"
NEEDLESS_BEGIN = "beginning tag where IOB1 has an inside tag"

_CANONICAL = {letter: letter for letter in "BIESLU"} | {"M": "I", "W": "S"}
_PREFIXED = re.compile(r"([A-Za-z])([-_])(.*)", re.DOTALL)
_SCHEME_OF_NAME: dict[str, Scheme] = {scheme: scheme for scheme in SCHEMES}
_SCHEME_OF_NAME |= {"IOB2": "BIO", "BIO2": "BIO", "IOBES": "BIOES", "BILUO": "BILOU"}


def scheme_named(name: str) -> Scheme:
    """The scheme of that name, in upper or lower case; CorpusError for an unknown one."""
    upper = name.upper()
    if upper not in _SCHEME_OF_NAME:
        raise CorpusError(f"unknown tag scheme '{name}'.", remedy=nearest(upper, SCHEMES))
    return _SCHEME_OF_NAME[upper]


class TagError(CorpusError):
    """A tag that cannot be read. ``position`` is its place in the sentence, ``sentence`` that in the file."""

    def __init__(self, what: str, *, remedy: str, position: int = 0, sentence: int = 0) -> None:
        super().__init__(what, remedy=remedy)
        self.position, self.sentence = position, sentence


class ParsedTag(NamedTuple):
    """``prefix`` is 'O', one of B I E S L U, or '' for a bare type name; ``soft``: it was in lower case."""

    prefix: str
    type: str
    soft: bool = False


@lru_cache(maxsize=4096)
def parse_tag(tag: str) -> ParsedTag:
    """Prefix and type of one tag; TagError if it names no type or has an unknown prefix."""
    if tag in {"O", "o"}:
        return ParsedTag("O", "")
    remedy = "Write O for no entity, or a prefix and a type, like B-PER."
    if tag in _CANONICAL or not any(character.isalnum() for character in tag):
        raise TagError(f"the tag '{tag}' names no type.", remedy=remedy)
    match = _PREFIXED.fullmatch(tag)
    if match is None:
        return ParsedTag("", tag)
    letter, separator, type_ = match.groups()
    soft = letter.islower()
    prefix = _CANONICAL.get(letter.upper())
    if separator == "_" and (soft or prefix is None):
        return ParsedTag("", tag)  # a type name such as e_mail or T_CELL
    if prefix is None:
        if soft:
            return ParsedTag("", tag)  # a type name such as t-shirt
        known = ", ".join(f"{name}-" for name in _CANONICAL)
        raise TagError(f"the tag '{tag}' has an unknown prefix.", remedy=f"Known prefixes: {known}.")
    if not any(character.isalnum() for character in type_):
        raise TagError(f"the tag '{tag}' names no type.", remedy=remedy)
    return ParsedTag(prefix, type_, soft)


def detect_scheme(tag_sequences: Iterable[Sequence[str]]) -> Scheme:
    """The scheme of all the sentences together, by the table in docs/formats.md."""
    first: dict[str, tuple[int, int]] = {}  # prefix -> (sentence, position) where it occurs first
    hard: dict[str, tuple[int, int]] = {}  # the same without lower-case prefixes
    orphans = needless = 0  # violations of BIO, of IOB1
    for number, tags in enumerate(tag_sequences):
        before = ParsedTag("O", "")
        for position, tag in enumerate(tags):
            try:
                parsed = parse_tag(tag)
            except TagError as error:
                error.position, error.sentence = position, number
                raise
            if parsed.prefix != "O":
                first.setdefault(parsed.prefix, (number, position))
                if not parsed.soft:
                    hard.setdefault(parsed.prefix, (number, position))
                continues = before.type == parsed.type
                orphans += parsed.prefix == "I" and not continues
                needless += parsed.prefix == "B" and not continues
            before = parsed
    if "" in first:
        _refuse_mixture(hard, "", "BIESLU", "bare type names and prefixed tags")
        return "IO"
    _refuse_mixture(first, "ES", "LU", "BIOES and BILOU")
    if first.keys() & set("ES"):
        return "BIOES"
    if first.keys() & set("LU"):
        return "BILOU"
    if first.keys() == {"I"}:
        return "IO"
    return "IOB1" if needless < orphans else "BIO"


def _refuse_mixture(first: dict[str, tuple[int, int]], left: str, right: str, names: str) -> None:
    lefts = [first[prefix] for prefix in (left or [""]) if prefix in first]
    rights = [first[prefix] for prefix in right if prefix in first]
    if lefts and rights:
        sentence, position = max(min(lefts), min(rights))
        raise TagError(
            f"the tags mix two schemes: {names}.",
            remedy="Convert all tags of the file to one scheme.",
            position=position,
            sentence=sentence,
        )


def spans_from_tags(tags: Sequence[str], scheme: Scheme) -> tuple[list[Span], list[Repair]]:
    """The mentions that the tags describe. Wrong transitions are repaired; they never raise an error.

    An inside tag with no beginning starts a mention; a change of type starts a new one; a mention whose end
    tag is missing ends before the next one; an end tag alone is a mention of one word. TagError only for a
    tag without a type, or with a prefix that the scheme does not have.
    """
    spans: list[Span] = []
    repairs: list[Repair] = []
    closes = scheme in {"BIOES", "BILOU"}
    start, current = 0, ""  # the open mention; no mention is open while the type is empty

    def finish(end: int) -> None:
        nonlocal current
        if current:
            spans.append(Span(start, end, current))
        current = ""

    for position, tag in enumerate(tags):
        prefix, type_ = _parse_in(scheme, tag, position)
        if prefix in "IEL" and type_ == current:
            if prefix != "I":
                finish(position + 1)
            continue
        kind = _fault(scheme, prefix, type_, current)
        if kind is not None:
            repairs.append(Repair(kind, position))
        elif closes and current:
            repairs.append(Repair(UNCLOSED, position - 1))
        finish(position)
        if prefix != "O":
            start, current = position, type_
        if prefix in "ESLU":
            finish(position + 1)
    if closes and current:
        repairs.append(Repair(UNCLOSED, len(tags) - 1))
    finish(len(tags))
    return spans, repairs


def _parse_in(scheme: Scheme, tag: str, position: int) -> tuple[str, str]:
    try:
        prefix, type_, soft = parse_tag(tag)
    except TagError as error:
        error.position = position
        raise
    if prefix == "O" or prefix in tuple(PREFIXES[scheme]):
        return prefix, type_
    if scheme == "IO" and (soft or not prefix):
        return "I", tag
    raise TagError(
        f"the tag '{tag}' is not a tag of the scheme {scheme}.",
        remedy="Name the scheme of the file, or leave it out to have it detected.",
        position=position,
    )


def _fault(scheme: Scheme, prefix: str, type_: str, current: str) -> str | None:
    """For a tag that does not continue the open mention: the kind of repair that it needs, if any."""
    if prefix in "EL":
        return TYPE_CHANGE if current else ORPHAN_END
    if prefix == "I" and scheme not in {"IO", "IOB1"}:
        return TYPE_CHANGE if current else ORPHAN_INSIDE
    if prefix == "B" and scheme == "IOB1" and type_ != current:
        return NEEDLESS_BEGIN
    return None


def tags_from_spans(spans: Iterable[Span], length: int, scheme: Scheme) -> list[str]:
    """One tag per word. TagError for touching mentions of one type in IO, which cannot express them."""
    tags = ["O"] * length
    before = Span(-1, -1, "")
    for span in sorted(spans):
        if not max(before.end, 0) <= span.start < span.end <= length:
            raise ValueError(f"spans must be disjoint and inside the sentence of {length} words: {span}")
        touches = before.end == span.start and before.type == span.type
        if touches and scheme == "IO":
            raise TagError(
                f"two mentions of {span.type} touch, which the scheme IO cannot express.",
                remedy="Choose a different scheme, such as BIO.",
                position=span.start,
            )
        prefixes = _prefixes(span, touches, scheme)
        tags[span.start : span.end] = [f"{prefix}-{span.type}" for prefix in prefixes]
        before = span
    return tags


def _prefixes(span: Span, touches: bool, scheme: Scheme) -> str:
    length = span.end - span.start
    if scheme == "IO" or (scheme == "IOB1" and not touches):
        return "I" * length
    if scheme in {"IOB1", "BIO"}:
        return "B" + "I" * (length - 1)
    end, single = ("E", "S") if scheme == "BIOES" else ("L", "U")
    return single if length == 1 else "B" + "I" * (length - 2) + end


def labels_of(types: Iterable[str], scheme: Scheme) -> list[str]:
    """The labels of these types in the scheme, type by type, without O: B-PER, I-PER, B-LOC, ..."""
    return [f"{prefix}-{type_}" for type_ in types for prefix in PREFIXES[scheme]]
