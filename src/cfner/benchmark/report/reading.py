"""Reads a folder of runs: the requested cells, the results, and their arrays."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, BeforeValidator, ValidationError, model_validator

from cfner.errors import ConfigError, problems

SCHEMA = 1
Ints = NDArray[np.int32]


def _texts(shared: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for name, value in sorted(shared.items())
    )


class Setting(BaseModel, frozen=True):
    """What runs must share to be compared. ``shared``: all else, by name."""

    data: str
    first: int
    per_step: int
    sampling: str
    labels: str
    shared: Annotated[tuple[tuple[str, str], ...], BeforeValidator(_texts)]

    @property
    def steps(self) -> str:
        return f"{self.data}, FG-{self.first}-PG-{self.per_step}"

    @property
    def stream(self) -> str:
        return f"{self.steps}, {self.sampling} sampling"


class GridCell(BaseModel, frozen=True):
    """One requested run."""

    key: str
    method: str
    setting: Setting
    seed: int
    state: str = "finished"  # or failed, waiting
    error: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _setting_of_row(cls, row: Mapping[str, Any]) -> dict[str, Any]:
        return {**row, "setting": row}


class StepScores(BaseModel, frozen=True):
    """Scores after one step, in percent; confusions are None where they cannot be counted."""

    types: tuple[str, ...]
    micro_f1: float
    macro_f1: float
    per_type: dict[str, float | None]
    mentions: dict[str, int] = {}  # in the test data; empty in results of earlier versions
    confusion: dict[str, float | None] | None = None

    def confused(self, kind: str) -> float | None:
        return (self.confusion or {}).get(kind)


class Slice(BaseModel, frozen=True):
    mentions: dict[str, int]  # per type


class Measured(BaseModel, frozen=True):
    seconds: float | None = None
    peak_memory: float | None = None
    precision: str | None = None


class Run(GridCell, frozen=True):
    """One finished run. Results of earlier versions lack the fields that have a default here."""

    steps: tuple[StepScores, ...]
    mean_micro_f1: float
    mean_macro_f1: float
    last_micro_f1: float
    last_macro_f1: float
    mean_forgetting: float | None
    last_macro_f1_30: float | None = None
    when_learned: dict[str, float | None] = {}
    at_the_end: dict[str, float | None] = {}
    lost: dict[str, float | None] = {}
    mean_when_learned: float | None = None
    mean_at_the_end: float | None = None
    mean_lost: float | None = None
    slices: tuple[Slice, ...] = ()
    measured: Measured = Measured()

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(type_ for step in self.steps for type_ in step.types))

    @property
    def mentions(self) -> dict[str, int]:
        """How often the test data mentions each type."""
        return self.steps[-1].mentions


@dataclass(frozen=True)
class SentenceCounts:
    """Per step, test sentence and type: mentions found, in the gold, and predicted. Sparse."""

    step: Ints
    sentence: Ints
    type: Ints
    found: Ints
    gold: Ints
    predicted: Ints
    types: NDArray[np.str_]
    sentences: Ints  # one number
    learned: Ints  # [steps]: how many of ``types``, in order, are learned after each step


@dataclass(frozen=True)
class Features:
    """Features [n, d] of test words after the last step, and the type of each."""

    features: NDArray[np.float32]
    type: Ints
    types: NDArray[np.str_]


Row = TypeVar("Row", bound=GridCell)
Arrays = TypeVar("Arrays", SentenceCounts, Features)


@dataclass(frozen=True)
class Runs:
    folder: Path
    name: str | None
    cells: list[GridCell]
    runs: list[Run]

    def counts(self, run: Run) -> SentenceCounts | None:
        """None if the run saved none."""
        return self._arrays(run, "counts.npz", SentenceCounts)

    def features(self, run: Run) -> Features | None:
        found = self._arrays(run, "features.npz", Features)
        return found if found is not None and len(found.features) else None

    def _arrays(self, run: Run, name: str, kind: type[Arrays]) -> Arrays | None:
        path = self.folder / "cells" / Path(run.key).name / name
        if not path.is_file():
            return None
        try:
            with np.load(path, allow_pickle=False) as held:
                return kind(**held)
        except (OSError, TypeError, ValueError, BadZipFile) as error:
            raise _damaged(path, error) from error


def read_runs(folder: Path) -> Runs:
    """Everything but the arrays, which are read on demand."""
    grid_path, results_path = folder / "grid.json", folder / "results.json"
    if not grid_path.is_file():
        raise ConfigError(
            "There is no grid.json, so this is not a folder of benchmark runs.",
            where=str(folder),
            remedy="Give the folder that 'cfner bench run' wrote.",
        )
    name, cells = _rows(grid_path, "cells", GridCell)
    runs = _rows(results_path, "runs", Run)[1] if results_path.is_file() else []
    order = {cell.key: place for place, cell in enumerate(cells)}
    kept = sorted((run for run in runs if run.key in order), key=lambda run: order[run.key])
    return Runs(folder, name, cells, kept)


def _rows(path: Path, name: str, kind: type[Row]) -> tuple[str | None, list[Row]]:
    """(the name of the grid, if the file has it; one object for each row)"""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["schema"] != SCHEMA:
            raise ValueError(f"it is not of schema {SCHEMA}")
        return data.get("name"), [kind.model_validate(row) for row in data[name]]
    except (OSError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> ConfigError:
    if isinstance(error, ValidationError):
        why = problems(error)
    else:
        why = repr(error) if isinstance(error, KeyError) else str(error)
    return ConfigError(
        f"The file cannot be read ({why}).",
        where=str(path),
        remedy="Run 'cfner bench run' again on the folder: finished runs are kept.",
    )
