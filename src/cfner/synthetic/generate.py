"""The demo corpus: generated clinical-style notes with the sixteen types of I2B2.

It contains nobody's data, yet it is not a toy. A surface form says little about its type (the same name is a
doctor here, a patient there, and part of a street elsewhere). Neither the templates nor the values of the
test split occur in training.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from cfner.corpus.corpus import Corpus
from cfner.corpus.sentence import Sentence, Span
from cfner.corpus.split_files import SPLITS, Split
from cfner.errors import ConfigError
from cfner.synthetic.lists import ABBREVIATIONS, sections
from cfner.synthetic.slots import SlotFiller
from cfner.synthetic.values import Pools, pools_by_split

TYPES: tuple[str, ...] = (
    *("AGE", "CITY", "COUNTRY", "DATE", "DOCTOR", "HOSPITAL", "IDNUM", "MEDICALRECORD"),
    *("ORGANIZATION", "PATIENT", "PHONE", "PROFESSION", "STATE", "STREET", "USERNAME", "ZIP"),
)

_ENTITY_FREE_SHARE = 0.34
_TAIL_SHARE = 0.3
_NOISE = {"lower_name": 0.04, "typo": 0.01, "no_full_stop": 0.12, "abbreviate": 0.25, "case": 0.03}
_FAMILIES = sections("templates.txt")  # by name and weight: how often one is drawn, relative to the others
_WEIGHTS = {name: float(weight) for name, weight in map(str.split, _FAMILIES)}
_SLOT = re.compile(r"\{(\w+)(?::(\w+))?\}")
_WORD = re.compile(r"\d+(?:[.,]\d+)+|\w+|[^\w\s]")


class Template(NamedTuple):
    """A text with slots. ``home`` is the split it was written for: training and test share no template."""

    id: str
    family: str
    home: Split
    text: str


class _Piece(NamedTuple):
    """A piece of text that is one mention (``type``), or part of none."""

    text: str
    type: str | None = None


def generate(
    train: int = 4000,
    dev: int = 600,
    test: int = 1200,
    seed: int = 0,
    *,
    known_templates: float = 0.0,
) -> Corpus:
    """Generate a corpus of this size; the same arguments give the same sentences on every machine.

    The splits share no value (names, places, numbers). Test templates are not used elsewhere; half of the
    validation sentences use training templates, half use validation templates. The ``source`` of a sentence
    is ``template:`` and its template ids, joined by ``+``. ``known_templates``: this share of the test
    sentences uses training templates, with names and numbers that do not occur in training.
    """
    sizes = dict(zip(SPLITS, (train, dev, test), strict=True))
    for name, count in sizes.items():
        if count < 0:
            raise ConfigError(f"{name} must be 0 or more, not {count}.", remedy="Give a number of sentences.")
    pools = pools_by_split(seed)
    seen: set[tuple[str, ...]] = set()
    known = {"train": 1.0, "dev": 0.5, "test": known_templates}
    made = {
        split: tuple(_sentences(split, sizes[split], pools[split], seed, seen, known[split]))
        for split in SPLITS
    }
    return Corpus("clinical notes (generated)", made["train"], made["dev"], made["test"])


@cache
def templates() -> tuple[Template, ...]:
    """All templates. The position in its family decides the split of a template, never the seed."""
    homes: tuple[Split, ...] = ("train", "train", "test", "train", "dev", "train", "test", "train")
    return tuple(
        Template(f"{family}-{number:02d}", family, homes[number % len(homes)], line)
        for family, lines in zip(_WEIGHTS, _FAMILIES.values(), strict=True)
        for number, line in enumerate(lines)
    )


def _sentences(
    split: Split, count: int, pools: Pools, seed: int, seen: set[tuple[str, ...]], known: float
) -> Iterator[Sentence]:
    """Generate ``count`` sentences, none of them in ``seen``: splits and slices of a stream must not overlap.

    ``known``: the share of sentences from training templates.
    """
    rng = random.Random(f"sentences:{split}:{seed}")
    until = len(seen) + count
    while len(seen) < until:
        home: Split = "train" if split != "train" and known and rng.random() < known else split
        sentence = _write(home, pools, rng)
        if sentence.words not in seen:
            seen.add(sentence.words)
            yield sentence


def _write(home: Split, pools: Pools, rng: random.Random) -> Sentence:
    clauses = [template for template in templates() if template.family == "clause" and template.home == home]
    if rng.random() < _ENTITY_FREE_SHARE:
        chosen = rng.sample(clauses, rng.choice([1, 2, 2, 3]))
    else:
        family = rng.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
        chosen = [rng.choice([t for t in templates() if t.family == family and t.home == home])]
        if rng.random() < _TAIL_SHARE:
            chosen.append(rng.choice(clauses))
    pieces = [piece for piece in _join(chosen, SlotFiller(pools, rng), rng) if piece.text]
    if rng.random() < 0.8:
        first = pieces[0]
        pieces[0] = first._replace(text=first.text[0].upper() + first.text[1:])
    source = "template:" + "+".join(template.id for template in chosen)
    return _tokenised(_with_noise(pieces, rng), source)


def _join(chosen: list[Template], filler: SlotFiller, rng: random.Random) -> Iterator[_Piece]:
    for number, template in enumerate(chosen):
        text = template.text
        if number:
            yield _Piece(rng.choice(["; ", ", ", " and ", ". "]))
        if template is not chosen[-1]:
            text = text.removesuffix(".")
        if template is chosen[-1] and template.family == "clause":
            text += "."
        end = 0
        for slot in _SLOT.finditer(text):
            literal, (kind, style) = text[end : slot.start()], slot.groups(default="")
            value = filler.fill(kind, style)
            if literal.endswith((" a ", "A ")) and value[0].lower() in "aeiou8":
                literal = f"{literal[:-1]}n "
            yield _Piece(literal)
            yield _Piece(value, kind if kind in TYPES else None)
            end = slot.end()
        yield _Piece(text[end:])


def _with_noise(pieces: list[_Piece], rng: random.Random) -> list[_Piece]:
    """What hurried writers do: abbreviations, typing errors, lower-cased names, a forgotten full stop."""
    noisy = []
    for piece in pieces:
        text = _slip(piece.text if piece.type else _shorten(piece.text, rng), rng)
        lower = piece.type is not None and rng.random() < _NOISE["lower_name"]
        noisy.append(_Piece(text.lower() if lower else text, piece.type))
    if rng.random() < _NOISE["no_full_stop"] and noisy[-1].type is None:
        noisy[-1] = _Piece(noisy[-1].text.removesuffix("."))
    if rng.random() < _NOISE["case"]:
        change = rng.choice([str.lower, str.upper])
        noisy = [_Piece(change(piece.text), piece.type) for piece in noisy]
    return noisy


def _shorten(text: str, rng: random.Random) -> str:
    for long, short in ABBREVIATIONS.items():
        if f" {long} " in text and rng.random() < _NOISE["abbreviate"]:
            text = text.replace(f" {long} ", f" {short} ")
    return text


def _slip(text: str, rng: random.Random) -> str:
    """Sometimes swap two letters inside a long word. Dropping one could make a name of a different split."""
    words = text.split(" ")
    for number, word in enumerate(words):
        if len(word) > 4 and word.isalpha() and rng.random() < _NOISE["typo"]:
            at = rng.randrange(1, len(word) - 2)
            words[number] = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    return " ".join(words)


def _tokenised(pieces: list[_Piece], source: str) -> Sentence:
    """Tokenise piece by piece, so that a mention never shares a word with its neighbours ("64M")."""
    words: list[str] = []
    offsets: list[tuple[int, int]] = []
    spans: list[Span] = []
    text = ""
    for piece in pieces:
        start = len(words)
        for match in _WORD.finditer(piece.text):
            words.append(match.group())
            offsets.append((len(text) + match.start(), len(text) + match.end()))
        if piece.type is not None:
            spans.append(Span(start, len(words), piece.type))
        text += piece.text
    return Sentence(tuple(words), tuple(spans), text, tuple(offsets), source)
