"""Does this folder belong to cfner? Callers list the names that cfner writes; all else is the user's."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from cfner.files.atomic import is_partial
from cfner.files.lock import FILE as LOCK


def foreign_items(folder: Path, ours: Collection[str] = ()) -> list[Path]:
    """What a folder contains besides these names, its lock, and partial files of a killed process."""
    try:
        items = sorted(folder.iterdir())
    except FileNotFoundError:
        return []
    return [item for item in items if item.name not in {*ours, LOCK} and not is_partial(item)]


def is_free(folder: Path) -> bool:
    """Whether a folder is empty, apart from what a process that was killed at its start leaves."""
    return not foreign_items(folder)
