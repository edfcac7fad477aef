"""What tests read files and models with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from cfner.corpus.corpus import Corpus
from cfner.corpus.report import ReadReport
from cfner.corpus.sentence import Sentence
from cfner.network.prediction import TaggingModel

Model = TypeVar("Model", bound=TaggingModel)


def read_sentences(path: Path, **options: Any) -> tuple[tuple[Sentence, ...], ReadReport]:
    """The sentences of one file, and the report of the reading."""
    corpus = Corpus.read(path, **options)
    return corpus.train, corpus.report


def word_by_word(model: Model) -> Model:
    """The model, but every word gets the label that it would get alone, as a stock pipeline decides."""
    return replace(model, labels=replace(model.labels, free=len(model.labels)))
