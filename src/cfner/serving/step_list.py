"""What a model folder says about its steps, without loading any of them."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from cfner.errors import CfnerError
from cfner.evaluation.scores import Scores
from cfner.serving.schemas import StepFacts, StepScores, TypeScore
from cfner.store.model_folder import ModelFolder, StoredStep
from cfner.store.step_files import SCORES, read_if_there, read_labels

log = logging.getLogger("cfner.serving")
# what reading a file of the wrong shape may raise
_WRONG_SHAPE = (KeyError, TypeError, ValueError, AttributeError)


def read_steps(source: Path) -> list[StepFacts]:
    """All steps, oldest first; one whose files cannot be read is listed with its problem."""
    folder = ModelFolder(source)
    return [_facts(folder, name) for name in folder.names()]


def numbers_and_hashes(folder: ModelFolder) -> list[tuple[int, str]]:
    """Which steps there are, cheaply: to see whether they are still those that were described."""
    found = []
    for name in folder.names():
        try:
            found.append((int(name), folder.step(name).hash))
        except CfnerError:
            found.append((int(name), ""))
    return found


def _facts(folder: ModelFolder, name: str) -> StepFacts:
    try:
        stored = folder.step(name)
        return step_facts(stored)
    except (CfnerError, *_WRONG_SHAPE) as error:
        log.warning("step %s cannot be described: %s", name, error)
        return StepFacts(
            step=int(name),
            name=f"step {int(name)}",
            kind="unknown",
            hash="",
            types=[],
            learned=[],
            problem="The step's files are damaged.",
        )


def step_facts(stored: StoredStep) -> StepFacts:
    facts: dict[str, Any] = stored.read_json("step.json")
    types = read_labels(stored).types
    method = facts.get("method")
    return StepFacts(
        step=int(stored.name),
        name=str(facts.get("name") or f"step {int(stored.name)}"),
        kind=str(facts.get("kind", "learn")),
        hash=stored.hash,
        types=list(types),
        learned=[str(type_) for type_ in facts["types"]],
        created=stored.saved(),
        method=None if method is None else str(method),
        scores=_scores(stored),
    )


def _scores(stored: StoredStep) -> StepScores | None:
    scores = read_if_there(stored, SCORES, Scores.from_json)
    if scores is None:
        return None
    return StepScores(
        micro_f1=scores.micro_f1,
        macro_f1=scores.macro_f1,
        per_type={
            type_: TypeScore(
                f1=counts.f1, precision=counts.precision, recall=counts.recall, mentions=counts.n_gold
            )
            for type_, counts in scores.counts.items()
            if type_ in scores.types
        },
    )
