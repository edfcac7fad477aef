"""A model's history: its steps and their parents, rollback, and changes to its types."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from cfner.errors import ModelError, StreamError
from cfner.evaluation.estimate import Estimate
from cfner.evaluation.measured import Measured, over_all
from cfner.files.json_files import write_json
from cfner.files.lock import PATIENCE, locked
from cfner.network.calibration import Calibration
from cfner.store.lineage import LineageStep, lineage, lineage_step
from cfner.store.link_steps import link_files, own_bytes
from cfner.store.model_folder import SEAL, ModelFolder, StoredStep
from cfner.store.save import as_stored
from cfner.store.series import Series, series_of
from cfner.store.step_files import (
    FACTS,
    LABELS,
    REPORT,
    SCORES,
    read_facts,
    read_if_there,
    read_labels,
    stored_calibration,
)
from cfner.stream.labels import LabelSpace
from cfner.stream.sentence_set import SentenceSet

_WRITTEN_ANEW = {SEAL, LABELS, FACTS, SCORES, REPORT}
_OF_TRAINING = {
    "data",
    "history",
    "best_epoch",
}  # record fields that a step with the same weights does not have


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
        _scored(replace(_past_step(step, step.stored.name == current), disk=disk[step.stored.name]), series)
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
    past = _past_step(lineage_step(model, target.name), current=True)  # before anything is changed
    with locked(folder.path, wait=PATIENCE):
        folder.point_to(target.name)
    return past


def rename(model: str | Path, old: str, new: str) -> PastStep:
    """Rename a type, as a new step with the same weights."""
    return _relabelled(model, "rename", [old], new)


def merge(model: str | Path, types: Sequence[str], into: str) -> PastStep:
    """Merge several types into ``into``, as a new step with the same weights."""
    if len(set(types)) < 2:
        raise StreamError(
            "A merge needs at least two types.", remedy="To change the name of one type, rename it."
        )
    return _relabelled(model, "merge", list(dict.fromkeys(types)), into)


def forget(model: str | Path, types: str | Sequence[str]) -> PastStep:
    """Remove types, as a new step with the same weights: their mentions are now O.

    The scores of all other types stay the same. ``rollback`` brings the types back, and they can be learned
    again.
    """
    gone = [types] if isinstance(types, str) else list(dict.fromkeys(types))
    if not gone:
        raise StreamError("No type to forget was given.", remedy="Name at least one.")
    return _relabelled(model, "forget", gone, None)


def _relabelled(model: str | Path, kind: str, types: Sequence[str], into: str | None) -> PastStep:
    return add_step(model, lambda path, source: _write_relabelled(path, source, kind, types, into))


def add_step(
    model: str | Path, write: Callable[[Path, StoredStep], None], *, expected: str | None = None
) -> PastStep:
    """Add a step derived from the current one, which is passed to ``write``.

    ``expected``: the hash that the current step must have, if the new step depends on it.
    """
    folder = ModelFolder(model)
    folder.current_name()  # raises if there is no model
    with locked(folder.path, wait=PATIENCE):
        folder.sweep()
        source = folder.verified()
        if expected not in (None, source.hash):
            raise ModelError(
                "Another step became current in the meantime, so nothing was added.",
                where=str(model),
                remedy="Start again.",
            )
        added = folder.add(lambda path: write(path, source))
    return _past_step(lineage_step(model, added.name), current=True)


def write_same_weights(
    path: Path,
    source: StoredStep,
    labels: LabelSpace,
    calibration: Calibration | None,
    record: Mapping[str, Any],
) -> None:
    """The files of ``source`` with new labels, calibration and record; without its scores and report."""
    facts = {key: value for key, value in source.read_json(LABELS).items() if key != "calibration"}
    calibrated = {} if calibration is None else {"calibration": calibration.to_json()}
    link_files(source, path, leave_out=_WRITTEN_ANEW)
    write_json(path / LABELS, {**facts, **labels.to_json(), **calibrated})
    stored = {key: value for key, value in record.items() if key not in _OF_TRAINING}
    has = {"experts": "experts" in facts, "calibrated": calibration is not None, "parts": "parts" in facts}
    write_json(path / FACTS, as_stored(stored, source.hash, **has))


def _write_relabelled(
    path: Path, source: StoredStep, kind: str, types: Sequence[str], into: str | None
) -> None:
    """The step ``source`` with ``types`` renamed to ``into``; None removes them."""
    step, measured = read_facts(source), read_if_there(source, SCORES, Measured.from_json)
    before, calibration = read_labels(source), stored_calibration(source)
    labels = _without(before, types) if into is None else before.renamed(types, into)
    dropped: list[str] = []
    if calibration is not None and kind == "rename":
        calibration = calibration.renamed(types[0], str(into))
    elif calibration is not None:  # the calibration of the parts does not hold for the merged type
        dropped = [type_ for type_ in types if type_ in calibration.types]
        calibration = calibration.without(types)

    def names(old: Sequence[str]) -> list[str]:
        new = (into if type_ in types else type_ for type_ in old)
        return list(dict.fromkeys(type_ for type_ in new if type_ is not None))

    # a merged type must not be both learned here and known before
    current = names(step["types"])
    record = {
        **step,
        "kind": kind,
        "name": f"{kind} {', '.join(types)}" + ("" if into is None else f" -> {into}"),
        "types": current,
        "known": [type_ for type_ in names(step["known"]) if type_ not in current],
        "operation": {"types": list(types), "into": into, **({"uncalibrated": dropped} if dropped else {})},
    }
    write_same_weights(path, source, labels, calibration, record)
    # after a merge or removal, words may get other labels, so the model must be scored again
    if kind == "rename" and measured is not None and into is not None:
        write_json(path / SCORES, measured.renamed(types, into).to_json())


def _without(labels: LabelSpace, types: Sequence[str]) -> LabelSpace:
    left = labels.without(types)
    if not left.types:
        raise StreamError(
            f"These are all types that the model knows ({', '.join(labels.types)}): nothing would be left.",
            remedy="Keep at least one, or train a new model.",
        )
    return left


def _past_step(step: LineageStep, current: bool) -> PastStep:
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
