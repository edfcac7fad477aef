"""What a folder of runs holds: the cells that were asked for, the results, and the arrays beside them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from cfner.errors import ConfigError

SCHEMA = 1
Ints = NDArray[np.int32]
Made = TypeVar("Made")


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
    micro_f1: float
    macro_f1: float
    per_type: Mapping[str, float]
    old_to_other: float | None
    to_new: float | None


@dataclass(frozen=True)
class Run:
    """One finished run."""

    key: str
    method: str
    setting: Setting
    seed: int
    steps: tuple[StepScores, ...]
    mean_micro_f1: float
    mean_macro_f1: float
    last_micro_f1: float
    last_macro_f1: float
    mean_forgetting: float | None
    slices: tuple[Mapping[str, int], ...]  # mentions per type
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
    name, cells = _rows(grid_path, "cells", _cell)
    runs = _rows(results_path, "runs", _run)[1] if results_path.is_file() else ()
    order = {cell.key: place for place, cell in enumerate(cells)}
    kept = sorted((run for run in runs if run.key in order), key=lambda run: order[run.key])
    told = _told_apart(cell.setting for cell in cells)
    return Runs(
        folder,
        name,
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


def _made(kind: type[Made], row: Mapping[str, Any], **other: Any) -> Made:
    """A dataclass of the row's values, but for the ``other`` ones."""
    names = {part.name for part in fields(kind)} - other.keys()  # type: ignore[arg-type]
    return kind(**{name: row[name] for name in names}, **other)


def _setting(row: Mapping[str, Any]) -> Setting:
    shared = tuple((name, _text(value)) for name, value in sorted(row["shared"].items()))
    return _made(Setting, row, shared=shared, apart="")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _cell(row: Mapping[str, Any]) -> GridCell:
    return _made(GridCell, row, setting=_setting(row), error=row.get("error"))


def _run(row: Mapping[str, Any]) -> Run:
    measured = row.get("measured") or {}
    return _made(
        Run,
        row,
        setting=_setting(row),
        steps=tuple(_step(step) for step in row["steps"]),
        slices=tuple(part["mentions"] for part in row.get("slices") or ()),
        seconds=measured.get("seconds"),
        peak_memory=measured.get("peak_memory"),
    )


def _step(step: Mapping[str, Any]) -> StepScores:
    confused = step.get("confusion") or {}
    rates = {name: confused.get(name) for name in ("old_to_other", "to_new")}
    return _made(StepScores, step, types=tuple(step["types"]), **rates)


def _rows(
    path: Path, name: str, make: Callable[[Mapping[str, Any]], Made]
) -> tuple[str | None, tuple[Made, ...]]:
    """(the name of the grid, if the file has it; one thing for each row)"""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["schema"] != SCHEMA:
            raise ValueError(f"it is not of schema {SCHEMA}")
        return data.get("name"), tuple(make(row) for row in data[name])
    except (OSError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise _damaged(
            path, str(error) if isinstance(error, OSError | ValueError) else repr(error)
        ) from error


def _damaged(path: Path, why: str) -> ConfigError:
    return ConfigError(
        f"The file cannot be read ({why}).",
        where=str(path),
        remedy="Run 'cfner bench run' again on the folder: finished runs are kept.",
    )
