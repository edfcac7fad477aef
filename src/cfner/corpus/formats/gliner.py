"""GLiNER's training data: objects with ``tokenized_text`` (words) and ``ner`` ([first, last, type] of words).

The last word belongs to the mention.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cfner.corpus.formats import Format, ReadOptions
from cfner.corpus.json_files import first_item, objects
from cfner.corpus.report import ReadReport
from cfner.corpus.sentence import Sentence, Span
from cfner.corpus.tagged_words import TaggedRow, sentences_from_rows
from cfner.corpus.tags import tags_from_spans
from cfner.corpus.text_lines import refuse_unwritable
from cfner.corpus.tokenise import REPEATED
from cfner.errors import CorpusError, located

WORDS, MENTIONS = "tokenized_text", "ner"


def read(path: Path, options: ReadOptions, report: ReadReport) -> list[Sentence]:
    words, mentions = str(options.token_column or WORDS), str(options.tag_column or MENTIONS)
    rows = []
    for place, record in objects(path, report):
        with located(place):
            rows.append(_row(record, words, mentions, place, report))
    sentences = sentences_from_rows(rows, report, "BIO")
    report.scheme = None  # the file has spans; tags only carry them past words that are left out
    return sentences


def _row(
    record: dict[str, Any], of_words: str, of_mentions: str, place: str, report: ReadReport
) -> TaggedRow:
    match record.get(of_words), record.get(of_mentions):
        case [list(words), list(mentions)] if all(isinstance(word, str) for word in words):
            pass
        case _:
            raise CorpusError(
                f"'{of_words}' is not a list of words, or '{of_mentions}' not a list of mentions.",
                remedy=f'Write {{"{of_words}": ["Ada", "ran"], "{of_mentions}": [[0, 0, "person"]]}}.',
            )
    for word in words:
        refuse_unwritable(word)
    spans: list[Span] = []
    for number, span in enumerate(sorted(_span(mention, words) for mention in mentions), start=1):
        if spans and spans[-1] == span:
            report.note(REPEATED, f"{place} (mention {number})")
            continue
        if spans and spans[-1].overlaps(span):
            one, other = (f"{s.start}-{s.end - 1} ({s.type})" for s in (spans[-1], span))
            raise CorpusError(
                f"the mentions {one} and {other} overlap.", remedy="Keep one of the two: a word has one type."
            )
        spans.append(span)
    return TaggedRow(list(words), tags_from_spans(spans, len(words), "BIO"), place)


def _span(mention: object, words: list[str]) -> Span:
    match mention:
        case [int(first), int(last), str(type_)] if type_.strip() and bool not in (type(first), type(last)):
            refuse_unwritable(type_)
        case _:
            raise CorpusError(
                f"the mention {mention!r} is not [first word, last word, type].",
                remedy='Write [0, 1, "person"], which counts words from 0.',
            )
    if not 0 <= first <= last < len(words):
        raise CorpusError(
            f"the mention {first}-{last} ({type_}) is not inside its {len(words)} words.",
            remedy="Count words from 0; the last word belongs to the mention.",
        )
    return Span(first, last + 1, type_.strip())


def recognises(path: Path) -> bool:
    if not path.is_file():
        return False
    item = first_item(path)
    return isinstance(item, dict) and WORDS in item


FORMAT = Format(name="gliner", suffixes=(".json", ".jsonl"), read=read, recognises=recognises)
