"""Write predictions to files, one by one: JSON, tables of mentions, CoNLL columns, spaCy's DocBin."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from cfner.corpus.formats import spacy as docbin
from cfner.corpus.formats.conll import columns_of
from cfner.corpus.tags import tags_from_spans
from cfner.corpus.writers import whole_file
from cfner.errors import ConfigError, CorpusError, located, nearest
from cfner.files.atomic import atomic_folder
from cfner.files.safe_text import json_text, spreadsheet_cell
from cfner.network.prediction import Prediction

SPANS_KEY = "cfner"  # doc.spans[...]: the entities again, with their scores in its attrs
DOCS_PER_PART = 10_000


def write_predictions(
    predictions: Iterable[Prediction], out: str | Path, format: str | None = None, *, overwrite: bool = False
) -> int:
    """Write predictions atomically, in constant memory; returns their number.

    Formats: ``jsonl``, ``json`` (one list), ``csv`` and ``tsv`` (one row per mention), ``conll`` (word, tab,
    BIO tag) and ``docbin``; by default that of the suffix. A DocBin is compressed as a whole, so one file
    (``NAME.spacy``) is held in memory until it is written; any other name becomes a folder of parts of 10,000
    documents each, which spaCy reads as one corpus, and needs no more memory than one part.
    """
    path = Path(out)
    chosen = format or format_of_name(path)
    if chosen not in {*AS_TEXT, "docbin"}:
        raise ConfigError(
            f"There is no output format '{chosen}'.", remedy=nearest(chosen, {*AS_TEXT, "docbin"})
        )
    if chosen == "docbin" and path.suffix != ".spacy":
        return _docbin_parts(iter(predictions), path, overwrite)
    count = 0

    def counted() -> Iterator[Prediction]:
        nonlocal count
        for prediction in predictions:
            yield prediction
            count += 1

    with whole_file(path, overwrite) as file:
        if chosen == "docbin":
            file.write(docbin_of(counted())[1])
        else:
            for piece in AS_TEXT[chosen](counted()):
                file.write(piece.encode())
    return count


def is_format_name(path: Path) -> bool:
    """Whether the suffix of a file's name is that of a format."""
    return path.suffix.lower() in _SUFFIXES


def format_of_name(path: Path) -> str:
    """The format for the suffix of a file's name."""
    suffix = path.suffix.lower()
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    what = f"ends in '{suffix}', which is not a format" if suffix else "has no suffix that names a format"
    raise ConfigError(
        f"The name of the output {what} of predictions.",
        where=str(path),
        remedy=f"Known are {', '.join(_SUFFIXES)}; or name the format ({', '.join((*AS_TEXT, 'docbin'))}).",
    )


def json_lines(predictions: Iterable[Prediction]) -> Iterator[str]:
    return (_object(prediction) + "\n" for prediction in predictions)


def json_list(predictions: Iterable[Prediction]) -> Iterator[str]:
    before = "[\n"
    for prediction in predictions:
        yield before + _object(prediction)
        before = ",\n"
    yield "\n]\n" if before != "[\n" else "[]\n"


def _object(prediction: Prediction) -> str:
    try:
        return json_text(prediction.to_json())
    except RecursionError as error:  # in fields that are passed on
        raise CorpusError(
            "The fields of the record are nested too deeply.",
            where=prediction.sentence.source,
            remedy="Leave out the nested field.",
        ) from error


def mention_rows(
    predictions: Iterable[Prediction], separator: str, first: int = 1, *, header: bool = True
) -> Iterator[str]:
    """A table with a row per mention. ``id`` is that of the JSON line, else the number of the text, counted
    from ``first``.
    """
    if header:
        yield _row(MENTION_COLUMNS, separator)
    for number, prediction in enumerate(predictions, start=first):
        name = (prediction.sentence.record or {}).get("id", number)
        name = json_text(name) if isinstance(name, dict | list) else name
        for e in prediction.entities:
            yield _row([name, e.start, e.end, e.type, e.text, f"{e.score:.4f}"], separator)


def _row(cells: Sequence[object], separator: str) -> str:
    written = io.StringIO()
    table = csv.writer(written, delimiter=separator, lineterminator="\n")
    table.writerow([spreadsheet_cell(cell) for cell in cells])
    return written.getvalue()


def conll_lines(predictions: Iterable[Prediction]) -> Iterator[str]:
    """Word, tab, BIO tag; an empty line at the end. A sentence without words is one empty line."""
    for prediction in predictions:
        sentence = prediction.sentence
        tags = tags_from_spans(prediction.spans, len(sentence), "BIO")
        with located(sentence.source or ""):
            yield columns_of(sentence.words, tags, opening=True)  # any sentence may be the first


MENTION_COLUMNS: Final = ("id", "start", "end", "type", "text", "score")
# writers of the text formats, which yield pieces of text
AS_TEXT: Final[dict[str, Callable[[Iterable[Prediction]], Iterator[str]]]] = {
    "jsonl": json_lines,
    "json": json_list,
    "csv": partial(mention_rows, separator=","),
    "tsv": partial(mention_rows, separator="\t"),
    "conll": conll_lines,
}
_SUFFIXES: Final = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "tsv",
    ".conll": "conll",
    ".spacy": "docbin",
}


def _docbin_parts(predictions: Iterator[Prediction], folder: Path, overwrite: bool) -> int:
    count = 0
    with atomic_folder(folder, refuse=partial(_refuse_foreign, overwrite=overwrite)) as parts:
        for number in itertools.count(1):
            size, content = docbin_of(itertools.islice(predictions, DOCS_PER_PART))
            if size or number == 1:
                (parts / f"part-{number:05d}.spacy").write_bytes(content)
            count += size
            if size < DOCS_PER_PART:
                break
    return count


def _refuse_foreign(folder: Path, overwrite: bool) -> None:
    """An existing folder is replaced only with ``overwrite``, and only if it contains nothing but such
    parts."""
    if not folder.exists():
        return
    foreign = not folder.is_dir() or any(not file.match("part-*.spacy") for file in folder.iterdir())
    if foreign or not overwrite:
        raise CorpusError(
            "The folder exists, and contains other files." if foreign else "The folder exists.",
            where=str(folder),
            remedy="Choose another name." if foreign else "Choose another name, or set `overwrite=True`.",
        )


def docbin_of(predictions: Iterable[Prediction]) -> tuple[int, bytes]:
    """How many documents there are, and the DocBin of them."""
    spacy = docbin.load_spacy()
    vocab = spacy.blank("xx").vocab
    documents = spacy.tokens.DocBin(store_user_data=False)
    count = 0
    for prediction in predictions:
        doc = docbin.document_of(prediction.sentence.with_spans(prediction.spans), vocab, spacy)
        # where spaCy's own span categorizer stores its scores
        scores = [entity.score for entity in prediction.entities]
        doc.spans[SPANS_KEY] = spacy.tokens.SpanGroup(
            doc, name=SPANS_KEY, spans=list(doc.ents), attrs={"scores": scores}
        )
        documents.add(doc)
        count += 1
    content: bytes = documents.to_bytes()
    return count, content
