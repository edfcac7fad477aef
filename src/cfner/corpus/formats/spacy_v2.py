"""spaCy v2's training data as JSON: a list of ``["a text", {"entities": [[start, end, type], ...]}]``."""

from __future__ import annotations

from pathlib import Path

from cfner.corpus.formats import Format, ReadOptions
from cfner.corpus.json_files import first_item, list_items
from cfner.corpus.json_records import annotated_text, keep_sentence
from cfner.corpus.report import ReadReport
from cfner.corpus.sentence import Sentence
from cfner.errors import CorpusError, located


def read(path: Path, options: ReadOptions, report: ReadReport) -> list[Sentence]:
    field = "entities" if options.tag_column is None else str(options.tag_column)
    sentences: list[Sentence] = []
    for place, item in list_items(path, report):
        with located(place):
            match item:
                case [str(text), {**facts}] if field in facts:
                    keep_sentence(annotated_text(text, facts[field], place, report), sentences, report)
                case _:
                    raise CorpusError(
                        f"not a text with its {field}.",
                        remedy=f'Write ["Ada ran.", {{"{field}": [[0, 3, "PER"]]}}].',
                    )
    return sentences


def recognises(path: Path) -> bool:
    return path.is_file() and isinstance(first_item(path), list)


FORMAT = Format(name="spacy-v2", suffixes=(".json",), read=read, recognises=recognises)
