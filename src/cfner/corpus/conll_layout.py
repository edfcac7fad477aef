"""The layout of a CoNLL file: how its lines become columns, sentences, comments and headers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from cfner.corpus.formats import ReadOptions
from cfner.corpus.report import ReadReport
from cfner.corpus.tagged_words import TaggedRow
from cfner.corpus.tags import TagError, parse_tag
from cfner.errors import CorpusError, located, nearest

TOKEN_NAMES = ("token", "tokens", "word", "words", "form", "text")
TAG_NAMES = ("ner", "ner_tag", "ner_tags", "tag", "tags", "label", "labels", "entity", "bio")

DOCUMENT_MARKER = "-DOCSTART- line between documents"
COMMENT = "comment line"
HEADER = "line with the names of the columns"
BLANK_LINE = "whitespace-only line taken as the end of a sentence"

LOOKED_AT = 200  # non-empty lines that decide whether a file has columns or prose
_TAG = re.compile(r"O|[BIESLUM]-\S+")
_ROWS_LOOKED_AT = 1000  # rows that decide which column has words and which has tags

_COLUMNS_COMMENT = re.compile(r"#\s*(?:global\.)?columns\s*[:=]?\s+(.+)", re.IGNORECASE)

Line = tuple[int, str]


@dataclass(frozen=True)
class Layout:
    """How to cut the lines of one file, and which columns to read."""

    tabs: bool
    columns: int
    token: int
    tag: int
    header: int | None  # number of the header line, if the first line only names the columns

    def cells(self, line: str) -> list[str]:
        return _cells(line, self.tabs)


def _cells(line: str, tabs: bool) -> list[str]:
    return line.split("\t") if tabs else [cell for cell in re.split(r"[ \t]+", line) if cell]


def is_document_marker(line: str) -> bool:
    return line.startswith("-DOCSTART-") and line[10:11].strip() == ""


def names_columns(line: str) -> bool:
    """Whether a line at the start of a file is the comment that names its columns."""
    return _COLUMNS_COMMENT.fullmatch(line) is not None


def looks_tagged(lines: Iterable[Line]) -> bool:
    """Whether these first lines of a file are words with their tags, and not prose.

    A line of columns ends in a tag. Prose may end in a capital O, but not line after line.
    """
    filled = [_cells(line.strip(), tabs=False) for _, line in lines if line.strip()]
    tagged = sum(len(cells) > 1 and _TAG.fullmatch(cells[-1]) is not None for cells in filled)
    return tagged * 2 > len(filled)


def find_layout(lines: Sequence[Line], path: Path, options: ReadOptions) -> Layout:
    """The layout of the first line with a word; all other lines must have the same."""
    content = [line for line in lines if line[1].strip() and not is_document_marker(line[1])]
    # A word may begin with '#', so such lines decide the layout only if there are no others.
    sample = next((line for line in content if not line[1].startswith("#")), None) or next(
        (line for line in content if "\t" in line[1]), None
    )
    if sample is None:
        raise CorpusError(
            "the file has no line with a word and its tag.",
            where=str(path),
            remedy="Write one word per line, a tab, its tag, and an empty line between sentences.",
        )
    number, text = sample
    tabs = "\t" in text
    cells = _cells(text, tabs)
    with located(f"{path}:{number}"):
        if len(cells) < 2:
            raise CorpusError("a word without a tag.", remedy=_remedy(text))
        names = _names_in_comment(content)
        header = None
        if names is None and _is_header(cells, options):
            names, header = [cell.strip() for cell in cells], number
        if names is not None and len(names) != len(cells):
            raise CorpusError(
                f"{len(cells)} columns, but {len(names)} are named ({', '.join(names)}).",
                remedy="Name every column of the file, in order.",
            )
        tag = _column(options.tag_column, TAG_NAMES, -1, names, of=len(cells))
        usual = -1 if tag == 0 else 0  # tags in the first column: words are in the last
        token = _column(options.token_column, TOKEN_NAMES, usual, names, of=len(cells))
        return Layout(tabs, len(cells), token, tag, header)


def refuse_swapped(lines: Iterable[Line], layout: Layout, path: Path) -> None:
    """Refuse swapped columns (tags first, words second): every word would become a type."""
    cut = ((number, layout.cells(line)) for number, line in lines if line.strip() and number != layout.header)
    rows = [row for row in islice(cut, _ROWS_LOOKED_AT) if len(row[1]) == layout.columns]
    words, tags = ([cells[column] for _, cells in rows] for column in (layout.token, layout.tag))
    if are_tags(words) and not are_tags(tags):
        raise CorpusError(
            f"the columns are swapped: tags such as {words[0]!r} are where words are expected, and words "
            f"such as {tags[0]!r} where tags are expected.",
            where=f"{path}:{rows[0][0]}",
            remedy=f"Name the tag column: `tag_column={layout.token}`.",
        )


def are_tags(cells: Sequence[str]) -> bool:
    """Whether these are tags and not words: in running text, half of the words are never O or B-something."""
    return bool(cells) and 2 * sum(_TAG.fullmatch(cell.strip()) is not None for cell in cells) >= len(cells)


def _names_in_comment(content: Sequence[Line]) -> list[str] | None:
    for _, text in content:
        if not text.startswith("#"):
            return None
        if match := _COLUMNS_COMMENT.fullmatch(text):
            return match.group(1).split()
    return None


def _is_header(cells: Sequence[str], options: ReadOptions) -> bool:
    """Whether the first line names its columns: one of them as words, another as tags."""
    names = {cell.strip().lower() for cell in cells}
    return all(
        names & {*usual, str(asked).lower()}
        for usual, asked in ((TOKEN_NAMES, options.token_column), (TAG_NAMES, options.tag_column))
    )


def _column(
    asked: str | int | None, usual: Sequence[str], default: int, names: Sequence[str] | None, *, of: int
) -> int:
    """Number of a column: the requested one, else the one with a usual name, else the default."""
    if isinstance(asked, int) and not -of <= asked < of:
        raise CorpusError(
            f"there is no column {asked}: the line has {of} columns.",
            remedy=f"Columns count from 0 to {of - 1}; -1 is the last.",
        )
    if isinstance(asked, int):
        return asked % of
    if names is None and asked is not None:
        raise CorpusError(
            f"no line names the columns, so there is no column '{asked}'.",
            remedy="Give its number (from 0; -1 is the last), or begin the file with '# columns: ...'.",
        )
    lowered = [name.lower() for name in names or ()]
    if asked is not None and asked.lower() not in lowered:
        raise CorpusError(f"there is no column '{asked}'.", remedy=nearest(asked, names or ()))
    wanted = usual if asked is None else [asked.lower()]
    return next((lowered.index(name) for name in wanted if name in lowered), default % of)


def rows_of(
    lines: Iterable[Line], layout: Layout, name: str, report: ReadReport, is_word: Callable[..., bool]
) -> Iterator[TaggedRow]:
    """The sentences of a file, one by one. ``is_word`` decides about lines that begin with '#'."""
    words: list[str] = []
    tags: list[str] = []
    places: list[str] = []
    document: str | None = None
    for number, line in chain(lines, [(0, "")]):  # the last sentence needs no empty line after it
        place = f"{name}:{number}"
        marker = is_document_marker(line)
        if marker or not line.strip():
            if marker:
                report.skip(1, DOCUMENT_MARKER, place)
            elif line:
                report.note(BLANK_LINE, place)
            if words:
                yield TaggedRow(words, tags, places[0], places, document)
            words, tags, places = [], [], []
            document = place if marker else document
            continue
        cells = layout.cells(line)
        if number == layout.header:
            report.note(HEADER, place)
        elif line.startswith("#") and not is_word(line, cells, layout, inside=bool(words)):
            report.note(COMMENT, place)
        else:
            if "\r" in line or len(cells) != layout.columns:
                raise _broken(line, cells, layout, place)
            words.append(cells[layout.token])
            tags.append(cells[layout.tag])
            places.append(place)


def is_word(line: str, cells: Sequence[str], layout: Layout, *, known_tags: set[str], inside: bool) -> bool:
    """Whether a line that begins with '#' is a word ('#hashtag O') and not a comment ('# id 7').

    With as many columns as the other lines it is a word if its tag is a valid one. With a different number it
    is a comment if it is between sentences or if a space follows the '#'. Otherwise the line is an error.
    """
    if len(cells) != layout.columns:
        return inside and not line.startswith("# ") and line != "#"
    tag = cells[layout.tag].strip()
    try:
        return tag in known_tags or parse_tag(tag).prefix != ""
    except TagError:
        return True  # the caller then reports the line as an error instead of skipping it


def _broken(line: str, cells: Sequence[str], layout: Layout, place: str) -> CorpusError:
    if "\r" in line:
        remedy = "End lines with a line feed: tr '\\r' '\\n'."
        return CorpusError("a carriage return inside the line.", where=place, remedy=remedy)
    counted = "1 column" if len(cells) == 1 else f"{len(cells)} columns"
    return CorpusError(f"{counted} where the file has {layout.columns}.", where=place, remedy=_remedy(line))


def _remedy(line: str) -> str:
    if "\u00a0" in line:
        return "The line has a no-break space, which does not separate columns: replace it with a tab."
    return "Separate the columns of all lines in the same way, by tabs or by spaces."
