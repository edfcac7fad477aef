"""Words with tags to sentences with spans: the last stage of every reader of tagged words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cfner.corpus.report import ReadReport
from cfner.corpus.sentence import Sentence
from cfner.corpus.tags import Scheme, TagError, detect_scheme, spans_from_tags
from cfner.errors import CorpusError

BLANK_WORD = "word of whitespace only, left out"
TRIMMED_WORD = "whitespace trimmed from a word"
TRIMMED_TAG = "whitespace trimmed from a tag"
NBSP_INSIDE = "no-break space inside a word, kept"
EMPTY_SENTENCE = "sentence without words, left out"


@dataclass
class TaggedRow:
    """One sentence as it is in the file. ``places`` has the place of each word, where words have one."""

    words: list[str]
    tags: list[str]
    source: str
    places: Sequence[str] | None = None
    document: str | None = None

    def place(self, position: int) -> str:
        return self.places[position] if self.places else f"{self.source} (word {position + 1})"


def sentences_from_rows(
    rows: Sequence[TaggedRow], report: ReadReport, scheme: Scheme | None
) -> list[Sentence]:
    """Sentences in order; counts every token as read, and as used or reported."""
    cleaned = [clean for row in rows if (clean := _clean(row, report)).words]
    try:
        report.scheme = found = scheme or detect_scheme([row.tags for row in cleaned])
    except TagError as error:
        error.where = cleaned[error.sentence].place(error.position)
        raise
    return [_sentence(row, found, report) for row in cleaned]


def _sentence(row: TaggedRow, scheme: Scheme, report: ReadReport) -> Sentence:
    try:
        spans, repairs = spans_from_tags(row.tags, scheme)
    except TagError as error:
        error.where = row.place(error.position)
        raise
    for repair in repairs:
        report.note(repair.kind, row.place(repair.position))
    report.use(len(row.words))
    return Sentence(tuple(row.words), tuple(spans), source=row.source, document=row.document)


def _clean(row: TaggedRow, report: ReadReport) -> TaggedRow:
    """The row without whitespace-only words and without whitespace around words and tags."""
    if len(row.words) != len(row.tags):
        raise CorpusError(
            f"{len(row.words)} words but {len(row.tags)} tags.",
            where=row.source,
            remedy="Give one tag per word.",
        )
    report.tokens_read += len(row.words)
    kept: list[int] = []
    for position, (word, tag) in enumerate(zip(row.words, row.tags, strict=True)):
        row.words[position], row.tags[position] = clean, clean_tag = trimmed(word), trimmed(tag)
        if not clean:
            report.note(BLANK_WORD, row.place(position), tokens=1)
            continue
        if clean != word:
            report.note(TRIMMED_WORD, row.place(position))
        if clean_tag != tag:
            report.note(TRIMMED_TAG, row.place(position))
        if "\u00a0" in clean:
            report.note(NBSP_INSIDE, row.place(position))
        kept.append(position)
    if not kept:
        report.note(EMPTY_SENTENCE, row.source)
    if len(kept) == len(row.words):
        return row
    columns = (row.words, row.tags, row.places or ())
    words, tags, places = ([column[position] for position in kept if column] for column in columns)
    return TaggedRow(words, tags, row.source, places, row.document)


def trimmed(text: str) -> str:
    """Without whitespace of any kind, and without byte order marks, at the ends."""
    rest = text.strip()
    while rest.startswith("\ufeff") or rest.endswith("\ufeff"):
        rest = rest.strip("\ufeff").strip()
    return rest
