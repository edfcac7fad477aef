"""Predictions into files, one by one: JSON lines, CoNLL columns, spaCy's DocBin."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from cfner.corpus.formats import spacy as docbin
from cfner.corpus.formats.conll import columns_of
from cfner.corpus.tags import tags_from_spans
from cfner.corpus.writers import whole_file
from cfner.errors import ConfigError, CorpusError, located, nearest
from cfner.files.atomic import atomic_folder
from cfner.files.safe_text import json_text
from cfner.interop.text_stream import read_texts
from cfner.network.prediction import Prediction, TaggingModel, tag_stream

SPANS_KEY = "cfner"  # doc.spans[...]: the entities again, with their scores in its attrs
DOCS_PER_PART = 10_000


def predict_file(
    model: TaggingModel,
    source: str | Path | None,
    out: str | Path,
    *,
    input_format: str | None = None,
    output_format: str | None = None,
    batch_size: int = 64,
    overwrite: bool = False,
) -> int:
    """Tag a file of any size (None: standard input) into another; returns how many sentences it had.

    Formats: those of ``read_texts`` and ``write_predictions``.
    """
    sentences = read_texts(None if source is None else Path(source), input_format)
    predictions = tag_stream(model, sentences, batch_size=batch_size)
    return write_predictions(predictions, out, output_format, overwrite=overwrite)


def write_predictions(
    predictions: Iterable[Prediction], out: str | Path, format: str | None = None, *, overwrite: bool = False
) -> int:
    """Write predictions whole or not at all, in constant memory; returns how many there were.

    ``jsonl`` (the default), ``conll`` (word, tab, BIO tag) or ``docbin``. A DocBin is compressed as a whole,
    so one file (``NAME.spacy``) is held in memory until it is written; any other name becomes a folder of
    parts of 10,000 documents each, which spaCy reads as one corpus, and needs no more memory than one part.
    """
    path = Path(out)
    chosen = format or {".conll": "conll", ".spacy": "docbin"}.get(path.suffix, "jsonl")
    if chosen not in {*LINES, "docbin"}:
        raise ConfigError(
            f"There is no output format '{chosen}'.", remedy=nearest(chosen, {*LINES, "docbin"})
        )
    if chosen == "docbin" and path.suffix != ".spacy":
        return _docbin_parts(iter(predictions), path, overwrite)
    count = 0
    with whole_file(path, overwrite) as file:
        if chosen == "docbin":
            count, content = _docbin(predictions)
            file.write(content)
        else:
            for prediction in predictions:
                file.write(LINES[chosen](prediction).encode())
                count += 1
    return count


def json_line(prediction: Prediction) -> str:
    return json_text(prediction.to_json()) + "\n"


def conll_lines(prediction: Prediction) -> str:
    """Word, tab, BIO tag; an empty line at the end. A sentence without words is one empty line."""
    sentence = prediction.sentence
    tags = tags_from_spans(prediction.spans, len(sentence), "BIO")
    with located(sentence.source or ""):
        return columns_of(sentence.words, tags, opening=True)  # any of them may be the first


# how one prediction is written in a format of lines
LINES: dict[str, Callable[[Prediction], str]] = {"jsonl": json_line, "conll": conll_lines}


def _docbin_parts(predictions: Iterator[Prediction], folder: Path, overwrite: bool) -> int:
    count = 0
    with atomic_folder(folder, refuse=partial(_refuse_foreign, overwrite=overwrite)) as parts:
        for number in itertools.count(1):
            size, content = _docbin(itertools.islice(predictions, DOCS_PER_PART))
            if size or number == 1:
                (parts / f"part-{number:05d}.spacy").write_bytes(content)
            count += size
            if size < DOCS_PER_PART:
                break
    return count


def _refuse_foreign(folder: Path, overwrite: bool) -> None:
    """An existing folder is replaced only if asked for, and only if it holds nothing but such parts."""
    if not folder.exists():
        return
    foreign = not folder.is_dir() or any(not file.match("part-*.spacy") for file in folder.iterdir())
    if foreign or not overwrite:
        raise CorpusError(
            "Something else is here already." if foreign else "The folder exists.",
            where=str(folder),
            remedy="Choose another name." if foreign else "Choose another name, or allow --overwrite.",
        )


def _docbin(predictions: Iterable[Prediction]) -> tuple[int, bytes]:
    spacy = docbin.load_spacy()
    vocab = spacy.blank("xx").vocab
    documents = spacy.tokens.DocBin(store_user_data=False)
    count = 0
    for prediction in predictions:
        doc = docbin.document_of(prediction.sentence.with_spans(prediction.spans), vocab, spacy)
        # the same place and shape as the scores of spaCy's own span categorizer
        scores = [entity.score for entity in prediction.entities]
        doc.spans[SPANS_KEY] = spacy.tokens.SpanGroup(
            doc, name=SPANS_KEY, spans=list(doc.ents), attrs={"scores": scores}
        )
        documents.add(doc)
        count += 1
    content: bytes = documents.to_bytes()
    return count, content
