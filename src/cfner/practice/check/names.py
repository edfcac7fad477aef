"""Do two type names look like two names of one type? ``PER`` and ``PERSON``, ``Product`` and ``products``.

Names are compared word by word (``date-birth``, ``DateBirth`` and ``DATE_BIRTH`` are the same two words), and
all words must correspond: ``date`` and ``date-birth`` are different types.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache
from itertools import combinations, product, zip_longest
from typing import Final, NamedTuple

from cfner.practice.check.findings import Finding

_WORDS: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_a-zA-Z]+")
_VOWELS: Final = re.compile(r"[aeiou]")
_SHORT: Final = 4  # letters of an abbreviation, at most
_LONG_ENOUGH: Final = 6  # letters from which one wrong letter is a typo
_ALIKE: Final = 0.85  # one wrong letter of seven, two of fourteen

# Abbreviations and synonyms in the label sets of well-known corpora and tools, by meaning. GPE
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


class LookAlike(NamedTuple):
    name: str
    other: str
    why: str
    strong: bool  # probably one type; otherwise only worth a look


def look_alike(name: str, other: str) -> LookAlike | None:
    """Why two different names may mean one type, or None if they do not."""
    ours, theirs = _words(name), _words(other)
    if name == other or not ours or not theirs:
        return None
    why, strong = "", True
    pairs = [(a, b) for a, b in zip_longest(ours, theirs, fillvalue="") if _meaning(a) != _meaning(b)]
    if "".join(ours) == "".join(theirs):
        why = "they differ in case or separators only"
    elif [_form(word) for word in ours] == [_form(word) for word in theirs]:
        why = "they differ in number or spelling only"
    elif not pairs:
        why = "one is a usual short form or synonym of the other"
    elif len(pairs) == 1 and all(pairs[0]):
        strong = False
        if _abbreviates(*sorted(pairs[0], key=len), written=(name, other)):
            why = "one may be an abbreviation of the other"
        elif _spelled_alike(*pairs[0]):
            why = "they are spelled nearly alike"
    return LookAlike(name, other, why, strong) if why else None


def look_alikes(names: Iterable[str], others: Iterable[str] | None = None) -> list[LookAlike]:
    """Pairs within ``names``, or between ``names`` and ``others``."""
    left = sorted(set(names))
    pairs = combinations(left, 2) if others is None else product(left, sorted(set(others)))
    return [found for pair in pairs if (found := look_alike(*pair)) is not None]


def name_findings(
    types: Collection[str],
    known: Collection[str],
    mentions: Mapping[str, int] | None = None,
    rename: Callable[[Sequence[str], str], str] | None = None,
) -> Iterator[Finding]:
    """Types of the data with similar names, or similar to a type that the model knows: one finding for all
    names of a type. ``rename`` makes the command that renames types of the data.

    Names that the model has learned as two types are never reported.
    """
    names, counts = set(types) | set(known), mentions or {}
    pairs = [pair for pair in look_alikes(names) if not {pair.name, pair.other} <= set(known)]
    strong = [pair for pair in pairs if pair.strong]
    for group in _groups(strong):
        yield _finding(group, strong, set(types), set(known), counts, rename)
    together = {name: group for group in _groups(strong) for name in group}
    weak = [
        pair for pair in pairs if not pair.strong and together.get(pair.name, {}) != together.get(pair.other)
    ]
    for group in _groups(weak):
        yield _finding(group, weak, set(types), set(known), counts, rename)


def _groups(pairs: Iterable[LookAlike]) -> list[set[str]]:
    """Names that are connected by pairs, directly or through other names."""
    groups: list[set[str]] = []
    for pair in pairs:
        joined = {pair.name, pair.other}.union(
            *(group for group in groups if group & {pair.name, pair.other})
        )
        groups = [group for group in groups if not group & joined] + [joined]
    return groups


def _finding(
    group: set[str],
    pairs: Sequence[LookAlike],
    types: set[str],
    known: set[str],
    counts: Mapping[str, int],
    rename: Callable[[Sequence[str], str], str] | None,
) -> Finding:
    pairs = [pair for pair in pairs if pair.name in group]
    theirs = sorted(group & known)
    ours = sorted(group - known, key=lambda name: (-counts.get(name, 0), name))
    into, others = (theirs[0], ours) if theirs else (ours[0], ours[1:])
    shown = [
        f"'{name}'" + (f" ({counts[name]:,} mentions)" if name in counts else "") for name in sorted(ours)
    ]
    reasons = " or ".join(dict.fromkeys(pair.why for pair in pairs))
    message = f"{', '.join(shown)} may be one type under {len(group)} names ({reasons}). "
    if theirs:
        message = f"{', '.join(shown)} may be the type that the model knows as '{into}' ({reasons}). "
    return Finding(
        "error" if pairs[0].strong else "note",
        "similar to a known type" if theirs else "similar types",
        f"{message}They would be learned as separate types that compete for the same words.",
        remedy="If it is one type, give it one name"
        + (f" (or rename the model's: `rename(MODEL, {into!r}, NAME)`):" if theirs else ":"),
        command=None if rename is None else rename(others, into),
    )


@cache
def _words(name: str) -> list[str]:
    return [word.casefold() for word in _WORDS.findall(name)]


@cache
def _meaning(word: str) -> str:
    return _MEANING_OF.get(word) or _MEANING_OF.get(_form(word)) or _form(word)


def _form(word: str) -> str:
    """The word in the singular, in American spelling."""
    word = word.replace("isation", "ization").replace("colour", "color")
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


def _spelled_alike(left: str, right: str) -> bool:
    """Whether two long names differ by a typo. Names with different digits are different types."""
    first, second = sorted((left, right))  # the ratio depends on the order
    if min(len(first), len(second)) < _LONG_ENOUGH or not (first + second).isalpha():
        return False
    return SequenceMatcher(None, first, second, autojunk=False).ratio() >= _ALIKE
