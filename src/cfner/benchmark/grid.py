"""A grid of runs in a folder: what was requested, what is finished, and all results.

    RUNS/
      grid.json              every requested cell, and its state
      results.json, results.csv   the finished ones, in the order of the grid
      cells/KEY/             job.json, log.txt, and result.json, counts.npz, features.npz or error.json
      first/KEY/             a first step that several cells begin with

A cell's folder is named by a hash of all that its result depends on. So nothing is run twice, and a finished
cell is run again only if something that affects its result changed.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from cfner.benchmark.cells import Cell, MethodChoice
from cfner.benchmark.streams import Division, Source
from cfner.benchmark.worker import ERROR, FIRST, JOB, RESULT
from cfner.corpus.corpus import Corpus
from cfner.errors import ConfigError, ModelError, nearest
from cfner.files.atomic import write_text_atomic
from cfner.files.json_files import write_json_atomic
from cfner.files.owned import is_free
from cfner.files.safe_text import spreadsheet_cell
from cfner.methods.registry import method_class
from cfner.store.pretrained import recorded
from cfner.stream.manifest import sentences_hash, settings_hash
from cfner.stream.stream import TaskStream
from cfner.training.config import TrainingConfig

SCHEMA = 1
GRID, RESULTS, TABLE = "grid.json", "results.json", "results.csv"


def cells_of(
    sources: Iterable[Source],
    divisions: Sequence[Division],
    methods: Sequence[MethodChoice],
    seeds: Sequence[int],
    config: TrainingConfig,
    uses: Sequence[str] = (),
) -> Iterator[Cell]:
    """data x setting x method x seed."""
    known = {name for method in methods for name in method_class(method.name).Parameters.model_fields}
    for name in config.parameters.keys() - known:
        raise ConfigError(f"None of the methods has a parameter '{name}'.", remedy=nearest(name, known))
    config = config.model_copy(update={"encoder": recorded(config.encoder)})  # valid in every process
    for source in sources:
        for division in divisions:
            for method in methods:
                for seed in seeds:
                    settings = method.applied_to(config.model_copy(update={"seed": seed}))
                    usual = {name: getattr(config, name) for name in method.settings}
                    yield Cell(source, division, str(method), settings, tuple(uses), config.parameters, usual)


@dataclass(frozen=True)
class Planned:
    """A cell with its keys, computed from the current data."""

    cell: Cell
    key: str
    first_key: str
    data: str  # the name of the corpus
    text: str  # a hash of its content
    left_out: tuple[str, ...]  # which parts of it no step learns from

    @property
    def place(self) -> str:
        return f"{self.data} {self.cell.division.setting} seed {self.cell.seed}"

    def to_json(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "method": self.cell.method,
            "parameters": self.cell.config.parameters,
            "data": self.data,
            **asdict(self.cell.division),
            "seed": self.cell.seed,
            "shared": self.cell.shared(self.text),
        }


def plan(cells: Iterable[Cell]) -> list[Planned]:
    """The cells with their keys; every corpus and every division of it is read once."""
    read = cache(Source.read)
    text_of = cache(lambda source: _text_hash(read(source)))
    stream_of = cache(lambda source, division, seed: division.stream(read(source), source, seed))
    planned: dict[str, Planned] = {}
    for cell in cells:
        stream: TaskStream = stream_of(cell.source, cell.division, cell.seed)
        keys = cell.key(stream), cell.first_step_key(stream)
        left_out = (*read(cell.source).report.left_out(), *stream.left_out())
        one = Planned(cell, *keys, stream.corpus_name, text_of(cell.source), left_out)
        other = planned.setdefault(one.key, one)
        if other.cell.method != cell.method:  # tables would show the run under one of its names only
            raise ConfigError(
                f"'{other.cell.method}' and '{cell.method}' are the same run, because parameters for all "
                "methods apply to both.",
                remedy="Leave one of them out, or do not give the parameter to all methods.",
            )
    return list(planned.values())


def _text_hash(corpus: Corpus) -> str:
    splits = {"train": corpus.train, "dev": corpus.dev, "test": corpus.test}
    return settings_hash({name: sentences_hash(sentences) for name, sentences in splits.items()})


@dataclass(frozen=True)
class Job:
    """Work for one process: a cell, or a first step that other jobs ``need``."""

    folder: Path
    name: str
    needs: Path | None = None  # the folder of a first step that must be finished first


class GridFolder:
    """The folder RUNS. Cells of earlier grids in the same folder stay in it."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def finished(self, planned: Iterable[Planned]) -> list[Planned]:
        """Those that have a result here."""
        return [one for one in planned if (self._cell(one.key) / RESULT).is_file()]

    def result(self, one: Planned) -> dict[str, Any]:
        """The result of a finished run."""
        found: dict[str, Any] = self._read(f"cells/{one.key}/{RESULT}")
        return found

    def add(self, planned: Sequence[Planned], name: str | None, *, keep_models: bool = False) -> list[Job]:
        """Record what is requested; returns the jobs that are left, shared first steps first."""
        if not (self.path / GRID).is_file() and not is_free(self.path):
            raise ModelError(
                "The folder is not empty and does not contain a grid of runs.",
                where=str(self.path),
                remedy="Choose a different folder with `out`.",
            )
        self.path.mkdir(parents=True, exist_ok=True)
        left = [one for one in planned if not (self._cell(one.key) / RESULT).is_file()]
        sharing = Counter(one.first_key for one in left)
        firsts: dict[str, Job] = {}
        jobs = []
        for one in left:
            first = self.path / "first" / one.first_key
            there = (first / RESULT).is_file()
            shared = there or sharing[one.first_key] > 1
            if shared and not there and one.first_key not in firsts:
                firsts[one.first_key] = Job(first, f"first step, {one.place}")
                _write_job(first, kind=FIRST, key=one.first_key, cell=one.cell.first_step().to_json())
            _write_job(
                self._cell(one.key),
                kind="cell",
                key=one.key,
                cell=one.cell.to_json(),
                first=str(first.resolve()) if shared else None,
                keep_models=keep_models,
            )
            needs = first if one.first_key in firsts else None
            jobs.append(Job(self._cell(one.key), f"{one.cell.method}, {one.place}", needs))
        known = self.grid()["cells"] if (self.path / GRID).is_file() else []
        rows = rows_joined([*known, *(one.to_json() for one in planned)])
        write_json_atomic(self.path / GRID, {"schema": SCHEMA, "name": name, "cells": rows})
        return [*firsts.values(), *jobs]

    def write_results(self) -> None:
        """grid.json with the state of every cell; results.json and results.csv of the finished ones."""
        grid = self.grid()
        runs = []
        for row in grid["cells"]:
            folder = self._cell(row["key"])
            row["state"], row["error"] = "waiting", None
            if (folder / RESULT).is_file():
                row["state"] = "finished"
                # its name may have changed since (a renamed data folder, a parameter now given to all
                # methods), but not its result
                names = {name: row[name] for name in ("data", "method", "shared")}
                result = self._read(f"cells/{row['key']}/{RESULT}") | names
                runs.append(result if row["labels"] == "own" else _without_confusions(result))
            elif (folder / ERROR).is_file():
                row["state"] = "failed"
                row["error"] = self._read(f"cells/{row['key']}/{ERROR}")["error"]
        write_json_atomic(self.path / GRID, grid)
        write_json_atomic(self.path / RESULTS, {"schema": SCHEMA, "runs": runs})
        write_text_atomic(self.path / TABLE, csv_text(runs))

    def _cell(self, key: str) -> Path:
        return self.path / "cells" / key

    def grid(self) -> dict[str, Any]:
        """The content of grid.json."""
        grid: dict[str, Any] = self._read(GRID)
        if any("shared" not in row for row in grid["cells"]):
            raise ModelError(
                "The grid was written by an earlier version, which did not record the settings of its runs.",
                where=str(self.path / GRID),
                remedy="Choose a different folder with `out`.",
            )
        return grid

    def _read(self, file: str) -> Any:
        path = self.path / file
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ModelError(
                f"The file cannot be read: {error}.", where=str(path), remedy="Restore it from a copy."
            ) from error


