"""A model's history: its steps and their parents, and rollback."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from cfner.errors import ModelError
from cfner.evaluation.estimate import Estimate
from cfner.evaluation.measured import over_all
from cfner.files.lock import PATIENCE, locked
from cfner.store.lineage import LineageStep, lineage, lineage_step
from cfner.store.link_steps import own_bytes
from cfner.store.model_folder import ModelFolder
from cfner.store.series import Series, series_of
from cfner.store.step_files import (
    read_facts,
    stored_calibration,
)
from cfner.stream.sentence_set import SentenceSet


@dataclass(frozen=True)
class StepFigures:
    """F1 of a step on one set of sentences: micro and macro over ``types``, which these sentences mention.

    Without recorded sentences there is no mean, because it might mix several sets.
    """

    on: SentenceSet | None
    label: str
    types: tuple[str, ...]
    micro_f1: float | None
    macro_f1: float | None
    per_type: dict[str, float]

    @classmethod
    def of(cls, series: Series, step: int) -> StepFigures:
        scores, named = series.scores[step], series.on is not None
        micro, macro = (scores.micro_f1, scores.macro_f1) if named and scores.types else (None, None)
        return cls(series.on, series.label, scores.types, micro, macro, scores.f1_of)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "on": None if self.on is None else self.on.to_json()}


@dataclass(frozen=True)
class PastStep:
    """One step of a model folder, as ``history`` lists it."""

    number: int
    kind: str  # learn, consolidate, import, rename, merge, forget or calibrate
    name: str
    types: tuple[str, ...]  # what it learned, imported, renamed, removed or calibrated
    all_types: tuple[str, ...]  # what the model knows after it
    parent: int | None
    current: bool
    method: str | None
    sentences: int | None
    data: dict[str, Any] | None  # for each part: sentences, mentions per type, hash
    micro_f1: float | None  # in the series that covers most steps, if it covers all known types
    macro_f1: float | None
    saved: str  # when, as ISO 8601 in UTC
    hash: str
    calibrated: tuple[str, ...] = ()  # types with a calibration
    uncalibrated: tuple[str, ...] = ()  # types whose calibration this step dropped
    disk: int = 0  # bytes not shared with earlier steps
    pruned: bool = False  # its weights were removed
    origin: str | None = None  # hash of its parent in another folder
    figures: StepFigures | None = None  # in the series that covers most steps; comparable between steps
    elsewhere: tuple[StepFigures, ...] = ()  # on other sentences; not comparable
    estimate: Estimate | None = None  # scores of its types when it was learned

    def __repr__(self) -> str:
        f1 = "" if self.micro_f1 is None else f", micro F1 {self.micro_f1:.1f}"
        current = ", current" if self.current else ""
        return f"PastStep({self.number}, {self.kind}: {', '.join(self.types)}{f1}{current})"

    def to_json(self) -> dict[str, Any]:
        figures = None if self.figures is None else self.figures.to_json()
        return {
            **asdict(replace(self, estimate=None)),
            "figures": figures,
            "elsewhere": [each.to_json() for each in self.elsewhere],
            "estimate": None if self.estimate is None else self.estimate.to_json(),
        }


def history(model: str | Path) -> list[PastStep]:
    """All steps in the order in which they were added; a step's parent is not always the previous one."""
    folder = ModelFolder(model)
    current, disk = folder.current_name(), own_bytes(folder)
    steps = lineage(model)
    series = series_of(folder, steps)
    return [
        _scored(replace(past_step(step, step.stored.name == current), disk=disk[step.stored.name]), series)
        for step in steps
    ]


def _scored(step: PastStep, series: Sequence[Series]) -> PastStep:
    """Add the step's figures. Steps are compared in the first series."""
    main = next((one for one in series if one.on is not None), None)
    figures = StepFigures.of(main, step.number) if main is not None and step.number in main.scores else None
    others = (one for one in series if one is not main and step.number in one.scores)
    whole = figures is not None and over_all(figures.types, step.all_types)
    return replace(
        step,
        micro_f1=figures.micro_f1 if figures is not None and whole else None,
        macro_f1=figures.macro_f1 if figures is not None and whole else None,
        figures=figures,
        elsewhere=tuple(StepFigures.of(one, step.number) for one in others),
    )


def verify(model: str | Path) -> list[PastStep]:
    """Check every byte of every step and of the pointer, and that each step's parent exists and is older.

    Step 1 may have a parent in another folder. For pruned steps, everything but the weights is checked.
    """
    folder = ModelFolder(model)
    folder.step()  # the current step: its name and hash must match the pointer
    folder.refuse_unsealed()
    earlier: set[str] = set()
    for name in folder.names():
        step = folder.step(name)
        folder.verify(step)
        parent = read_facts(step)["parent"]
        # the history of a model that was saved to a new folder starts with its step 1
        if parent is not None and parent not in earlier and int(name) != 1:
            raise ModelError(
                f"The parent of step '{name}' is not among the steps before it: the lineage is broken.",
                where=str(step.folder),
                remedy="Restore the missing step from a copy.",
            )
        earlier.add(step.hash)
    return history(model)


def rollback(model: str | Path, step: int) -> PastStep:
    """Make an earlier (or later) step current, after checking its bytes. Nothing is removed."""
    folder = ModelFolder(model)
    target = folder.verified(step)
    past = past_step(lineage_step(model, target.name), current=True)  # before anything is changed
    with locked(folder.path, wait=PATIENCE):
        folder.point_to(target.name)
    return past


def past_step(step: LineageStep, current: bool) -> PastStep:
    """A step as ``history`` lists it, without figures."""
    learned = step.kind == "learn"
    calibration, operation = stored_calibration(step.stored), step.record.get("operation") or {}
    return PastStep(
        number=step.number,
        kind=step.kind,
        name=step.name,
        types=_types(step),
        all_types=step.known,
        parent=step.parent,
        current=current,
        method=step.method if learned else None,
        sentences=step.record["data"]["train"]["sentences"] if learned else None,
        data=step.record["data"] if learned else None,
        micro_f1=None,
        macro_f1=None,
        saved=step.stored.saved(),
        hash=step.hash,
        pruned=step.stored.pruned,
        estimate=step.estimate,
        origin=step.record["parent"] if step.parent is None else None,
        calibrated=() if calibration is None else tuple(calibration.types),
        uncalibrated=tuple(operation.get("uncalibrated", ())),
    )


def _types(step: LineageStep) -> tuple[str, ...]:
    operation = step.record.get("operation")
    if not operation:
        return step.types
    into = operation.get("into")
    return tuple(operation["types"]) if into is None else (into,)
