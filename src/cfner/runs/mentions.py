"""The mentions found in each test sentence: enough to compare two methods sentence by sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from cfner.corpus.sentence import Sentence, Span
from cfner.store.model_folder import ModelFolder

FILE: Final = "mentions.json"
COLUMNS: Final = ("step", "sentence", "type", "found", "gold", "predicted")

Row = tuple[int, str, int, int, int]


def mention_rows(sentences: Sequence[Sentence], found: Sequence[Sequence[Span]]) -> list[Row]:
    """(sentence, type, found, gold, predicted) where there is any; sentences without words are skipped."""
    rows: list[Row] = []
    pairs = (pair for pair in zip(sentences, found, strict=True) if len(pair[0]))
    for number, (sentence, predicted) in enumerate(pairs):
        gold_spans, predicted_spans = set(sentence.spans), set(predicted)
        both = Counter(span.type for span in gold_spans & predicted_spans)
        gold = Counter(span.type for span in gold_spans)
        here = Counter(span.type for span in predicted_spans)
        rows += [(number, t, both[t], gold[t], here[t]) for t in sorted(gold | here)]
    return rows


def counts_of_run(run: Path, types_per_step: Sequence[Sequence[str]], sentences: int) -> dict[str, object]:
    """The steps' mentions of a finished run as arrays; ``types`` in the order of learning."""
    types = [type_ for group in types_per_step for type_ in group]
    number = {type_: index for index, type_ in enumerate(types)}
    folder = ModelFolder(run)
    rows = [
        (step, sentence, number[type_], *counts)
        for step, name in enumerate(folder.names())
        for sentence, type_, *counts in folder.step(name).read_json(FILE)
    ]
    table: npt.NDArray[np.int32] = np.array(rows, dtype=np.int32).reshape(-1, len(COLUMNS))
    learned = np.cumsum([len(group) for group in types_per_step]).astype(np.int32)
    return {
        **{name: table[:, column] for column, name in enumerate(COLUMNS)},
        "types": np.array(types),
        "sentences": np.int32(sentences),
        "learned": learned,
    }
