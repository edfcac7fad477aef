"""Turns labelled data in memory into a corpus: lists, dictionaries, datasets and pandas frames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from cfner.corpus.formats import Reading, ReadOptions
from cfner.corpus.json_records import sentences_from_records
from cfner.corpus.report import ReadReport
from cfner.corpus.sentence import Sentence
from cfner.errors import CorpusError

if TYPE_CHECKING:
    from cfner.corpus.corpus import Corpus

Data: TypeAlias = "str | Path | Corpus | Iterable[Any] | Mapping[str, Any]"
Texts: TypeAlias = "str | Path | Sentence | Corpus | Iterable[Any]"
IN_MEMORY: Final = "data in memory"
_WORDS_IN_ROWS: Final = ("sentence", "word", "tag")  # columns of a frame with a row per word
_RIGHT: Final = (
    'Give [("Ada lived in London.", [(0, 3, "PER")]), ...], [(["Ada", "lived"], ["B-PER", "O"]), ...], '
    '[{"text": ..., "spans": [...]}, ...], [{"tokens": [...], "tags": [...]}, ...], a dataset or a frame '
    'with such columns, or {"train": ..., "test": ...} of these.'
)


def source_name(data: object) -> str:
    """The name of data in messages and records: its path as given, or 'data in memory'."""
    return str(data) if isinstance(data, str | Path) else IN_MEMORY


def splits_in_memory(data: Data, options: ReadOptions) -> Mapping[str, Reading]:
    """Readings by the name of their split; data without splits is one called 'train'."""
    splits = data if isinstance(data, Mapping) else {"train": data}
    return {str(name): _read(part, str(name), len(splits) > 1, options) for name, part in splits.items()}


def _read(part: Any, split: str, several: bool, options: ReadOptions) -> Reading:
    place = f"{IN_MEMORY}[{split}]" if several else IN_MEMORY
    report = ReadReport(format="in memory", files=(place,))
    if hasattr(part, "features") and hasattr(part, "with_format"):
        from cfner.corpus.formats.huggingface import sentences_of_dataset

        return sentences_of_dataset(part, options, report), report
    if isinstance(part, str | bytes | Path | Mapping) or not isinstance(part, Iterable):
        raise CorpusError(f"A {type(part).__name__} is not labelled data.", where=place, remedy=_RIGHT)
    items = list(rows_of_frame(part) if is_frame(part) else part)
    if items and all(isinstance(item, Sentence) for item in items):
        sentences = [sentence for sentence in items if len(sentence)]
        for sentence in sentences:
            report.tokens_read += len(sentence)
            report.use(len(sentence))
        return sentences, report
    places = [f"{place}:{number}" for number in range(1, len(items) + 1)]
    records = [(at, _record(item, at)) for at, item in zip(places, items, strict=True)]
    return sentences_from_records(records, report, options), report


def _record(item: Any, place: str) -> Mapping[str, Any]:
    """An item of a list as a record with named fields."""
    match item:
        case Mapping():
            return {str(name): _plain(value) for name, value in item.items()}
        case [str(text), Mapping() as about] if "entities" in about:  # spaCy's training examples
            return {"text": text, "spans": _plain(about["entities"])}
        case [str(text), list() | tuple() as spans]:
            return {"text": text, "spans": list(spans)}
        case [list() | tuple() as words, list() | tuple() as tags]:
            return {"tokens": list(words), "tags": list(tags)}
    shown = repr(item)
    raise CorpusError(
        f"The item {shown if len(shown) < 80 else shown[:80] + ' …'} is not a labelled sentence.",
        where=place,
        remedy=_RIGHT,
    )


def _plain(value: Any) -> Any:
    """Tuples and arrays as lists, as a JSON file would have them."""
    if isinstance(value, tuple):
        return list(value)
    return value.tolist() if hasattr(value, "tolist") else value


def is_frame(data: Any) -> bool:
    """Whether it is a pandas frame, without importing pandas."""
    return hasattr(data, "columns") and hasattr(data, "to_dict")


def rows_of_frame(frame: Any) -> Iterator[Mapping[str, Any]]:
    """A record for each row. In a frame with a row per word (sentence, word, tag): one for each sentence."""
    rows = ({name: _plain(value) for name, value in row.items()} for row in frame.to_dict("records"))
    if not set(_WORDS_IN_ROWS) <= set(frame.columns):
        yield from rows
        return
    seen: set[Any] = set()
    for sentence, words in groupby(rows, key=lambda row: row["sentence"]):
        if sentence is None or sentence != sentence or sentence in seen:  # noqa: PLR0124 - which NaN is not
            missing = "in a row that names none" if sentence not in seen else f"again: {sentence!r}"
            raise CorpusError(
                f"The frame has a row per word, and a sentence begins {missing}.",
                where=IN_MEMORY,
                remedy="Give each row its sentence (where only the first has it: frame.sentence.ffill()), "
                "the words of a sentence one after another, and each sentence a number of its own.",
            )
        seen.add(sentence)
        listed = list(words)
        yield {"tokens": [row["word"] for row in listed], "tags": [row["tag"] for row in listed]}
