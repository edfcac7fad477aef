"""Free the disk space of old steps: delete their weights, keep their record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cfner.errors import ConfigError
from cfner.files.atomic import flush, writing
from cfner.files.json_files import refuse_unusual, write_json_atomic
from cfner.files.lock import PATIENCE, locked
from cfner.store.model_folder import PRUNED, ModelFolder, StoredStep, is_weights

_File = tuple[int, int]  # device and inode: the same for all hard links of a file


@dataclass(frozen=True)
class Pruned:
    """``steps`` lost their weights. ``freed``: bytes on disk; ``shared``: bytes that other folders hold."""

    steps: tuple[int, ...]
    freed: int
    shared: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def prune(model: str | Path, keep: int, *, dry_run: bool = False) -> Pruned:
    """Delete the weights of all steps but the latest ``keep`` and the current one.

    A step that shares all its weights with a kept one is not pruned: that would free nothing. ``dry_run``
    only reports what would be deleted.
    """
    if keep < 1:
        raise ConfigError(f"`keep` must be at least 1, got {keep}.", remedy="Keep at least 1.")
    folder = ModelFolder(model)
    folder.current_name()  # is there a model at all?
    with locked(folder.path, wait=PATIENCE):
        folder.sweep()
        steps = [folder.step(name) for name in folder.names()]
        current = folder.step().name
        kept = [step for step in steps[-keep:] if not step.pruned]
        kept += [step for step in steps[:-keep] if step.name == current]
        held = {_id(file) for step in kept for file in _weights(step)}
        # the process was stopped while pruning a step that is marked as pruned but has weights
        gone = [s for s in steps if s not in kept and any(_id(f) not in held for f in _weights(s))]
        gone += [s for s in steps if s.pruned and s not in gone and _weights(s)]
        result = _counted(gone)
        if not dry_run:
            for step in gone:
                _remove(step)
    return result


def _weights(step: StoredStep) -> list[Path]:
    files = [file for file in step.folder.iterdir() if is_weights(file.name)]
    for file in files:
        refuse_unusual(file)
    return files


def _id(file: Path) -> _File:
    stat = file.lstat()
    return stat.st_dev, stat.st_ino


def _counted(steps: Iterable[StoredStep]) -> Pruned:
    """A file is freed if all its hard links are deleted."""
    stats = {file: file.lstat() for step in steps for file in _weights(step)}
    names = Counter((stat.st_dev, stat.st_ino) for stat in stats.values())
    freed, shared = 0, 0
    for file, stat in {(s.st_dev, s.st_ino): s for s in stats.values()}.items():
        if names[file] == stat.st_nlink:
            freed += stat.st_size
        else:
            shared += stat.st_size
    return Pruned(tuple(int(step.name) for step in steps), freed, shared)


def _remove(step: StoredStep) -> None:
    """Mark the step first: if the process stops halfway, the step counts as pruned and the next call
    continues."""
    if not step.pruned:
        today = datetime.now(UTC).isoformat("T", "seconds")
        write_json_atomic(step.folder / PRUNED, {"pruned": today})
    with writing(step.folder):
        for file in _weights(step):
            file.unlink()
        flush(step.folder)
