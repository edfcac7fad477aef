"""Read sentences to tag one by one, from files of any size: text, JSON lines or CoNLL columns."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cfner.corpus.conll_layout import (
    LOOKED_AT,
    Layout,
    Line,
    are_tags,
    find_layout,
    is_document_marker,
    is_word,
    looks_tagged,
    rows_of,
)
from cfner.corpus.corpus import Corpus
from cfner.corpus.formats import ReadOptions
from cfner.corpus.in_memory import Texts, source_name
from cfner.corpus.json_records import TEXT_FIELDS, WORD_FIELDS
from cfner.corpus.report import ReadReport
from cfner.corpus.sentence import Sentence
from cfner.corpus.text_lines import decoded_line, refuse_missing, refuse_unwritable, text_lines
from cfner.corpus.tokenise import sentence_from_characters
from cfner.errors import ConfigError, CorpusError, located, nearest
from cfner.interop.text_names import SUFFIXES, InputFormat

_LOOKED_AT = 100  # sentences used to detect tags


def read_texts(source: Path | None, format: str | None = None) -> Iterator[Sentence]:
    """The sentences of a file (None: standard input), read lazily.

    ``text``: one text per line, split into words here. ``jsonl``: one object per line with ``text`` or with
    ``tokens`` (or ``words``), which are kept as they are. ``conll``: one word per line in the first column
    (or the one named token, word or form), an empty line between sentences; words are kept, tags are
    ignored. By default the suffix of the file decides. A file without a known suffix is text, unless its
    lines are words with tags.
    """
    name = "standard input" if source is None else str(source)
    if source is not None:
        refuse_missing(source)  # now, because lines are read lazily, after a model was loaded
    chosen = _format_of(source, format)
    return _read(_lines(source, name), name, chosen)


@dataclass(frozen=True)
class TextLayout:
    """How the lines of one file are read; ``columns`` of a CoNLL file."""

    format: InputFormat
    columns: Layout | None = None

    @classmethod
    def of(cls, source: Path, format: str | None = None) -> TextLayout:
        """The layout that ``read_texts`` uses, from the suffix of a file and its first lines."""
        chosen, lines = _format_of(source, format), _lines(source, str(source))
        if chosen is None:
            beginning = list(_up_to(LOOKED_AT, lines))
            chosen, lines = _text_or_conll(beginning), iter(beginning)
        return cls(chosen, _columns(lines, str(source))[0] if chosen == "conll" else None)

    def sentences(self, lines: Iterable[Line], name: str) -> Iterator[Sentence]:
        """The sentences of lines, anywhere in the file ``name``."""
        if self.columns is not None:
            return _rows(lines, self.columns, name)
        return _texts(lines, name) if self.format == "text" else _records(lines, name)


def unlabelled_text(source: Texts) -> tuple[Sentence, ...]:
    """The sentences of a file in the formats of ``read_texts``, the training sentences of a corpus folder, or
    texts and sentences in memory.

    Labels and sentences without words are dropped. Used for unlabelled text in training.
    """
    folder = isinstance(source, str | Path) and Path(source).is_dir()
    found: Iterable[Sentence]
    if isinstance(source, str | Path):
        found = Corpus.read(source).train if folder else read_texts(Path(source))
    elif isinstance(source, Corpus):
        found = source.train
    else:
        from cfner.interop.texts_to_tag import TextsToTag

        found = TextsToTag.of(source).sentences
    sentences = tuple(replace(sentence.only(()), record=None) for sentence in found if len(sentence))
    if not sentences:
        raise CorpusError(
            "There is no training sentence in this folder." if folder else "The file contains no text.",
            where=source_name(source),
            remedy="Name a file with one text per line, JSON lines or CoNLL columns, or a corpus folder.",
        )
    if are_tags([word for sentence in sentences[:_LOOKED_AT] for word in sentence.words]):
        raise CorpusError(
            f"The first column contains tags such as {sentences[0].words[0]!r}: the columns are swapped.",
            where=source_name(source),
            remedy="Write the words into the first column and the tags into the last.",
        )
    return sentences


def sentence_of_text(text: str, place: str) -> Sentence:
    """A text with its words; ``place`` is where it came from."""
    with located(place):
        refuse_unwritable(text)
    return sentence_from_characters(text, [], source=place)[0]


def _format_of(source: Path | None, asked: str | None) -> InputFormat | None:
    """The requested format, or that of the suffix; a .txt file may contain prose, or words with tags."""
    if asked is not None:
        found = next((format for format in SUFFIXES if format == asked), None)
        if found is None:
            raise ConfigError(f"There is no input format '{asked}'.", remedy=nearest(asked, SUFFIXES))
        return found
    suffix = "" if source is None else source.suffix.lower()
    certain = (format for format, suffixes in SUFFIXES.items() if format != "text" and suffix in suffixes)
    return next(certain, None)


def _lines(source: Path | None, name: str) -> Iterator[Line]:
    repaired = ReadReport()  # byte order marks and line endings that were removed; not reported here
    if source is not None:
        lines = text_lines(source, repaired)
        return itertools.chain(
            list(itertools.islice(lines, 1)), lines
        )  # read one line, so that a missing file is reported at once
    if sys.stdin is None:  # Python sets it to None if it is closed
        raise ConfigError(
            "There is no text to read: standard input is closed.",
            remedy="Give a text or a file, or pipe one in.",
        )
    given = enumerate(sys.stdin.buffer, start=1)
    return ((number, decoded_line(raw, f"{name}:{number}", number == 1, repaired)) for number, raw in given)


def _texts(lines: Iterable[Line], name: str) -> Iterator[Sentence]:
    return (sentence_of_text(line, f"{name}:{number}") for number, line in lines)


def _read(lines: Iterator[Line], name: str, format: InputFormat | None) -> Iterator[Sentence]:
    if format is None:
        beginning = list(_up_to(LOOKED_AT, lines))
        format, lines = _text_or_conll(beginning), itertools.chain(beginning, lines)
    if format == "conll":
        layout, lines = _columns(lines, name)
        yield from _rows(lines, layout, name)
    else:
        yield from _texts(lines, name) if format == "text" else _records(lines, name)


def _text_or_conll(beginning: Iterable[Line]) -> InputFormat:
    return "conll" if looks_tagged(beginning) else "text"


def _records(lines: Iterable[Line], name: str) -> Iterator[Sentence]:
    return (_record(line, f"{name}:{number}") for number, line in lines if line.strip())


def _record(line: str, place: str) -> Sentence:
    with located(place):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise CorpusError(
                f"Not valid JSON ({error}).", remedy="Write one JSON object per line."
            ) from error
        return sentence_of_record(record if isinstance(record, dict) else {}, place)


def sentence_of_record(fields: Mapping[str, Any], place: str) -> Sentence:
    """The sentence of a record with ``text``, or with ``tokens`` that are kept; the record is passed on."""
    with located(place):
        words = next((fields[field] for field in WORD_FIELDS if field in fields), None)
        text = next((fields[field] for field in TEXT_FIELDS if field in fields), None)
        if words is not None:
            return replace(sentence_of_words(words, text, place), record=fields)
        if not isinstance(text, str):
            raise CorpusError(
                "The record has neither 'text' nor 'tokens'.",
                remedy='Write {"text": "..."} or {"tokens": ["...", "..."]}.',
            )
        return replace(sentence_of_text(text, place), record=fields)


def sentence_of_words(words: Any, text: Any, place: str) -> Sentence:
    if not isinstance(words, list) or not all(isinstance(word, str) and word for word in words):
        remedy = 'Write "tokens": ["...", "..."].'
        raise CorpusError("`tokens` must be a list of non-empty strings.", remedy=remedy)
    for word in words:
        refuse_unwritable(word)
    if text is None:
        return Sentence(tuple(words), source=place)
    if not isinstance(text, str):
        raise CorpusError("`text` must be a string.", remedy="Give the text as one string.")
    refuse_unwritable(text)
    return Sentence(tuple(words), text=text, offsets=_places_of(words, text), source=place)


def _places_of(words: list[str], text: str) -> tuple[tuple[int, int], ...]:
    """The offsets of the words in the text, which must consist of the words and whitespace."""
    remedy = "Leave out the text or the words, or let the words cover all of the text except whitespace."
    offsets, at = [], 0
    for word in words:
        start = text.find(word, at)
        if start < 0 or text[at:start].strip():
            found = (
                f"The record has text and words, but the word {word!r} is not in the text at character {at}."
            )
            raise CorpusError(found, remedy=remedy)
        at = start + len(word)
        offsets.append((start, at))
    if text[at:].strip():
        raise CorpusError(f"The text continues at character {at}, after the last word.", remedy=remedy)
    return tuple(offsets)


def _columns(lines: Iterator[Line], name: str) -> tuple[Layout, Iterator[Line]]:
    """The layout of a CoNLL file, and all of its lines again."""
    beginning = list(_up_to_first_word(lines))
    layout = _layout([line for line in beginning if line[1].strip()], name)
    return layout, itertools.chain(beginning, lines)


def _rows(lines: Iterable[Line], layout: Layout, name: str) -> Iterator[Sentence]:
    for row in rows_of(lines, layout, name, ReadReport(), _is_word):
        words = tuple(word.strip() for word in row.words)
        if "" in words:
            raise CorpusError(
                f"There is no word in column {layout.token}.",
                where=row.place(words.index("")),
                remedy="Separate the columns of all lines in the same way, by tabs or by spaces.",
            )
        yield Sentence(words, source=row.source)


def _up_to(most: int, lines: Iterator[Line]) -> Iterator[Line]:
    """Lines up to this many non-empty ones."""
    filled = 0
    for line in lines:
        yield line
        filled += bool(line[1].strip())
        if filled == most:
            return


def _up_to_first_word(lines: Iterator[Line]) -> Iterator[Line]:
    for line in lines:
        yield line
        if line[1].strip() and not line[1].startswith("#") and not is_document_marker(line[1]):
            return


def _layout(lines: list[Line], name: str) -> Layout:
    """Which column holds the words: the first, unless a comment or a header names another."""
    last = lines[-1][1] if lines else ""
    alone = Layout(tabs="\t" in last, columns=1, token=0, tag=0, header=None)
    return alone if len(alone.cells(last)) <= 1 else find_layout(lines, Path(name), ReadOptions())


def _is_word(line: str, cells: list[str], layout: Layout, *, inside: bool) -> bool:
    """Whether a line is a comment, by the rule for training data; but here a word needs no tag."""
    hashtag = len(cells) == layout.columns and not line.startswith("# ")
    return hashtag or is_word(line, cells, layout, known_tags=set(), inside=inside)
