"""What a model folder says about its steps, without loading any of them."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path

from cfner.errors import CfnerError
from cfner.evaluation.scores import Scores
from cfner.serving.schemas import StepFacts, StepScores, TypeScore
from cfner.store.lineage import describe
from cfner.store.model_folder import ModelFolder, StoredStep

log = logging.getLogger("cfner.serving")


def read_steps(source: str | Path, known: Iterable[StepFacts] = ()) -> list[StepFacts]:
    """All steps, oldest first; one whose files cannot be read is listed with its problem.

    ``known``: what was read before. Of a good step that still has its hash nothing is read again.
    """
    folder, described, found = ModelFolder(source), {(facts.step, facts.hash): facts for facts in known}, []
    for name in folder.names():
        number, hash_ = int(name), ""
        try:
            stored = folder.step(name)
            hash_ = stored.hash
            before = described.get((number, hash_))
            facts = before if before is not None and before.problem is None else _facts(stored)
        except CfnerError as error:
            facts = described.get((number, hash_)) or _damaged(number, hash_, error)
        found.append(facts)
    return found


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
        scores=_scores(step.scores),
    )


def _scores(scores: Scores | None) -> StepScores | None:
    if scores is None:
        return None
    per_type = {
        type_: TypeScore(
            f1=counts.f1, precision=counts.precision, recall=counts.recall, mentions=counts.n_gold
        )
        for type_, counts in scores.counts.items()
        if type_ in scores.types
    }
    return StepScores(micro_f1=scores.micro_f1, macro_f1=scores.macro_f1, per_type=per_type)
