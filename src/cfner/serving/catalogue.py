"""What a model folder says about its steps, without loading any of them."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cfner.errors import CfnerError
from cfner.evaluation.scores import Scores
from cfner.model.store import SEAL, ModelFolder, StoredStep
from cfner.serving.messages import StepFacts, StepScores, TypeScore
from cfner.stream.labels import LabelSpace

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
    types = LabelSpace.from_json(stored.read_json("labels.json")).types
    method = facts.get("method")
    created = datetime.fromtimestamp((stored.folder / SEAL).stat().st_mtime, UTC)
    return StepFacts(
        step=int(stored.name),
        name=str(facts.get("name") or f"step {int(stored.name)}"),
        kind=str(facts.get("kind", "learn")),
        hash=stored.hash,
        types=list(types),
        learned=[str(type_) for type_ in facts["types"]],
        created=created.isoformat("T", "seconds"),
        method=None if method is None else str(method),
        scores=_scores(stored),
    )


def _scores(stored: StoredStep) -> StepScores | None:
    if not (stored.folder / "scores.json").is_file():
        return None
    scores = Scores.from_json(stored.read_json("scores.json"))
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
