"""How a model's steps came from each other: the one reader of what their records say."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cfner.errors import ModelError
from cfner.evaluation.estimate import Estimate
from cfner.evaluation.measured import Measured
from cfner.store.model_folder import ModelFolder, StoredStep
from cfner.store.step_files import SCORES, read_estimate, read_facts, read_if_there, read_labels


@dataclass(frozen=True)
class LineageStep:
    """A step as its files describe it. ``record`` is its step.json, whose shape was checked."""

    stored: StoredStep
    record: Mapping[str, Any]
    known: tuple[str, ...]  # all types that the model knows after the step
    measured: Measured | None  # what its scores were when it was saved
    estimate: Estimate | None  # how well its types were found when it was learned
    parent: int | None  # the number of the step that it came from, if that is in the folder

    @property
    def number(self) -> int:
        return int(self.stored.name)

    @property
    def hash(self) -> str:
        return self.stored.hash

    @property
    def name(self) -> str:
        return str(self.record["name"] or f"step {self.number}")

    @property
    def kind(self) -> str:
        return str(self.record.get("kind", "learn"))

    @property
    def types(self) -> tuple[str, ...]:
        """Those that the step learned or imported; of other steps, what is left of the step before."""
        return tuple(self.record["types"])

    @property
    def method(self) -> str | None:
        return self.record.get("method")


def lineage(model: str | Path) -> list[LineageStep]:
    """All steps in the order in which they were added; a step's parent is not always the one before it."""
    folder = ModelFolder(model)
    stored = [folder.step(name) for name in folder.names()]
    numbers = {step.hash: int(step.name) for step in stored}
    return [describe(step, numbers) for step in stored]


def lineage_step(model: str | Path, step: int | str | None = None) -> LineageStep:
    """One step, the current by default. Others may be damaged: one goes back to get away from them."""
    folder = ModelFolder(model)
    wanted, numbers = folder.step(step), {}
    for name in folder.names():
        with suppress(ModelError):
            numbers[folder.step(name).hash] = int(name)
    return describe(wanted, numbers)


def ancestors(model: str | Path, step: int | None = None) -> list[LineageStep]:
    """A step (the current by default), what it came from, and so on: oldest first, the step itself last."""
    chain = [lineage_step(model, step)]
    while (parent := chain[0].parent) is not None:
        if parent in {step.number for step in chain}:  # hashes in seals that nobody checked may be anything
            raise ModelError(
                "The steps of the model are each other's parents: the lineage is broken.",
                where=str(model),
                remedy="Find the damaged step: `history(MODEL, verify=True)`.",
            )
        chain.insert(0, lineage_step(model, parent))
    return chain


def describe(step: StoredStep, numbers: Mapping[str, int] = MappingProxyType({})) -> LineageStep:
    """What a step's files say. ``numbers``: of the steps among which its parent is, by their hashes."""
    record, known = read_facts(step), read_labels(step).types
    measured = read_if_there(step, SCORES, Measured.from_json)
    return LineageStep(step, record, known, measured, read_estimate(step), numbers.get(record["parent"]))
