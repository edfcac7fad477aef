"""How a model's steps descend from each other: the only reader of their records."""

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
    """A step as its files describe it. ``record`` is its validated step.json."""

    stored: StoredStep
    record: Mapping[str, Any]
    known: tuple[str, ...]  # all types that the model knows after the step
    measured: Measured | None  # its scores when it was saved
    estimate: Estimate | None  # how well its types were found when it was learned
    parent: int | None  # the number of its parent step, if that is in the folder

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
        """The types that the step learned or imported; for other steps, those left of the step before."""
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
    """One step, the current by default. The other steps may be damaged: this must work to roll back."""
    folder = ModelFolder(model)
    wanted, numbers = folder.step(step), {}
    for name in folder.names():
        with suppress(ModelError):
            numbers[folder.step(name).hash] = int(name)
    return describe(wanted, numbers)


def ancestors(model: str | Path, step: int | None = None) -> list[LineageStep]:
    """A step (the current by default) and its ancestors: oldest first, the step itself last."""
    chain = [lineage_step(model, step)]
    while (parent := chain[0].parent) is not None:
        if parent in {step.number for step in chain}:  # hashes in unverified seals may be anything
            raise ModelError(
                "The parents of the model's steps form a cycle: the lineage is damaged.",
                where=str(model),
                remedy="Find the damaged step: `history(MODEL, verify=True)`.",
            )
        chain.insert(0, lineage_step(model, parent))
    return chain


def describe(step: StoredStep, numbers: Mapping[str, int] = MappingProxyType({})) -> LineageStep:
    """Describe a step from its files. ``numbers``: of the steps that may be its parent, by hash."""
    record, known = read_facts(step), read_labels(step).types
    measured = read_if_there(step, SCORES, Measured.from_json)
    return LineageStep(step, record, known, measured, read_estimate(step), numbers.get(record["parent"]))
