"""Sentences of words, with entity mentions as spans of words."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """An entity mention: words ``start`` up to but not including ``end``."""

    start: int
    end: int
    type: str

    def overlaps(self, other: Span) -> bool:
        """Whether the two share a word, whatever their types."""
        return self.start < other.end and other.start < self.end


@dataclass(frozen=True)
class Sentence:
    """Words and the entity mentions among them.

    ``spans`` are sorted and do not overlap. ``text`` and ``offsets`` (one character range per word) are set
    when the words were split from a text, so that predictions can be returned as character spans.
    ``source`` says where the sentence came from (``file:line``), ``document`` which document it is part of,
    if the file says so. ``record`` is the JSON object that was read for prediction: its ``id`` and other
    fields are copied to the prediction.
    """

    words: tuple[str, ...]
    spans: tuple[Span, ...] = ()
    text: str | None = None
    offsets: tuple[tuple[int, int], ...] | None = None
    source: str | None = None
    document: str | None = None
    record: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        end = 0
        for span in self.spans:
            if not end <= span.start < span.end <= len(self.words):
                raise ValueError(f"spans must be sorted, disjoint and inside the sentence: {self.spans}")
            end = span.end

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def types(self) -> frozenset[str]:
        return frozenset(span.type for span in self.spans)

    @cached_property
    def key(self) -> str:
        """A hash of the words alone: equal for the same sentence, whatever its labels."""
        return hashlib.sha256("\x1f".join(self.words).encode("utf-8", "surrogatepass")).hexdigest()

    def only(self, types: Collection[str]) -> Sentence:
        """The same sentence with the mentions of ``types`` alone; all other labels become O."""
        if self.types <= set(types):
            return self
        return replace(self, spans=tuple(span for span in self.spans if span.type in types))

    def with_spans(self, spans: Collection[Span]) -> Sentence:
        return replace(self, spans=tuple(sorted(spans)))


def mention_counts(sentences: Iterable[Sentence]) -> Counter[str]:
    """Mentions per type."""
    return Counter(span.type for sentence in sentences for span in sentence.spans)
