"""Label Studio's JSON export: a list of tasks, each with a text and annotations in characters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from cfner.corpus.formats import Format, ReadOptions
from cfner.corpus.json_files import first_item, list_items
from cfner.corpus.json_records import annotated_text, keep_sentence
from cfner.corpus.report import ReadReport
from cfner.corpus.sentence import Sentence
from cfner.corpus.text_lines import first_character
from cfner.corpus.tokenise import CharSpan, split_words
from cfner.errors import CorpusError, located, nearest

UNANNOTATED = "task without an annotation, left out"
FURTHER = "further annotation of a task, not read"
OTHER_RESULT = "result that is not a labelled span, not read"
UTF16_OFFSETS = "positions counted in UTF-16 units, converted"

_EXPORT_REMEDY = "Export the project from Label Studio as JSON (not JSON-MIN or CSV)."


def read(path: Path, options: ReadOptions, report: ReadReport) -> list[Sentence]:
    sentences: list[Sentence] = []
    field = "text" if options.token_column is None else str(options.token_column)
    for number, (_, task) in enumerate(list_items(path, report), start=1):
        place = f"{path}, task {task.get('id', number) if isinstance(task, Mapping) else number}"
        with located(place):
            text, results = _text_and_results(task, field, place, report)
            if results is None:
                report.skip(len(split_words(text)), UNANNOTATED, place)
                continue
            spans = [span for result in results if (span := _span(result, text, place, report))]
            keep_sentence(annotated_text(text, spans, place, report), sentences, report)
    return sentences


def _text_and_results(
    task: object, field: str, place: str, report: ReadReport
) -> tuple[str, Sequence[object] | None]:
    """The text of a task, and the results of its first annotation that was not cancelled."""
    match task:
        case {"data": Mapping() as data, "annotations": list(annotations)}:
            text = data.get(field)
        case _:
            raise CorpusError("not a task with data and annotations.", remedy=_EXPORT_REMEDY)
    if not isinstance(text, str):
        raise CorpusError(
            f"the task's data has no text under '{field}'.",
            remedy=f"Give the name of its field as the token column. {nearest(field, map(str, data))}",
        )
    done = [item for item in annotations if isinstance(item, Mapping) and not item.get("was_cancelled")]
    if not done:
        return text, None
    for _ in done[1:]:
        report.note(FURTHER, place)
    results = done[0].get("result")
    if not isinstance(results, list):
        raise CorpusError("an annotation without results.", remedy=_EXPORT_REMEDY)
    return text, results


def _span(result: object, text: str, place: str, report: ReadReport) -> CharSpan | None:
    match result:
        case {"value": {"start": int(start), "end": int(end), "labels": [*labels], **rest}}:
            pass
        case {"type": "labels"}:
            raise CorpusError("a labelled span without start, end or labels.", remedy=_EXPORT_REMEDY)
        case _:
            report.note(OTHER_RESULT, place)
            return None
    if len(labels) != 1 or not isinstance(labels[0], str):
        raise CorpusError(
            f"the span {start}-{end} has {len(labels)} labels.",
            remedy="Give each span exactly one label: a word has one type.",
        )
    quoted = rest.get("text")
    if isinstance(quoted, str) and text[start:end] != quoted:
        start, end = _from_utf16(text, start, end, quoted)
        report.note(UTF16_OFFSETS, place)
    return start, end, labels[0]


def _from_utf16(text: str, start: int, end: int, quoted: str) -> tuple[int, int]:
    """Browsers count characters beyond U+FFFF (emoji) twice; the quoted text shows whether this one did."""
    units = text.encode("utf-16-le", "surrogatepass")
    before = units[: 2 * start].decode("utf-16-le", "replace")
    inside = units[2 * start : 2 * end].decode("utf-16-le", "replace")
    if inside != quoted:
        raise CorpusError(
            f"the span {start}-{end} quotes {quoted!r}, but its text reads {text[start:end]!r}.",
            remedy="The text was changed after it was annotated: annotate the task again, or remove it.",
        )
    return len(before), len(before) + len(inside)


def recognises(path: Path) -> bool:
    return path.is_file() and first_character(path) != "{" and not isinstance(first_item(path), list)


FORMAT = Format(name="labelstudio", suffixes=(".json",), read=read, recognises=recognises)
