"""Do two type names look like two names of one type? ``PER`` and ``PERSON``, ``Product`` and ``products``.

Names are compared word by word (``date-birth``, ``DateBirth`` and ``DATE_BIRTH`` are the same two words), and
all words must correspond: ``date`` and ``date-birth`` are different types.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from itertools import zip_longest
from typing import Final

from cfner.practice.check.findings import Finding

_WORDS: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_a-zA-Z]+")
_VOWELS: Final = re.compile(r"[aeiou]")
_SHORT: Final = 4  # letters of an abbreviation, at most
_LONG_ENOUGH: Final = 6  # letters of names between which one wrong letter is a slip

# Abbreviations and synonyms in the label sets of well-known corpora and tools, by what they stand for. GPE
# and LOC, or DATE and TIME, are not here: corpora that have both mean different things by them.
_MEANINGS: Final = {
    "person": ("per", "pers", "people", "individual", "individuals"),
    "organization": ("org", "orgs", "orga", "organisation"),
    "location": ("loc", "locs", "place", "places"),
    "miscellaneous": ("misc", "miscellany"),
    "product": ("prod",),
    "facility": ("fac",),
    "corporation": ("corp",),
    "company": ("comp",),
    "group": ("grp",),
    "language": ("lang",),
    "address": ("addr",),
    "number": ("num", "nr"),
    "telephone": ("tel", "phone"),
    "quantity": ("qty",),
    "event": ("evt",),
    "currency": ("curr",),
    "medication": ("med", "drug"),
    "chemical": ("chem",),
    "disease": ("dis",),
    "identifier": ("id",),
    "description": ("desc",),
    "temperature": ("temp",),
    "datetime": ("dttm",),
}
_MEANING_OF: Final = {short: name for name, shorts in _MEANINGS.items() for short in (name, *shorts)}


def same_type(left: str, right: str) -> str | None:
    """Why two different names probably mean one type, or None if they do not."""
    if left == right:
        return None
    ours, theirs = _words(left), _words(right)
    if not ours or not theirs:
        return None
    if "".join(ours) == "".join(theirs):
        return "they differ in case or separators only"
    if _in_one_form(ours) == _in_one_form(theirs):
        return "they differ in number or spelling only"
    if [_meaning(word) for word in ours] == [_meaning(word) for word in theirs]:
        return "one is a usual short form or synonym of the other"
    return None


def similar_type(left: str, right: str) -> str | None:
    """Why two names might mean one type: weaker than ``same_type``, worth a look and no more."""
    ours, theirs = _words(left), _words(right)
    if left == right or same_type(left, right) or len(ours) != len(theirs):
        return None
    pairs = [(a, b) for a, b in zip_longest(ours, theirs, fillvalue="") if _meaning(a) != _meaning(b)]
    if len(pairs) == 1:
        if _abbreviates(*sorted(pairs[0], key=len), written=(left, right)):
            return "one may be an abbreviation of the other"
        if _one_letter_apart(*pairs[0]):
            return "they differ in one letter"
    return None


def look_alikes(
    names: Iterable[str], others: Iterable[str] | None = None
) -> list[tuple[str, str, str, bool]]:
    """(name, other, why, strong) for pairs within ``names``, or between ``names`` and ``others``."""
    left = sorted(set(names))
    right = None if others is None else sorted(set(others))
    found = []
    for position, name in enumerate(left):
        for other in left[position + 1 :] if right is None else right:
            if why := same_type(name, other):
                found.append((name, other, why, True))
            elif why := similar_type(name, other):
                found.append((name, other, why, False))
    return found


def name_findings(types: Collection[str], known: Collection[str]) -> Iterator[Finding]:
    """Types of the data that look like each other, or like a type that the model knows by another name."""
    for name, other, why, strong in look_alikes(types):
        yield Finding(
            "warning" if strong else "note",
            "similar types",
            f"'{name}' and '{other}' may be one type under two names ({why}).",
            remedy="If they are, use one name in the data.",
        )
    for name, other, why, strong in look_alikes(set(types) - set(known), set(known) - set(types)):
        yield Finding(
            "warning" if strong else "note",
            "similar to a known type",
            f"'{name}' may be the type that the model knows as '{other}' ({why}). It would be learned as a "
            "new type, and the two would compete for the same words.",
            remedy=f"If they are the same, rename it to '{other}' in the data (or the model's with "
            "'cfner rename').",
        )


@cache
def _words(name: str) -> list[str]:
    return [word.casefold() for word in _WORDS.findall(name)]


def _in_one_form(words: list[str]) -> list[str]:
    return [_singular(word.replace("isation", "ization").replace("colour", "color")) for word in words]


@cache
def _meaning(word: str) -> str:
    form = _in_one_form([word])[0]
    return _MEANING_OF.get(word) or _MEANING_OF.get(form) or form


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _abbreviates(short: str, long: str, *, written: tuple[str, str]) -> bool:
    """``PROC`` of procedure, ``GRP`` of group. Only for short forms in capitals: ``art`` is not artist.

    A short form with a usual meaning keeps it: ``PER`` is not percent.
    """
    if short in _MEANING_OF or not 2 <= len(short) <= _SHORT or len(long) < len(short) + 3:
        return False
    if not any(short.upper() in name for name in written):
        return False
    consonants = long[0] + _VOWELS.sub("", long[1:])
    return long.startswith(short) or consonants.startswith(short)


def _one_letter_apart(left: str, right: str) -> bool:
    """One letter replaced, missing or too many, or two neighbours swapped. Digits tell types apart."""
    short, long = sorted((left, right), key=len)
    if len(short) < _LONG_ENOUGH or len(long) - len(short) > 1 or not (short + long).isalpha():
        return False
    start = next((i for i, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    if len(short) < len(long):
        return short[start:] == long[start + 1 :]
    swapped = short[:start] + short[start : start + 2][::-1] + short[start + 2 :]
    return short[start + 1 :] == long[start + 1 :] or swapped == long
