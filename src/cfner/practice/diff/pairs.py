"""Match the mentions of two taggings of one sentence.

The rules:

1. Mentions with the same words and the same type are unchanged.
2. Of the others, those that share words are paired by the largest number of shared words, each used once.
   Where two pairs share equally many, equal types come first, then the pair further to the left.
3. A pair is ``retyped`` (same words, another type), ``moved`` (same type, other words) or ``moved+retyped``.
4. Mentions without a partner are ``lost`` (old) or ``gained`` (new). If one shares words with a mention of
   the other side that has a different partner, that mention was split or joined.

Swapping the two sides swaps lost and gained, and split and joined, and changes nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from cfner.corpus.sentence import Span

Kind = Literal["lost", "gained", "retyped", "moved", "moved+retyped"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
Verdict = Literal["right", "wrong", "still wrong"]
VERDICTS: Final[tuple[Verdict, ...]] = get_args(Verdict)


@dataclass(frozen=True)
class Change:
    """A mention that differs: ``old`` is None if it was gained, ``new`` if it was lost."""

    kind: Kind
    old: Span | None
    new: Span | None
    piece: Literal["split", "joined"] | None = None  # part of a mention that was split or joined
    verdict: Verdict | None = None  # None: the text is not labelled, or its labels do not decide

    @property
    def words(self) -> tuple[int, int]:
        """The words from the start of the first mention to the end of the last."""
        spans = [span for span in (self.old, self.new) if span is not None]
        return min(span.start for span in spans), max(span.end for span in spans)


def pair(old: Sequence[Span], new: Sequence[Span]) -> tuple[list[Change], list[Span]]:
    """(changes in the order of the sentence, unchanged mentions) of two taggings, each without overlaps."""
    same = set(old) & set(new)
    left, right = ([span for span in sorted(side) if span not in same] for side in (old, new))
    # key: most shared words, equal types first, then from the left; overlaps never start at the same word
    candidates = sorted(
        (-_shared(a, b), a.type != b.type, max(a.start, b.start), a, b) for a, b in _overlapping(left, right)
    )
    partner_of: dict[Span, Span] = {}
    taken: set[Span] = set()
    for *_, a, b in candidates:
        if a not in partner_of and b not in taken:
            partner_of[a] = b
            taken.add(b)
    touched_old = {a for *_, a, _ in candidates}
    touched_new = {b for *_, b in candidates}
    changes = [Change(_kind(a, b), a, b) for a, b in partner_of.items()]
    changes += [
        Change("lost", a, None, "joined" if a in touched_old else None) for a in left if a not in partner_of
    ]
    changes += [
        Change("gained", None, b, "split" if b in touched_new else None) for b in right if b not in taken
    ]
    return sorted(changes, key=lambda change: change.words), sorted(same)


def judge(change: Change, gold: Collection[Span], judged: Collection[str]) -> Verdict | None:
    """Whether a change made a place right or wrong; None where the labels do not decide.

    ``judged`` are the types that the gold labels cover. A mention of another type is wrong where gold has a
    different one, and undecided elsewhere.
    """
    before = _is_right(change.old, change.new, gold, judged)
    after = _is_right(change.new, change.old, gold, judged)
    if before is None or after is None:
        return None
    if not before and not after:
        return "still wrong"
    return "right" if after else "wrong"


def _is_right(
    span: Span | None, other: Span | None, gold: Collection[Span], judged: Collection[str]
) -> bool | None:
    """Whether this side is right. A side without a mention is right if gold has no mention there either."""
    place = span if span is not None else other
    if place is None:
        raise ValueError("a change has at least one mention")
    if any(_shared(place, mention) for mention in gold):
        return span is not None and span in gold
    return span is None if place.type in judged else None


def _kind(old: Span, new: Span) -> Kind:
    if (old.start, old.end) == (new.start, new.end):
        return "retyped"
    return "moved" if old.type == new.type else "moved+retyped"


def _shared(left: Span, right: Span) -> int:
    return max(0, min(left.end, right.end) - max(left.start, right.start))


def _overlapping(left: Sequence[Span], right: Sequence[Span]) -> Iterator[tuple[Span, Span]]:
    """All overlapping pairs between two sorted lists of disjoint spans, in linear time."""
    i = j = 0
    while i < len(left) and j < len(right):
        if _shared(left[i], right[j]):
            yield left[i], right[j]
        if left[i].end <= right[j].end:
            i += 1
        else:
            j += 1
