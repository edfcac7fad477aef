"""Score every step of a model on one set of sentences, so that the scores are comparable."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from cfner.corpus.sentence import Sentence
from cfner.errors import ModelError
from cfner.evaluation.metrics import score_labelled
from cfner.evaluation.scores import Scores
from cfner.network.inference import predict_spans
from cfner.store.lineage import LineageStep, describe
from cfner.store.model_folder import ModelFolder
from cfner.store.open import open_model
from cfner.store.series import add_scores, series_of
from cfner.stream.sentence_set import SentenceSet

_log = logging.getLogger(__name__)


def score_steps(
    model: str | Path,
    sentences: Sequence[Sentence],
    on: SentenceSet,
    *,
    batch_size: int = 64,
    device: str = "auto",
    kept: Callable[[dict[str, Scores]], None] = lambda _: None,
) -> dict[int, Scores]:
    """The scores of all steps on these sentences, by number: stored ones are used, the others are measured.

    One step is in memory at a time. A step that cannot be loaded is left out with a warning. ``kept`` is
    called with each step's hash and new scores as soon as they are measured.
    """
    folder = ModelFolder(model)
    steps = list(_readable(folder))
    stored = next((one.scores for one in series_of(folder, steps) if one.on == on), {})
    found = dict(stored)
    left = [step for step in steps if step.number not in found]
    if left:
        _log.info(f"scoring {len(left)} of {len(steps)} steps on {on.name} ({on.sentences:,} sentences)")
    for step in left:
        try:
            scores = _scored(folder, step, sentences, batch_size, device)
        except ModelError as error:
            _log.warning(f"step {step.number} is not scored: {error.what}")
            continue
        found[step.number] = scores
        kept({step.hash: scores})
    return dict(sorted(found.items()))


def _readable(folder: ModelFolder) -> Iterator[LineageStep]:
    for name in folder.names():
        try:
            yield describe(folder.step(name))
        except ModelError as error:
            _log.warning(f"step {int(name)} is not scored: {error.what}")


def keep_scores(folder: ModelFolder, on: SentenceSet) -> Callable[[dict[str, Scores]], None]:
    """Stores each step's scores at once, so that an interruption does not lose them."""
    return lambda scores: add_scores(folder, on, scores)


def _scored(
    folder: ModelFolder, step: LineageStep, sentences: Sequence[Sentence], batch_size: int, device: str
) -> Scores:
    model = open_model(folder.path, step.number, device=device)
    words = [sentence for sentence in sentences if len(sentence)]
    found = predict_spans(
        model.network,
        model.encode(words),
        model.labels,
        batch_size=batch_size,
        calibration=model.calibration,
    )
    return score_labelled(words, found, model.labels.types)
