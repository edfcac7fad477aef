"""What a folder of runs holds: the cells that were asked for, the results, and the arrays beside them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from cfner.errors import ConfigError

SCHEMA = 1
Ints = NDArray[np.int32]


@dataclass(frozen=True)
class Setting:
    """What runs must share to be compared. ``shared``: all else, by name."""

    data: str
    first: int
    per_step: int
    sampling: str
    labels: str
    shared: tuple[tuple[str, str], ...]
    apart: str = field(default="", compare=False)  # what tells it from others of the same data and steps

    @property
    def steps(self) -> str:
        return f"FG-{self.first}-PG-{self.per_step}"

    @property
    def title(self) -> str:
        return f"{self.stream}{'' if self.labels == 'own' else f', labels: {self.labels}'}{self.apart}"

    @property
    def stream(self) -> str:
        return f"{self.data}, {self.steps}, {self.sampling} sampling"


@dataclass(frozen=True)
class GridCell:
    """One run that was asked for."""

    key: str
    method: str
    setting: Setting
    seed: int
    state: str  # finished, failed, waiting
    error: str | None


@dataclass(frozen=True)
class StepScores:
    """Scores after one step, in percent; the two confusions are None where they cannot be counted."""

    types: tuple[str, ...]
    micro: float
    macro: float
    per_type: Mapping[str, float]
    old_to_other: float | None
    to_new: float | None


@dataclass(frozen=True)
class Slice:
    sentences: int
    mentions: Mapping[str, int]


@dataclass(frozen=True)
class Run:
    """One finished run."""

    key: str
    method: str
    setting: Setting
    seed: int
    steps: tuple[StepScores, ...]
    mean_micro: float
    mean_macro: float
    last_micro: float
    last_macro: float
    forgetting: Mapping[str, float | None]
    mean_forgetting: float | None
    slices: tuple[Slice, ...]
    seconds: float | None
    peak_memory: float | None

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(type_ for step in self.steps for type_ in step.types))


@dataclass(frozen=True)
class SentenceCounts:
    """Per step, test sentence and type: mentions found, in the gold, and predicted. Sparse."""

    step: Ints
    sentence: Ints
    type: Ints
    found: Ints
    gold: Ints
    predicted: Ints
    types: tuple[str, ...]
    sentences: int
    learned: Ints  # [steps]: how many of ``types``, in order, are learned after each step


@dataclass(frozen=True)
class Features:
    """Features [n, d] of test words after the last step, and the type of each."""

    features: NDArray[np.float32]
    type: Ints
    types: tuple[str, ...]


@dataclass(frozen=True)
class Runs:
    folder: Path
    name: str | None
    cells: tuple[GridCell, ...]
    runs: tuple[Run, ...]

    def counts(self, run: Run) -> SentenceCounts | None:
        """None where the run left none."""
        found = self._arrays(run, "counts.npz")
        if found is None:
            return None
        kinds = ("step", "sentence", "type", "found", "gold", "predicted", "learned")
        arrays = {kind: found[kind].astype(np.int32) for kind in kinds}
        return SentenceCounts(
            types=tuple(map(str, found["types"])), sentences=int(found["sentences"]), **arrays
        )

    def features(self, run: Run) -> Features | None:
        found = self._arrays(run, "features.npz")
        if found is None or not len(found["features"]):
            return None
        types = tuple(map(str, found["types"]))
        return Features(found["features"].astype(np.float32), found["type"].astype(np.int32), types)

    def _arrays(self, run: Run, name: str) -> dict[str, Any] | None:
        path = self.folder / "cells" / Path(run.key).name / name
        if not path.is_file():
            return None
        try:
            with np.load(path, allow_pickle=False) as held:
                return {kind: held[kind] for kind in held.files}
        except (OSError, ValueError, BadZipFile) as error:
            raise _damaged(path, str(error)) from error


def read_runs(folder: Path) -> Runs:
    """Everything but the arrays, which are read when they are needed."""
    grid_path, results_path = folder / "grid.json", folder / "results.json"
    if not grid_path.is_file():
        raise ConfigError(
            "There is no grid.json, so this is not a folder of benchmark runs.",
            where=str(folder),
            remedy="Give the folder that 'cfner bench run' wrote.",
        )
    grid = _read(grid_path)
    results = _read(results_path) if results_path.is_file() else {"runs": []}
    try:
        cells = tuple(_cell(row) for row in grid["cells"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _damaged(grid_path, repr(error)) from error
    try:
        runs = tuple(_run(row) for row in results["runs"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _damaged(results_path, repr(error)) from error
    order = {cell.key: place for place, cell in enumerate(cells)}
    kept = sorted((run for run in runs if run.key in order), key=lambda run: order[run.key])
    told = _told_apart(cell.setting for cell in cells)
    return Runs(
        folder,
        grid.get("name"),
        tuple(replace(cell, setting=told[cell.setting]) for cell in cells),
        tuple(replace(run, setting=told.get(run.setting, run.setting)) for run in kept),
    )


def _told_apart(settings: Iterable[Setting]) -> dict[Setting, Setting]:
    """The same settings, each with what tells it from others of the same data and steps."""
    alike: dict[object, list[Setting]] = {}
    for setting in dict.fromkeys(settings):
        alike.setdefault((setting.data, setting.first, setting.per_step), []).append(setting)
    return {
        setting: replace(setting, apart=_apart(setting, several))
        for several in alike.values()
        for setting in several
    }


def _apart(setting: Setting, several: list[Setting]) -> str:
    """', epochs 1' beside others with 6 epochs; nothing where all share the same."""
    if len({one.shared for one in several}) == 1:
        return ""
    recorded = [dict(shared) for shared in {one.shared for one in several}]
    names = [name for name in sorted({name for one in recorded for name in one}) if _varies(name, recorded)]
    plain = [name for name in names if name != "text"]  # a hash tells a reader little
    if len({tuple(one.get(name) for name in plain) for one in recorded}) == len(recorded):
        names = plain
    mine = dict(setting.shared)
    return "".join(f", {name} {mine.get(name, 'not recorded')}" for name in names)


def _varies(name: str, recorded: list[dict[str, str]]) -> bool:
    return len({one.get(name) for one in recorded}) > 1


def _cell(row: Mapping[str, Any]) -> GridCell:
    return GridCell(row["key"], row["method"], _setting(row), row["seed"], row["state"], row.get("error"))


def _setting(row: Mapping[str, Any]) -> Setting:
    shared = tuple((name, _text(value)) for name, value in sorted(row["shared"].items()))
    return Setting(row["data"], row["first"], row["per_step"], row["sampling"], row["labels"], shared)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _run(row: Mapping[str, Any]) -> Run:
    measured = row.get("measured") or {}
    return Run(
        key=row["key"],
        method=row["method"],
        setting=_setting(row),
        seed=row["seed"],
        steps=tuple(_step(step) for step in row["steps"]),
        mean_micro=row["mean_micro_f1"],
        mean_macro=row["mean_macro_f1"],
        last_micro=row["last_micro_f1"],
        last_macro=row["last_macro_f1"],
        forgetting=row["forgetting"],
        mean_forgetting=row["mean_forgetting"],
        slices=tuple(Slice(part["sentences"], dict(part["mentions"])) for part in row.get("slices") or ()),
        seconds=measured.get("seconds"),
        peak_memory=measured.get("peak_memory"),
    )


def _step(step: Mapping[str, Any]) -> StepScores:
    confusion = step.get("confusion") or {}
    return StepScores(
        types=tuple(step["types"]),
        micro=step["micro_f1"],
        macro=step["macro_f1"],
        per_type=dict(step["per_type"]),
        old_to_other=confusion.get("old_to_other"),
        to_new=confusion.get("to_new"),
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _damaged(path, str(error)) from error
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise _damaged(path, f"it is not of schema {SCHEMA}")
    return data


def _damaged(path: Path, why: str) -> ConfigError:
    return ConfigError(
        f"The file cannot be read ({why}).",
        where=str(path),
        remedy="Run 'cfner bench run' again on the folder: finished runs are kept.",
    )
