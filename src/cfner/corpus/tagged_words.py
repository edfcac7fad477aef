"""From words with tags to sentences with spans: the last stretch of every reader of tagged words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cfner.corpus.report import ReadReport
from cfner.corpus.sentence import Sentence
from cfner.corpus.tags import Scheme, TagError, detect_scheme, spans_from_tags
from cfner.errors import CorpusError

BLANK_WORD = "word of blanks only, left out"
TRIMMED_WORD = "blanks trimmed from a word"
TRIMMED_TAG = "blanks trimmed from a tag"
NBSP_INSIDE = "no-break space inside a word, kept"
EMPTY_SENTENCE = "sentence without words, left out"


@dataclass
class TaggedRow:
    """One sentence as it stands in the file. ``lines`` has the line of each word, if they have their own."""

    words: list[str]
    tags: list[str]
    source: str
    file: str = ""
    lines: Sequence[int] | None = None

    def place(self, position: int) -> str:
        if self.lines is not None:
            return f"{self.file}:{self.lines[position]}"
        return f"{self.source} (word {position + 1})"


def sentences_from_rows(
    rows: Sequence[TaggedRow], report: ReadReport, scheme: Scheme | None
) -> list[Sentence]:
    """Sentences in order; counts every token as read, and as used or reported."""
    cleaned = [row for row in (_clean(row, report) for row in rows) if row is not None]
    try:
        found = scheme or detect_scheme([row.tags for row in cleaned])
    except TagError as error:
        raise error.at(
            error.position, error.sentence, cleaned[error.sentence].place(error.position)
        ) from None
    report.scheme = found
    return [_sentence(row, found, report) for row in cleaned]


def _sentence(row: TaggedRow, scheme: Scheme, report: ReadReport) -> Sentence:
    try:
        spans, repairs = spans_from_tags(row.tags, scheme)
    except TagError as error:
        raise error.at(error.position, where=row.place(error.position)) from None
    for repair in repairs:
        report.note(repair.kind, row.place(repair.position))
    report.use(len(row.words))
    return Sentence(words=tuple(row.words), spans=tuple(spans), source=row.source)


def _clean(row: TaggedRow, report: ReadReport) -> TaggedRow | None:
    """The row without blank words and without blanks around words and tags, or None if nothing is left."""
    if len(row.words) != len(row.tags):
        raise CorpusError(
            f"{len(row.words)} words but {len(row.tags)} tags.",
            where=row.source,
            remedy="Give one tag per word.",
        )
    report.tokens_read += len(row.words)
    keep: list[int] = []
    for position, (word, tag) in enumerate(zip(row.words, row.tags, strict=True)):
        kept, kept_tag = trimmed(word), trimmed(tag)
        if not kept:
            report.note(BLANK_WORD, row.place(position), tokens=1)
            continue
        if kept != word:
            report.note(TRIMMED_WORD, row.place(position))
            row.words[position] = kept
        if kept_tag != tag:
            report.note(TRIMMED_TAG, row.place(position))
            row.tags[position] = kept_tag
        if "\u00a0" in kept:
            report.note(NBSP_INSIDE, row.place(position))
        keep.append(position)
    if not keep:
        report.note(EMPTY_SENTENCE, row.source)
        return None
    if len(keep) == len(row.words):
        return row
    return TaggedRow(
        [row.words[position] for position in keep],
        [row.tags[position] for position in keep],
        row.source,
        row.file,
        None if row.lines is None else [row.lines[position] for position in keep],
    )


def trimmed(text: str) -> str:
    """Without blanks of any kind, and without byte order marks, at the ends."""
    rest = text.strip()
    while rest.startswith("\ufeff") or rest.endswith("\ufeff"):
        rest = rest.strip("\ufeff").strip()
    return rest
