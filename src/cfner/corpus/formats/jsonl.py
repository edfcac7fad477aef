"""JSON lines: one object per line, ``tokens`` + ``tags`` or ``text`` + ``spans`` (in characters).

A file with one list of such objects is read, too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from cfner.corpus.formats import Format, ReadOptions
from cfner.corpus.json_files import first_item, objects
from cfner.corpus.json_records import TASK_FIELDS, sentences_from_records
from cfner.corpus.report import ReadReport
from cfner.corpus.sentence import Sentence
from cfner.corpus.tags import Scheme, tags_from_spans
from cfner.corpus.text_lines import first_character
from cfner.corpus.tokenise import character_spans, split_words
from cfner.errors import located


def read(path: Path, options: ReadOptions, report: ReadReport) -> list[Sentence]:
    return sentences_from_records(objects(path, report), report, options)


def recognises(path: Path) -> bool:
    """Accept a .json file that begins with an object, or is a list of objects that are not tasks."""
    if not path.is_file():
        return False
    if path.suffix.lower() != ".json" or first_character(path) == "{":
        return True
    item = first_item(path)
    return isinstance(item, dict) and not item.keys() & TASK_FIELDS


def write(sentences: Sequence[Sentence], file: IO[bytes], scheme: Scheme) -> None:
    """``text`` + ``spans`` for sentences cut from a text, ``tokens`` + ``tags`` for the others.

    A file has one kind of record, so the texts are kept only if all sentences have one.
    """
    with_text = all(sentence.offsets is not None for sentence in sentences)
    for number, sentence in enumerate(sentences, start=1):
        if with_text:
            record = _text_record(sentence)
        else:
            with located(sentence.source or f"sentence {number}"):
                tags = tags_from_spans(sentence.spans, len(sentence), scheme)
            record = {"tokens": list(sentence.words), "tags": tags}
        file.write(json.dumps(record, ensure_ascii=False).encode() + b"\n")


def _text_record(sentence: Sentence) -> dict[str, Any]:
    text, offsets, spans = sentence.text or "", sentence.offsets or (), character_spans(sentence)
    record: dict[str, Any] = {
        "text": text,
        "spans": [{"start": start, "end": end, "label": type_} for start, end, type_ in spans],
    }
    edges = {edge for start, end, _ in spans for edge in (start, end)}
    if split_words(text, edges) != list(offsets):
        record["offsets"] = [list(pair) for pair in offsets]  # the words are not those of our splitter
    return record


FORMAT = Format(
    name="jsonl",
    suffixes=(".jsonl", ".ndjson", ".json"),
    read=read,
    recognises=recognises,
    write=write,
)
