"""The record of a step, saved with it: types, data, settings, versions, training history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cfner.errors import ConfigError, ModelError
from cfner.network.device import choose_device
from cfner.store.step_files import FACTS
from cfner.stream.labels import LabelSpace
from cfner.stream.step import Step
from cfner.training.config import RUNTIME_ONLY, TrainingConfig
from cfner.training.environment import precision_used, versions
from cfner.training.reminders import Reminders
from cfner.training.state import TrainingState


@dataclass(frozen=True)
class StepRecord:
    """``facts`` are JSON-able; among them ``kind``: learn, consolidate, import, rename or merge."""

    types: tuple[str, ...]  # labelled in the step's data
    known: tuple[str, ...]  # learned before
    facts: dict[str, Any]

    @property
    def history(self) -> list[dict[str, float]]:
        """The figures of each epoch; empty if nothing was trained."""
        return list(self.facts.get("history", []))

    @property
    def best_epoch(self) -> int | None:
        """The epoch whose weights were kept."""
        return self.facts.get("best_epoch")

    @classmethod
    def of_learning(
        cls,
        step: Step,
        labels: LabelSpace,
        state: TrainingState,
        config: TrainingConfig,
        method: str,
        reminders: Reminders,
        *,
        from_scratch: bool = False,
    ) -> StepRecord:
        """A step without types only taught the network again what it knew: a consolidation."""
        reminded = {"reminders": reminders.facts()} if step.unlabelled else {}
        facts = {
            "kind": "learn" if step.types else "consolidate",
            "name": step.name,
            "index": step.index,
            "method": method,
            "data": {**step.data, **reminded},
            "config": config.what_matters(),
            "method_named": config.method_named,
            "precision": precision_used(config),
            "device": choose_device(config.device).type,
            "seed": config.seed,
            "best_epoch": state.best_epoch,
            "history": state.history,
            "threads": state.threads,
            "versions": versions(),
            **({} if step.stream is None else {"stream": dict(step.stream)}),
            **(
                {"from_scratch": True} if from_scratch else {}
            ),  # nothing of the step before is in the network
        }
        return cls(step.types, tuple(t for t in labels.types if t not in step.types), facts)

    @classmethod
    def of_import(cls, labels: LabelSpace, origin: str, config: TrainingConfig) -> StepRecord:
        """The first step of a model that was imported from a Hugging Face checkpoint."""
        facts = {
            "kind": "import",
            "name": "imported",
            "index": 0,
            "method": None,
            "origin": origin,
            "config": config.what_matters(),
            "method_named": config.method_named,
            "versions": versions(),
        }
        return cls(labels.types, (), facts)

    @classmethod
    def from_json(cls, facts: dict[str, Any]) -> StepRecord:
        return cls(tuple(facts["types"]), tuple(facts["known"]), facts)

    def to_json(self, parent: str | None) -> dict[str, Any]:
        return {"parent": parent, "types": self.types, "known": self.known, **self.facts}


DEFAULT_OF_0_1: Final = "cfner"  # which did not record whether somebody named the method


def usable_settings(record: Mapping[str, Any]) -> dict[str, Any]:
    """Those of a saved step's settings that decide the result and that this version knows.

    Settings about progress and hardware are left out: a model may be third-party, and must not decide where
    a training is reported to.
    """
    usable = TrainingConfig.model_fields.keys() - RUNTIME_ONLY
    method = record["config"]["method"]
    if not record.get("method_named", method != DEFAULT_OF_0_1):  # a default that the user did not choose
        usual = TrainingConfig.model_fields["method"].default
        usable -= {"method"} if method == usual else {"method", "parameters", "without"}
    return {key: value for key, value in record["config"].items() if key in usable}


def refuse_bad_settings(settings: Mapping[str, Any], step: Path) -> None:
    """After settings were refused: if the saved ones are the cause, raise an error that names their file."""
    try:
        TrainingConfig.build(settings)
    except ConfigError as error:
        raise ModelError(
            f"The settings that the step was trained with cannot be used. {error.what}",
            where=str(step / FACTS),
            remedy="Give different values for them, or choose a different step.",
        ) from error
