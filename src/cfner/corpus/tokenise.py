"""Splits text into words deterministically, and converts character spans to spans of words without loss.

Words are runs of letters and digits. ``1,250.50`` and ``O'Brien`` stay one word. The possessive ``'s`` is a
word. Hyphens separate. Every Chinese character, Japanese kana and other non-whitespace character is one word.
A word is cut where a mention begins or ends inside it.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise

from cfner.corpus.report import Repair
from cfner.corpus.sentence import Sentence, Span
from cfner.errors import CorpusError

CharSpan = tuple[int, int, str]

TRIMMED = "whitespace trimmed from the ends of a mention"
BLANK_MENTION = "mention of whitespace only, dropped"
REPEATED = "mention given twice, kept once"

# Scripts without spaces between words, where a run of letters would be a complete sentence.
_ALONE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f"
_LETTERS = rf"[^\W{_ALONE}]+"
_WORD = re.compile(
    rf"\d+(?:[.,]\d+)+"  # a number with its separators
    rf"|{_LETTERS}(?:['’](?![sS]\b){_LETTERS})*"  # a word, with apostrophes inside
    rf"|['’][sS]\b"  # the possessive
    rf"|\S"
)
_JOINERS = "\u200c\u200d"  # zero-width (non-)joiners connect the parts of one word


def split_words(text: str, boundaries: Iterable[int] = ()) -> list[tuple[int, int]]:
    """Character range of every word; no word crosses a boundary.

    Each non-whitespace character is in exactly one word, and no word contains whitespace.
    """
    ranges = [match.span() for match in _WORD.finditer(text)]
    if not text.isascii():
        ranges = _with_marks_attached(text, ranges)
    return _cut(ranges, boundaries)


def _with_marks_attached(text: str, ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Combining marks (which ``\\w`` does not match) and letters after them continue the word."""
    joined: list[tuple[int, int]] = []
    after_mark = False  # True: the last word ends in a mark, so letters directly after it continue it
    for start, end in ranges:
        is_mark = end - start == 1 and (
            text[start] in _JOINERS or unicodedata.category(text[start]).startswith("M")
        )
        adjacent = bool(joined) and joined[-1][1] == start
        if adjacent and (is_mark or (after_mark and text[start].isalnum())):
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
        after_mark = is_mark
    return joined


def sentence_from_characters(
    text: str,
    spans: Iterable[CharSpan],
    *,
    offsets: Sequence[tuple[int, int]] | None = None,
    source: str | None = None,
) -> tuple[Sentence, list[Repair]]:
    """A sentence whose words are split from the text, with mentions given in characters.

    Whitespace at the ends of a mention is trimmed; whitespace-only and repeated mentions are dropped. Each
    counts as a repair. CorpusError for a mention outside the text or one that overlaps another. ``offsets``
    gives the words where they are known; they are cut where a mention begins or ends, and trimmed there.
    """
    kept, repairs = _clean(text, spans)
    boundaries = {edge for start, end, _ in kept for edge in (start, end)}
    if offsets is None:
        ranges = split_words(text, boundaries)
    else:  # given words may contain whitespace, but no piece of one may begin or end with it
        pieces = (without_blanks(text, start, end) for start, end in _cut(offsets, boundaries))
        ranges = [(start, end) for start, end in pieces if start < end]
    first = {start: index for index, (start, _) in enumerate(ranges)}
    last = {end: index for index, (_, end) in enumerate(ranges)}
    for start, end, type_ in kept:
        if start not in first or end not in last:
            raise CorpusError(
                f"the mention {start}-{end} ({type_}) begins or ends between the given words.",
                remedy="Give word offsets that cover all of it, or leave the offsets out.",
            )
    sentence = Sentence(
        words=tuple(text[start:end] for start, end in ranges),
        spans=tuple(Span(first[start], last[end] + 1, type_) for start, end, type_ in kept),
        text=text,
        offsets=tuple(ranges),
        source=source,
    )
    return sentence, repairs


def character_spans(sentence: Sentence) -> list[CharSpan]:
    """The mentions of a sentence as characters of its text."""
    if sentence.offsets is None:
        raise ValueError("the sentence has no text, so its mentions have no character positions")
    offsets = sentence.offsets
    return [(offsets[span.start][0], offsets[span.end - 1][1], span.type) for span in sentence.spans]


def _cut(ranges: Iterable[tuple[int, int]], boundaries: Iterable[int]) -> list[tuple[int, int]]:
    """The words, divided at every boundary that falls inside one."""
    cuts = sorted(set(boundaries))
    pieces: list[tuple[int, int]] = []
    for start, end in ranges:
        inside = cuts[bisect_right(cuts, start) : bisect_left(cuts, end)]
        pieces.extend(pairwise([start, *inside, end]))
    return pieces


def without_blanks(text: str, start: int, end: int) -> tuple[int, int]:
    """A character range without whitespace at its ends; a range of whitespace becomes empty."""
    part = text[start:end]
    return start + len(part) - len(part.lstrip()), end - len(part) + len(part.rstrip())


def _clean(text: str, spans: Iterable[CharSpan]) -> tuple[list[CharSpan], list[Repair]]:
    """Mentions in order, trimmed and disjoint."""
    repairs: list[Repair] = []
    numbered: list[tuple[CharSpan, int]] = []
    for position, (start, end, type_) in enumerate(spans):
        if not 0 <= start < end <= len(text):
            raise CorpusError(
                f"the mention {start}-{end} ({type_}) is not inside its text of {len(text)} characters.",
                remedy="Give start and end as character positions, end exclusive.",
            )
        left, right = without_blanks(text, start, end)
        if left >= right:
            repairs.append(Repair(BLANK_MENTION, position))
            continue
        if (left, right) != (start, end):
            repairs.append(Repair(TRIMMED, position))
        numbered.append(((left, right, type_), position))
    kept: list[CharSpan] = []
    for span, position in sorted(numbered):
        if kept and kept[-1] == span:
            repairs.append(Repair(REPEATED, position))
            continue
        if kept and span[0] < kept[-1][1]:
            one, other = (f"{s}-{e} ({t}, '{text[s:e]}')" for s, e, t in (kept[-1], span))
            raise CorpusError(
                f"the mentions {one} and {other} overlap.", remedy="Keep one of the two: a word has one type."
            )
        kept.append(span)
    return kept, repairs
