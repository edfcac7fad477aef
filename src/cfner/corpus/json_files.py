"""JSON files of a corpus: one list of items, or one object per line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cfner.corpus.report import ReadReport
from cfner.corpus.text_lines import file_beginnings, first_character, text_lines
from cfner.errors import CorpusError

_DECODER = json.JSONDecoder()


def first_item(path: Path) -> Any:
    """The first item of a list, or the first object of a file of lines; None if neither can be read."""
    for beginning in file_beginnings(path):
        text = beginning.lstrip("\ufeff \t\r\n").removeprefix("[").lstrip(" \t\r\n")
        try:
            return _DECODER.raw_decode(text)[0]
        except (ValueError, RecursionError):
            continue  # the first item may be longer than this beginning of the file
    return None


def objects(path: Path, report: ReadReport) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of a file with their places: one per line, or those of one list."""
    if first_character(path) == "[":
        remedy = "Write a list of JSON objects."
        items = list_items(path, report)
    else:
        remedy = "Write one JSON object per line."
        items = _lines(path, report, remedy)
    for place, item in items:
        if not isinstance(item, dict):
            raise CorpusError("not a JSON object.", where=place, remedy=remedy)
        yield place, item


def list_items(path: Path, report: ReadReport) -> Iterator[tuple[str, Any]]:
    """The items of a file that is one JSON list, with their places."""
    content = "\n".join(line for _, line in text_lines(path, report))
    if not content.strip():
        return  # the caller reports files without a sentence
    try:
        items = json.loads(content)
    except (ValueError, RecursionError) as error:
        line = f":{error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        reason = getattr(error, "msg", error)
        raise CorpusError(
            f"not valid JSON ({reason}).", where=f"{path}{line}", remedy="Correct it, or export it again."
        ) from error
    if not isinstance(items, list):
        raise CorpusError("not a JSON list.", where=str(path), remedy="Write a list of JSON objects.")
    for number, item in enumerate(items, start=1):
        yield f"{path}, item {number}", item


def _lines(path: Path, report: ReadReport, remedy: str) -> Iterator[tuple[str, Any]]:
    for number, line in text_lines(path, report):
        if not line.strip():
            continue
        place = f"{path}:{number}"
        try:
            item = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise CorpusError(f"not valid JSON ({error}).", where=place, remedy=remedy) from error
        yield place, item
