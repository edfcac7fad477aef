"""Files as lines of text: repairs and counts encoding problems, and refuses what it cannot repair."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from cfner.corpus.report import ReadReport
from cfner.errors import CorpusError
from cfner.files.near import did_you_mean

BOM_REMOVED = "byte order mark removed"
CRLF = "Windows line ending (CRLF)"

_UNWRITABLE = re.compile("[\0\ud800-\udfff]")
_BEGINNING = 1 << 16  # bytes
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def text_lines(path: Path, report: ReadReport) -> Iterator[tuple[int, str]]:
    """Number (from 1) and text of each line, without its line ending.

    Only a line feed ends a line: vertical tabs, U+0085 and U+2028 do not. So line numbers agree with those of
    editors and ``grep -n``.
    """
    with _opened(path) as file:
        for number, raw in enumerate(file, start=1):
            yield number, decoded_line(raw, f"{path}:{number}", number == 1, report)


def file_beginnings(path: Path) -> Iterator[str]:
    """Beginnings of a file, each longer than the one before, up to the complete file."""
    with _opened(path) as file:
        beginning = b""
        while more := file.read(max(_BEGINNING, len(beginning))):
            beginning += more
            yield beginning.decode("utf-8", "replace")


def first_character(path: Path) -> str:
    """The first character of a file that is not whitespace, or '' if there is none."""
    with _opened(path) as file:
        beginning = file.read(4096).decode("utf-8", "replace")
    return beginning.lstrip("\ufeff \t\r\n")[:1]


def refuse_missing(path: Path) -> None:
    if not path.exists():
        raise CorpusError("no such file.", where=str(path), remedy=f"{did_you_mean(path)}Check the path.")


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise CorpusError(
            f"the file cannot be read ({error.strerror}).",
            where=str(path),
            remedy="Check path and permissions.",
        ) from error


def decoded_line(raw: bytes, place: str, first: bool, report: ReadReport) -> str:
    """A line of bytes as text, without its ending; ``first``: whether it begins a file."""
    if first and raw.startswith(_UTF16_MARKS):
        raise CorpusError(
            "the file is in UTF-16.",
            where=place,
            remedy="Convert it: iconv -f UTF-16 -t UTF-8 FILE > NEW_FILE.",
        )
    if b"\0" in raw:
        raise CorpusError(
            f"a NUL character at byte {raw.index(0) + 1} of the line.",
            where=place,
            remedy="The file is binary, in UTF-16 or damaged: convert it to UTF-8, or use tr -d '\\000'.",
        )
    try:
        line = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CorpusError(
            f"not valid UTF-8: byte {raw[error.start]:#04x} at byte {error.start + 1} of the line.",
            where=place,
            remedy="Convert the file to UTF-8, for example: "
            f"iconv -f {_likely(raw)} -t UTF-8 FILE > NEW_FILE.",
        ) from error
    line = line.removesuffix("\n")
    if line.endswith("\r"):
        report.note(CRLF, place)
        line = line[:-1]
    # A mark at the start of a later line remains when `cat` joins two files.
    if line.startswith("\ufeff"):
        report.note(BOM_REMOVED, place)
        line = line.lstrip("\ufeff")
    return line


def _likely(raw: bytes) -> str:
    """The Western encoding that the bytes are probably in. Windows-1252 is Latin-1 with quotes, dashes and
    the euro sign in place of control characters, so it is the guess unless it does not define one of the
    bytes.
    """
    try:
        raw.decode("cp1252")
    except UnicodeDecodeError:
        return "LATIN1"
    return "WINDOWS-1252"


def refuse_unwritable(text: str) -> None:
    """Refuse NUL and unpaired surrogates, which JSON can escape but no text file may contain."""
    bad = _UNWRITABLE.search(text)
    if bad:
        name = "NUL" if bad.group() == "\0" else "an unpaired surrogate"
        raise CorpusError(
            f"the text contains {name}, which is not a character.",
            remedy="Remove it where the file was made.",
        )
