"""Names of text files: which suffix means which format, and whether a word is a name or a text."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Literal

InputFormat = Literal["text", "jsonl", "conll"]
SUFFIXES: dict[InputFormat, tuple[str, ...]] = {
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


def is_text_file(name: str) -> bool:
    """Whether the name has a suffix of a text file."""
    return Path(name).suffix.lower() in itertools.chain.from_iterable(SUFFIXES.values())


def is_file(one: object) -> bool:
    """Whether it looks like the name of a file or folder, existing or not, so that a misspelt name is not
    tagged as text."""
    if not isinstance(one, str):
        return isinstance(one, Path)
    is_there = os.path.exists(one)  # noqa: PTH110 - Path.exists raises if the text is too long for a name
    return len(one.split()) == 1 or is_there or is_text_file(one)


def looks_like_file(text: str) -> bool:
    """Whether a text is the name of an existing file, or one word with a file suffix."""
    ends = len(text.split()) == 1 and (is_text_file(text) or Path(text).suffix.lower() in _DOCUMENTS)
    return ends or os.path.isfile(text)  # noqa: PTH113 - Path's raises if the text is too long for a name
