"""Converts records with named fields (JSON lines, rows of a dataset) to sentences.

A record has words and tags, or a text and its mentions as character spans. All records of a file are alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from cfner.corpus.formats import ReadOptions
from cfner.corpus.report import ReadReport
from cfner.corpus.sentence import Sentence
from cfner.corpus.tagged_words import EMPTY_SENTENCE, TRIMMED_WORD, TaggedRow, sentences_from_rows
from cfner.corpus.text_lines import refuse_unwritable
from cfner.corpus.tokenise import CharSpan, sentence_from_characters, without_blanks
from cfner.errors import CorpusError, located, nearest

WORD_FIELDS = ("tokens", "words")
TAG_FIELDS = ("tags", "ner_tags", "labels", "ner")
TEXT_FIELDS = ("text",)
DOCUMENT_FIELDS = ("document", "doc_id")
SPAN_FIELDS = ("spans", "entities", "label", "labels")
TASK_FIELDS = frozenset({"data", "annotations"})  # fields of an annotation tool's tasks, not of records
NOT_ACCEPTED = ("reject", "ignore")  # not a set: an answer may be anything, even an unhashable list
REJECTED = "record not accepted by its annotator, left out"

Record = Mapping[str, Any]


class _Fields(NamedTuple):
    words: str
    tags: str
    tagged: bool  # True: words and tags; False: a text and spans


def sentences_from_records(
    records: Iterable[tuple[str, Record]], report: ReadReport, options: ReadOptions
) -> list[Sentence]:
    """Sentences in order, from (place, record) pairs."""
    fields: _Fields | None = None
    rows: list[TaggedRow] = []
    sentences: list[Sentence] = []
    for place, record in records:
        with located(place):
            fields = fields or _fields(record, options)
            for name in (fields.words, fields.tags):
                if name not in record:
                    raise CorpusError(
                        f"the field '{name}', which earlier records have, is missing.",
                        remedy="Give all records the same fields.",
                    )
            document = _document(record)
            found: TaggedRow | Sentence = (
                _row(record, fields, options.labels, place)
                if fields.tagged
                else annotated_text(
                    record[fields.words], record[fields.tags], place, report, record.get("offsets")
                )
            )
        if record.get("answer") in NOT_ACCEPTED:  # Prodigy keeps rejected examples in its export
            report.skip(len(found.words), REJECTED, place)
        elif isinstance(found, TaggedRow):
            rows.append(replace(found, document=document))
        else:
            keep_sentence(replace(found, document=document), sentences, report)
    return sentences_from_rows(rows, report, options.scheme) if rows else sentences


def keep_sentence(
    sentence: Sentence, sentences: list[Sentence], report: ReadReport, empty: str = EMPTY_SENTENCE
) -> None:
    """Count a sentence that was split from a text, and keep it if it has words."""
    report.tokens_read += len(sentence)
    if len(sentence):
        report.use(len(sentence))
        sentences.append(sentence)
    else:
        report.note(empty, sentence.source or "")


def _fields(record: Record, options: ReadOptions) -> _Fields:
    asked_words, asked_tags = (
        None if asked is None else str(asked) for asked in (options.token_column, options.tag_column)
    )
    for asked in (asked_words, asked_tags):
        if asked is not None and asked not in record:
            raise CorpusError(f"there is no field '{asked}'.", remedy=nearest(asked, record))
    pairs: list[tuple[Sequence[str], Sequence[str]]] = [(WORD_FIELDS, TAG_FIELDS), (TEXT_FIELDS, SPAN_FIELDS)]
    if asked_words is not None:
        pairs = [([asked_words], SPAN_FIELDS if isinstance(record[asked_words], str) else TAG_FIELDS)]
    for word_names, tag_names in pairs:
        words = next((name for name in word_names if name in record), None)
        tags = asked_tags or next((name for name in tag_names if name in record), None)
        if words is not None and tags is not None:
            return _Fields(words, tags, tagged=tag_names is TAG_FIELDS)
    raise CorpusError(
        "the record has neither words and tags nor a text and spans; "
        f"its fields are: {', '.join(record) or 'none'}.",
        remedy="Name the fields 'tokens' and 'tags', or 'text' and 'spans', or give the column names.",
    )


def _document(record: Record) -> str | None:
    """The document that the record is part of, if a field with a usual name gives it."""
    named = (record[name] for name in DOCUMENT_FIELDS if record.get(name) is not None)
    found = next(named, None)
    if found is None or isinstance(found, str):
        return found
    return str(found) if type(found) is int else None  # a field of that name may contain anything


def _row(record: Record, fields: _Fields, labels: Sequence[str] | None, place: str) -> TaggedRow:
    words, tags = record[fields.words], record[fields.tags]
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise CorpusError(f"'{fields.words}' is not a list of words.", remedy="Give a list of strings.")
    if not isinstance(tags, list):
        raise CorpusError(f"'{fields.tags}' is not a list of tags.", remedy="Give one tag per word.")
    for word in words:
        refuse_unwritable(word)
    return TaggedRow(list(words), [_tag_name(tag, labels) for tag in tags], place)


def _tag_name(tag: object, labels: Sequence[str] | None) -> str:
    if isinstance(tag, str):
        refuse_unwritable(tag)
        return tag
    if isinstance(tag, bool) or not isinstance(tag, int):
        raise CorpusError(f"the tag {tag!r} is not a string.", remedy="Give tags such as 'B-PER' or 'O'.")
    if labels is None:
        raise CorpusError(
            f"the tag {tag} is a number, but no list of labels gives its meaning.",
            remedy="Give the labels in order, or write the tags as strings such as 'B-PER'.",
        )
    if not 0 <= tag < len(labels):
        raise CorpusError(
            f"the tag {tag} is outside the list of {len(labels)} labels.",
            remedy="Give the list of labels that belongs to this file.",
        )
    return labels[tag]


def annotated_text(
    text: object, spans: object, place: str, report: ReadReport, offsets: object = None
) -> Sentence:
    """A sentence from a text and its mentions, checked; repairs are counted."""
    if not isinstance(text, str):
        raise CorpusError("the text is not a string.", remedy="Give the text as one string.")
    refuse_unwritable(text)
    if not isinstance(spans, list):
        raise CorpusError(
            "the spans are not a list.", remedy="Give a list; it is empty where there is no mention."
        )
    mentions = [_mention(span) for span in spans]
    words = None if offsets is None else _offsets(offsets, text, place, report)
    sentence, repairs = sentence_from_characters(text, mentions, offsets=words, source=place)
    for repair in repairs:
        report.note(repair.kind, f"{place} (span {repair.position + 1})")
    return sentence


def _mention(span: object) -> CharSpan:
    parts: object = span
    if isinstance(span, Mapping):
        parts = [span.get("start"), span.get("end"), span.get("label", span.get("type"))]
    match parts:
        case [int(start), int(end), str(type_)] if type_.strip() and bool not in (type(start), type(end)):
            refuse_unwritable(type_)
            return start, end, type_.strip()
    raise CorpusError(
        f"the span {span!r} must have a start, an end and a type.",
        remedy='Write {"start": 0, "end": 3, "label": "PER"} or [0, 3, "PER"].',
    )


def _offsets(offsets: object, text: str, place: str, report: ReadReport) -> list[tuple[int, int]]:
    words: list[tuple[int, int]] = []
    end = 0
    for pair in offsets if isinstance(offsets, list) else [None]:
        match pair:
            case [int(start), int(stop)] if end <= start < stop <= len(text) and text[start:stop].strip():
                words.append(without_blanks(text, start, stop))
                if words[-1] != (start, stop):
                    report.note(TRIMMED_WORD, f"{place} (word {len(words)})")
                end = stop
            case _:
                raise CorpusError(
                    f"the offsets of the words are wrong at {pair!r}.",
                    remedy="Give [start, end] for each word, in order, inside the text, or leave them out.",
                )
    return words
