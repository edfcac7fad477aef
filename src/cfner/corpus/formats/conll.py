"""CoNLL columns: one word per line with its tag, an empty line between sentences.

Columns are separated by tabs if the first line of words contains one, else by runs of ASCII whitespace (a
no-break space never separates). They may be named by ``# columns: token tag``, by CoNLL-U Plus'
``# global.columns = FORM NER``, or by a first line such as ``token  tag``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import IO

from cfner.corpus.conll_layout import (
    Layout,
    Line,
    find_layout,
    is_document_marker,
    is_word,
    names_columns,
    refuse_swapped,
    rows_of,
)
from cfner.corpus.formats import Format, ReadOptions
from cfner.corpus.report import ReadReport
from cfner.corpus.sentence import Sentence
from cfner.corpus.tagged_words import sentences_from_rows, trimmed
from cfner.corpus.tags import Scheme, TagError, parse_tag, tags_from_spans
from cfner.corpus.text_lines import text_lines
from cfner.errors import CorpusError, located


def read(path: Path, options: ReadOptions, report: ReadReport) -> list[Sentence]:
    lines = list(text_lines(path, report))
    layout = find_layout(lines, path, options)
    if options.tag_column is None and options.token_column is None:
        refuse_swapped(lines, layout, path)
    rows = rows_of(lines, layout, str(path), report, partial(is_word, known_tags=_bare_tags(lines, layout)))
    return sentences_from_rows(list(rows), report, options.scheme)


def _bare_tags(lines: Sequence[Line], layout: Layout) -> set[str]:
    """Tags on lines that are not comments. With bare types they separate the word '#' from comments."""
    rows = (
        layout.cells(line) for number, line in lines if not line.startswith("#") and number != layout.header
    )
    return {cells[layout.tag] for cells in rows if len(cells) == layout.columns}


def write(sentences: Sequence[Sentence], file: IO[bytes], scheme: Scheme) -> None:
    """Word, tab, tag; an empty line after each sentence. The original text is not written, only its words."""
    opening = True
    for number, sentence in enumerate(sentences, start=1):
        with located(sentence.source or f"sentence {number}"):
            tags = tags_from_spans(sentence.spans, len(sentence), scheme)
            file.write(columns_of(sentence.words, tags, opening=opening).encode())
        opening = opening and all(word.startswith("#") for word in sentence.words)


def columns_of(words: Sequence[str], tags: Sequence[str], *, opening: bool) -> str:
    """The lines of a sentence and an empty line. Refuses a line that a reader would take for something else.

    ``opening``: no earlier line has a word without '#', so a reader could still take a line for the header.
    """
    lines = []
    for word, tag in zip(words, tags, strict=True):
        opening = opening and word.startswith("#")
        fault = _fault(word, tag, opening)
        if fault is not None:
            raise CorpusError(fault, remedy="Write JSON lines (jsonl) instead, which keep any character.")
        lines.append(f"{word}\t{tag}\n")
    return "".join(lines) + "\n"


def _fault(word: str, tag: str, opening: bool) -> str | None:
    """Why a reader would take the line of this word and tag for something else; None if it would not."""
    for cell in (word, tag):
        if not trimmed(cell) or any(character in cell for character in "\t\n\r\0"):
            return f"the word or tag {cell!r} cannot be written in a column."
    line = f"{word}\t{tag}".lstrip("\ufeff")  # as a reader sees it
    if is_document_marker(line):
        return f"the word {word!r} would be read as the mark between documents."
    if opening and names_columns(line):
        return f"the word {word!r} would be read as the names of the columns."
    try:
        parse_tag(tag)
    except TagError:
        return f"the tag {tag!r} could not be read back: its type has no letter or digit."
    return None


FORMAT = Format(
    name="conll",
    suffixes=(".conll", ".txt", ".tsv", ".bio", ".iob", ".iob2", ".bioes", ".bilou", ".conllup"),
    read=read,
    write=write,
)
