"""Sentences to be tagged, read one by one from files of any size: text, JSON lines or CoNLL columns."""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

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

InputFormat = Literal["text", "jsonl", "conll"]
_SUFFIXES: dict[InputFormat, tuple[str, ...]] = {
    "text": (".txt", ".text", ".md"),
    "jsonl": (".jsonl", ".ndjson", ".json"),
    "conll": (".conll", ".conllup", ".tsv", ".bio", ".iob", ".iob2", ".bioes", ".bilou"),
}
_DOCUMENTS = (
    ".csv",
    ".doc",
    ".docx",
    ".gz",
    ".html",
    ".log",
    ".odt",
    ".pdf",
    ".rtf",
    ".spacy",
    ".xml",
    ".zip",
)

_LOOKED_AT = 100  # sentences, to tell words from tags


def read_texts(source: Path | None, format: str | None = None) -> Iterator[Sentence]:
    """The sentences of a file (None: standard input), read while they are used.

    ``text``: one text per line, cut into words here. ``jsonl``: one object per line with ``text`` or with
    ``tokens`` (or ``words``), which are kept as they are. ``conll``: one word per line in the first column
    (or the one named token, word or form), an empty line between sentences; words are kept, tags are not
    looked at. By default the suffix of the file decides; what has no known one is text, unless its lines are
    words with their tags.
    """
    name = "standard input" if source is None else str(source)
    if source is not None:
        refuse_missing(source)  # now: lines are read when they are used, which is after a model was loaded
    lines = _lines(source, name)
    match format or _format_of(source):
        case None:
            return _text_or_columns(lines, name)
        case "text":
            return _texts(lines, name)
        case "jsonl":
            return (_record(line, f"{name}:{number}") for number, line in lines if line.strip())
        case "conll":
            return _conll(lines, name)
        case other:
            raise ConfigError(f"There is no input format '{other}'.", remedy=nearest(str(other), _SUFFIXES))


def unlabelled_text(source: Texts) -> tuple[Sentence, ...]:
    """The sentences of a file in the formats of ``read_texts``, the training sentences of a corpus folder, or
    texts and sentences in memory.

    Labels are dropped, and so are sentences without words. Used wherever a model is reminded of old types.
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
            "There is no training sentence in this folder." if folder else "There is no text in it.",
            where=source_name(source),
            remedy="Name a file with one text per line, JSON lines or CoNLL columns, or a corpus folder.",
        )
    if are_tags([word for sentence in sentences[:_LOOKED_AT] for word in sentence.words]):
        raise CorpusError(
            f"The words of the text are tags such as {sentences[0].words[0]!r}: its columns are swapped.",
            where=source_name(source),
            remedy="Put the words first and the tags last, and write the file again.",
        )
    return sentences


def is_text_file(name: str) -> bool:
    """Whether the name ends as one of a file of text does."""
    return Path(name).suffix.lower() in itertools.chain.from_iterable(_SUFFIXES.values())


def is_file(one: object) -> bool:
    """Whether it names a file or a folder, there or not: a misspelt name is not taken for a text."""
    if not isinstance(one, str):
        return isinstance(one, Path)
    is_there = os.path.exists(one)  # noqa: PTH110 - Path.exists raises if the text is too long for a name
    return len(one.split()) == 1 or is_there or is_text_file(one)


def looks_like_file(text: str) -> bool:
    """Whether a text is the name of a file that is there, or one word that ends as a file's name does."""
    ends = len(text.split()) == 1 and (is_text_file(text) or Path(text).suffix.lower() in _DOCUMENTS)
    return ends or os.path.isfile(text)  # noqa: PTH113 - Path's raises if the text is too long for a name


def sentence_of_text(text: str, place: str) -> Sentence:
    """A text with its words; ``place`` is where it came from."""
    with located(place):
        refuse_unwritable(text)
    return sentence_from_characters(text, [], source=place)[0]


