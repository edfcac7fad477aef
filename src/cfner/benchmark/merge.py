"""Merges grids from several machines into one folder."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cfner.benchmark.grid import GRID, SCHEMA, GridFolder, rows_joined
from cfner.benchmark.league_file import LEAGUE, Searched, read_league, write_league
from cfner.benchmark.worker import COUNTS, RESULT
from cfner.errors import ConfigError, ModelError
from cfner.files.atomic import atomic_folder
from cfner.files.json_files import read_json, write_json_atomic
from cfner.files.lock import locked
from cfner.files.owned import is_free

# names and costs, which may differ between machines; everything else must be equal
_NAMES = frozenset({"data", "method", "shared", "measured"})


class Merged(NamedTuple):
    new: int  # finished runs that the folder did not have
    same: int  # runs that are in several of the folders


def merge(folders: Sequence[Path], out: Path, *, results_only: bool = False) -> Merged:
    """Copy the finished runs of all grids into ``out``, an empty folder or a grid, which keeps its runs.

    A run that is in several folders must have the same result in all of them: otherwise nothing is copied.
    ``results_only``: copy only what tables need, and list no unfinished runs. Such a folder is small and
    names no path of this machine, so it can be published; merged into a new grid, its runs are finished.
    """
    for folder in folders:
        if not (folder / GRID).is_file():
            raise ModelError(
                "There is no grid of runs here.", where=str(folder), remedy="Give folders of 'cfner bench'."
            )
        if folder.resolve() == out.resolve():
            raise ConfigError("A grid cannot be merged into itself.", where=str(out), remedy="Leave it out.")
    if not (out / GRID).is_file() and not is_free(out):
        raise ModelError(
            "The folder is not empty and does not contain a grid of runs.",
            where=str(out),
            remedy="Choose a different folder with `out`.",
        )
    out.mkdir(parents=True, exist_ok=True)
    with locked(out):
        all_folders = [*([out] if (out / GRID).is_file() else []), *folders]
        finished, same = _finished(all_folders)
        league = _leagues(all_folders)
        new = 0
        for key, source in finished.items():
            if source != out:
                left_out = _not_a_result if results_only else None
                with atomic_folder(out / "cells" / key, refuse=_refuse_finished) as place:
                    shutil.copytree(source / "cells" / key, place, ignore=left_out, dirs_exist_ok=True)
                new += 1
        rows = rows_joined(
            [
                row
                for folder in all_folders
                for row in GridFolder(folder).grid()["cells"]
                if not results_only or folder == out or row["key"] in finished
            ]
        )
        name = next((found for f in all_folders if (found := GridFolder(f).grid().get("name"))), None)
        write_json_atomic(out / GRID, {"schema": SCHEMA, "name": name, "cells": rows})
        if league:
            write_league(out, league)
        GridFolder(out).write_results()
    return Merged(new, same)


def _not_a_result(_: str, names: list[str]) -> list[str]:
    return [name for name in names if name not in {RESULT, COUNTS}]


def _refuse_finished(cell: Path) -> None:
    """Only a run that was planned or begun here, and is finished elsewhere, may be replaced."""
    if (cell / RESULT).is_file():
        raise ConfigError(
            "The run was finished here in the meantime.", where=str(cell), remedy="Merge the grids again."
        )


def _finished(folders: Sequence[Path]) -> tuple[dict[str, Path], int]:
    """(the first folder with the result of each finished run; how many are in several folders)."""
    found: dict[str, Path] = {}
    same = 0
    for folder in folders:
        for row in GridFolder(folder).grid()["cells"]:
            key = row["key"]
            if not (folder / "cells" / key / RESULT).is_file() or found.get(key) == folder:
                continue
            if key in found:
                _refuse_contradiction(row, found[key], folder)
                same += 1
            found.setdefault(key, folder)
    return found, same


def _refuse_contradiction(row: dict[str, Any], one: Path, other: Path) -> None:
    results = [read_json(folder / "cells" / row["key"] / RESULT) for folder in (one, other)]
    names = sorted({*results[0], *results[1]} - _NAMES)
    differ = [name for name in names if results[0].get(name) != results[1].get(name)]
    if differ:
        precisions = [str(result.get("measured", {}).get("precision", "?")) for result in results]
        why = f" ({' and '.join(precisions)})" if len(set(precisions)) > 1 else ""
        raise ConfigError(
            f"Two results of one run differ: {row['method']}, {row['data']} "
            f"FG-{row['first']}-PG-{row['per_step']}, seed {row['seed']} has a different "
            f"{', '.join(differ[:3])} in {other} than in {one}. Nothing was merged.",
            where=str(other / "cells" / row["key"]),
            remedy=f"The machines do not compute the same{why}. Delete that folder in the grid that you "
            "trust less, or run the complete comparison on machines of one kind.",
        )


def _leagues(folders: Sequence[Path]) -> dict[str, Searched]:
    """The chosen setting of each method; an error if two leagues chose differently."""
    joined: dict[str, Searched] = {}
    for folder in folders:
        for method, told in read_league(folder).items():
            other = joined.setdefault(method, told)
            if other.chosen != told.chosen:
                raise ConfigError(
                    f"Two leagues chose differently for {method}: '{other.chosen}' and '{told.chosen}'. "
                    "Nothing was merged.",
                    where=str(folder / LEAGUE),
                    remedy="Search once, on one stream and with one seed, and copy that folder to the other "
                    "machines before they start.",
                )
    return joined