def rows_joined(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Old rows, replaced by newer ones. A run has a row in each comparison that it is in."""
    return list({(row["key"], settings_hash(row["shared"])): row for row in rows}.values())


def _without_confusions(run: dict[str, Any]) -> dict[str, Any]:
    """For a run that keeps old slices: every step learns every type, so there are no old and new types."""
    return run | {"confusion": None, "steps": [step | {"confusion": None} for step in run["steps"]]}


def _write_job(folder: Path, **spec: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_json_atomic(folder / JOB, spec)


_CSV = ("method", "data", "first", "per_step", "sampling", "labels", "seed")
_CSV_MEANS = (
    *("mean_micro_f1", "mean_macro_f1", "last_micro_f1", "last_macro_f1", "mean_forgetting"),
    *("last_macro_f1_30", "mean_when_learned", "mean_at_the_end", "mean_lost"),  # absent in older results
)


def csv_text(runs: Sequence[dict[str, Any]]) -> str:
    """One line per run and step; a run's means on each of its lines."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow([*_CSV, "step", "types", "micro_f1", "macro_f1", *_CSV_MEANS, "key"])
    for run in runs:
        for number, step in enumerate(run["steps"], start=1):
            figures = [number, " ".join(step["types"]), step["micro_f1"], step["macro_f1"]]
            row = [*(run[c] for c in _CSV), *figures, *(run.get(c) for c in _CSV_MEANS), run["key"]]
            table.writerow([spreadsheet_cell(value) for value in row])
    return out.getvalue()