def _format_of(source: Path | None) -> InputFormat | None:
    """What a suffix says for certain; a .txt may hold prose, or words with their tags."""
    suffix = "" if source is None else source.suffix.lower()
    certain = (format for format, suffixes in _SUFFIXES.items() if format != "text" and suffix in suffixes)
    return next(certain, None)


def _lines(source: Path | None, name: str) -> Iterator[Line]:
    repaired = ReadReport()  # marks and line endings that were taken off; nothing to tell of here
    if source is not None:
        lines = text_lines(source, repaired)
        return itertools.chain(list(itertools.islice(lines, 1)), lines)  # a missing file is refused at once
    if sys.stdin is None:  # which Python makes of a closed one
        raise ConfigError(
            "There is no text to read: standard input is closed.",
            remedy="Give a text or a file, or pipe one in.",
        )
    given = enumerate(sys.stdin.buffer, start=1)
    return ((number, decoded_line(raw, f"{name}:{number}", number == 1, repaired)) for number, raw in given)


def _texts(lines: Iterable[Line], name: str) -> Iterator[Sentence]:
    return (sentence_of_text(line, f"{name}:{number}") for number, line in lines)


def _text_or_columns(lines: Iterator[Line], name: str) -> Iterator[Sentence]:
    beginning = list(_up_to(LOOKED_AT, lines))
    lines = itertools.chain(beginning, lines)
    yield from _conll(lines, name) if looks_tagged(beginning) else _texts(lines, name)


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
    """A record with a ``text``, or with ``tokens`` that are kept as they are; it goes along."""
    with located(place):
        words = next((fields[field] for field in WORD_FIELDS if field in fields), None)
        text = next((fields[field] for field in TEXT_FIELDS if field in fields), None)
        if words is not None:
            return replace(sentence_of_words(words, text, place), record=fields)
        if not isinstance(text, str):
            raise CorpusError(
                "There is neither a 'text' nor 'tokens' in it.",
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
        raise CorpusError("The text is no string.", remedy="Give the text as one string.")
    refuse_unwritable(text)
    return Sentence(tuple(words), text=text, offsets=_places_of(words, text), source=place)


def _places_of(words: list[str], text: str) -> tuple[tuple[int, int], ...]:
    """Where each word stands; with nothing but blanks between words there is no other way to place them."""
    remedy = "Leave out the text or the words, or let them agree: all of the text but its blanks in words."
    offsets, at = [], 0
    for word in words:
        start = text.find(word, at)
        if start < 0 or text[at:start].strip():
            told = f"The word {word!r} does not follow in the text at character {at}"
            raise CorpusError(f"{told}, although the record has both.", remedy=remedy)
        at = start + len(word)
        offsets.append((start, at))
    if text[at:].strip():
        raise CorpusError(f"The text goes on at character {at}, where the words end.", remedy=remedy)
    return tuple(offsets)


def _conll(lines: Iterator[Line], name: str) -> Iterator[Sentence]:
    beginning = list(_up_to_first_word(lines))
    layout = _layout([line for line in beginning if line[1].strip()], name)
    for row in rows_of(itertools.chain(beginning, lines), layout, name, ReadReport(), _is_word):
        words = tuple(word.strip() for word in row.words)
        if "" in words:
            raise CorpusError(
                f"There is no word in column {layout.token}.",
                where=row.place(words.index("")),
                remedy="Separate the columns of all lines in the same way, by tabs or by blanks.",
            )
        yield Sentence(words, source=row.source)


def _up_to(most: int, lines: Iterator[Line]) -> Iterator[Line]:
    """Lines until so many of them had something in them."""
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
    """The rule of training; but beside a word there need be no tag, so '#tag' is one with anything."""
    hashtag = len(cells) == layout.columns and not line.startswith("# ")
    return hashtag or is_word(line, cells, layout, known_tags=set(), inside=inside)
