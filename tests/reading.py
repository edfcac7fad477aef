"""What tests read files with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cfner.corpus.corpus import Corpus
from cfner.corpus.report import ReadReport
from cfner.corpus.sentence import Sentence


def read_sentences(path: Path, **options: Any) -> tuple[tuple[Sentence, ...], ReadReport]:
    """The sentences of one file, and the report of the reading."""
    corpus = Corpus.read(path, **options)
    return corpus.train, corpus.report
