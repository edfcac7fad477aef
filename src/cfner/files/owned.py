"""Is this folder cfner's to write in? Every room says which names it leaves there; the rest is the user's."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from cfner.files.atomic import is_partial
from cfner.files.lock import FILE as LOCK


def foreign_items(folder: Path, ours: Collection[str] = ()) -> list[Path]:
    """What is in a folder besides these names, its lock and what a killed process left half written."""
    try:
        items = sorted(folder.iterdir())
    except FileNotFoundError:
        return []
    return [item for item in items if item.name not in {*ours, LOCK} and not is_partial(item)]


def is_free(folder: Path) -> bool:
    """Whether nothing is there but what a process leaves that was killed as it began."""
    return not foreign_items(folder)
