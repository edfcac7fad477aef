"""CoNLL columns: one word per line with its tag, an empty line between sentences.

Columns are separated by tabs if the first line of words contains one, else by runs of blanks (ASCII blanks
alone: a no-break space never separates). They may be named by ``# columns: token tag``, by CoNLL-U Plus'
``# global.columns = FORM NER``, or by a first line such as ``token  tag``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from cfner.corpus.conll_layout import (
    Layout,
    Line,
    check_columns,
    find_layout,
    is_document_marker,
    is_word,
    names_columns,
)
from cfner.corpus.formats import Format, Reading, ReadOptions, register
from cfner.corpus.report import ReadReport
from cfner.corpus.sentence import Sentence
from cfner.corpus.tagged_words import TaggedRow, sentences_from_rows, trimmed
from cfner.corpus.tags import Scheme, TagError, parse_tag, tags_from_spans
from cfner.corpus.text_lines import text_lines
from cfner.errors import CorpusError

DOCUMENT_MARKER = "-DOCSTART- line, left out"
COMMENT = "comment line"
HEADER = "line with the names of the columns"
BLANK_LINE = "line of blanks taken as the end of a sentence"


def read(path: Path, options: ReadOptions) -> Reading:
    report = ReadReport(format="conll", files=(str(path),))
    lines = list(text_lines(path, report))
    layout = find_layout(lines, path, options)
    rows = list(_rows(lines, layout, path, report))
    return sentences_from_rows(rows, report, options.scheme), report


def _rows(lines: Sequence[Line], layout: Layout, path: Path, report: ReadReport) -> Iterator[TaggedRow]:
    seen_tags = _bare_tags(lines, layout)
    words: list[str] = []
    tags: list[str] = []
    numbers: list[int] = []

    def finished() -> Iterator[TaggedRow]:
        nonlocal words, tags, numbers
        if words:
            yield TaggedRow(words, tags, f"{path}:{numbers[0]}", str(path), numbers)
        words, tags, numbers = [], [], []

    for number, line in lines:
        place = f"{path}:{number}"
        if not line.strip():
            if line:
                report.note(BLANK_LINE, place)
            yield from finished()
            continue
        cells = layout.cells(line)
        if number == layout.header:
            report.note(HEADER, place)
        elif is_document_marker(line):
            report.tokens_read += 1
            report.note(DOCUMENT_MARKER, place, tokens=1)
            yield from finished()
        elif line.startswith("#") and not is_word(line, cells, layout, seen_tags, inside=bool(words)):
            report.note(COMMENT, place)
        else:
            check_columns(line, cells, layout, place)
            words.append(cells[layout.token])
            tags.append(cells[layout.tag])
            numbers.append(number)
    yield from finished()


def _bare_tags(lines: Sequence[Line], layout: Layout) -> set[str]:
    """Tags on lines that are no comments; in a file of bare types they tell the word '#' from a remark."""
    found: set[str] = set()
    for number, line in lines:
        if not line.startswith("#") and number != layout.header:
            cells = layout.cells(line)
            if len(cells) == layout.columns:
                found.add(cells[layout.tag])
    return found


def write(sentences: Sequence[Sentence], file: IO[bytes], scheme: Scheme) -> None:
    """Word, tab, tag; an empty line after each sentence. Texts are not kept, only their words."""
    opening = True
    for index, sentence in enumerate(sentences):
        where = sentence.source or f"sentence {index + 1}"
        try:
            tags = tags_from_spans(sentence.spans, len(sentence), scheme)
        except TagError as error:
            raise error.at(error.position, index, where) from None
        file.write(columns_of(sentence.words, tags, where, opening=opening).encode())
        opening = opening and all(word.startswith("#") for word in sentence.words)


def columns_of(words: Sequence[str], tags: Sequence[str], where: str | None, *, opening: bool) -> str:
    """The lines of a sentence, with an empty one after it. What would be read as something else is refused.

    ``opening``: no line before these is of a word without '#', so that they may still name the columns.
    """
    lines = []
    for word, tag in zip(words, tags, strict=True):
        opening = opening and word.startswith("#")
        fault = _fault(word, tag, opening)
        if fault is not None:
            raise CorpusError(
                fault, where=where, remedy="Write JSON lines (jsonl) instead, which keep any character."
            )
        lines.append(f"{word}\t{tag}\n")
    return "".join(lines) + "\n"


def _fault(word: str, tag: str, opening: bool) -> str | None:
    """Why a line of this word and tag would be read as something else, if it would."""
    for cell in (word, tag):
        if not trimmed(cell) or any(character in cell for character in "\t\n\r\0"):
            return f"the word or tag {cell!r} cannot stand in a column."
    line = f"{word}\t{tag}".lstrip("\ufeff")  # as readers take it
    if is_document_marker(line):
        return f"the word {word!r} would be read as the mark between documents."
    if opening and names_columns(line):
        return f"the word {word!r} would be read as the names of the columns."
    try:
        parse_tag(tag)
    except TagError:
        return f"the tag {tag!r} would not be read: its type has no letter or digit."
    return None


register(
    Format(
        name="conll",
        summary="one word per line with its tag, in columns",
        suffixes=(".conll", ".txt", ".tsv", ".bio", ".iob", ".iob2", ".bioes", ".bilou", ".conllup"),
        read=read,
        write=write,
    )
)
