"""Describe the steps of a model folder without loading them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cfner.errors import CfnerError
from cfner.evaluation.estimate import Estimate
from cfner.evaluation.scores import Scores
from cfner.serving.schemas import (
    ScoreSeries,
    StepEstimate,
    StepFacts,
    StepScores,
    TypeEstimate,
    TypeScore,
)
from cfner.store.lineage import describe
from cfner.store.model_folder import ModelFolder, StoredStep
from cfner.store.series import Series, score_files, series_of

log = logging.getLogger("cfner.serving")


@dataclass(frozen=True)
class StepList:
    """All steps, oldest first, and the series of their scores.

    ``looked_at``: the state of the steps and score files when they were read.
    """

    steps: list[StepFacts]
    series: list[ScoreSeries]
    looked_at: tuple[object, ...] = ()


def read_steps(source: str | Path, known: StepList | None = None) -> StepList:
    """A step whose files cannot be read is listed with its problem.

    ``known``: the previous list. A good step with the same hash is not read again, and scores only if a step
    or a score file has changed.
    """
    folder, found = ModelFolder(source), []
    described = {(facts.step, facts.hash): facts for facts in known.steps} if known is not None else {}
    for name in folder.names():
        number, hash_ = int(name), ""
        try:
            stored = folder.step(name)
            hash_ = stored.hash
            before = described.get((number, hash_))
            good = before is not None and before.problem is None and not stored.pruned
            facts = before if before is not None and good else _facts(stored)
        except CfnerError as error:
            facts = described.get((number, hash_)) or _damaged(number, hash_, error)
        found.append(facts)
    looked_at = (*((facts.step, facts.hash) for facts in found), *_signs(folder))
    if known is not None and known.looked_at == looked_at:
        return StepList(found, known.series, looked_at)
    return StepList(found, _series(folder, found), looked_at)


def _signs(folder: ModelFolder) -> list[tuple[str, int, int, int]]:
    """The state of the score files, to detect changes."""
    try:
        stats = ((file.name, file.lstat()) for file in score_files(folder))
        return [(name, stat.st_ino, stat.st_mtime_ns, stat.st_size) for name, stat in stats]
    except (CfnerError, OSError):  # reported when they are read
        return [("", 0, 0, 0)]


def _series(folder: ModelFolder, steps: Sequence[StepFacts]) -> list[ScoreSeries]:
    """Scores are for display only: if they cannot be read, the model is still served."""
    try:
        read = [describe(folder.step(facts.step)) for facts in steps if facts.pruned or not facts.problem]
        return [_score_series(one) for one in series_of(folder, read)]
    except (CfnerError, OSError) as error:
        log.warning("the scores cannot be read: %s", error)
        return []


def _score_series(series: Series) -> ScoreSeries:
    on = series.on
    return ScoreSeries(
        label=series.label,
        recorded=on is not None,
        hash=None if on is None else on.hash,
        sentences=None if on is None else on.sentences,
        steps={number: _scores(scores, on is not None) for number, scores in series.scores.items()},
    )


def _damaged(number: int, hash_: str, error: CfnerError) -> StepFacts:
    log.warning("step %d cannot be described: %s", number, error)
    problem = "The step's files are damaged."
    return StepFacts(
        step=number, name=f"step {number}", kind="unknown", hash=hash_, types=[], learned=[], problem=problem
    )


def _facts(stored: StoredStep) -> StepFacts:
    step = describe(stored)
    return StepFacts(
        step=step.number,
        name=step.name,
        kind=step.kind,
        hash=step.hash,
        types=list(step.known),
        learned=list(step.types),
        created=stored.saved(),
        method=step.method,
        estimate=_estimate(step.estimate),
        pruned=stored.pruned,
        problem="The step's weights were removed to free the disk." if stored.pruned else None,
    )


def _estimate(estimate: Estimate | None) -> StepEstimate | None:
    if estimate is None or not estimate.types:
        return None
    types = [
        TypeEstimate(type=row.type, f1=row.f1.value, low=row.f1.low, high=row.f1.high, enough=row.is_enough)
        for row in estimate.types
    ]
    return StepEstimate(measured_with=estimate.in_words(), types=types)


def _scores(scores: Scores, recorded: bool) -> StepScores:
    per_type = {
        type_: TypeScore(
            f1=counts.f1, precision=counts.precision, recall=counts.recall, mentions=counts.n_gold
        )
        for type_, counts in scores.counts.items()
        if type_ in scores.types
    }
    micro, macro = (scores.micro_f1, scores.macro_f1) if recorded else (None, None)
    return StepScores(micro_f1=micro, macro_f1=macro, per_type=per_type)
