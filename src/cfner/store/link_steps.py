"""Links steps from one model folder into another. Sealed files never change, so folders can share them."""

from __future__ import annotations

import filecmp
import os
import shutil
from collections.abc import Collection
from pathlib import Path

from cfner.files.atomic import atomic_folder, flush
from cfner.files.json_files import refuse_unusual
from cfner.store.model_folder import ModelFolder, StoredStep


def link_steps(source: ModelFolder, target: ModelFolder) -> None:
    """Link all steps into a folder that has none, under the same names; none becomes current there."""
    for name in source.names():
        with atomic_folder(target.steps_path / name) as folder:
            link_files(source.step(name), folder)
    flush(target.path)  # its folder of steps is new


def own_bytes(model: ModelFolder) -> dict[str, int]:
    """The disk space of each step, by its name; files shared with an earlier step are not counted."""
    seen: set[tuple[int, int]] = set()
    sizes: dict[str, int] = {}
    for name in model.names():
        files = {
            (s.st_dev, s.st_ino): s.st_size for s in (p.lstat() for p in (model.steps_path / name).iterdir())
        }
        sizes[name] = sum(size for file, size in files.items() if file not in seen)
        seen |= files.keys()
    return sizes


def link_files(step: StoredStep, folder: Path, leave_out: Collection[str] = ()) -> None:
    """Put a step's files into another folder, shared where possible."""
    for file in step.folder.iterdir():
        refuse_unusual(file)
        if file.name not in leave_out:
            link_or_copy(file, folder / file.name)


def share_weights(folder: Path, parent: StoredStep) -> None:
    """Of the weights just written to ``folder``, share the files that are identical in the parent."""
    for file in folder.glob("*.safetensors"):
        there = parent.folder / file.name
        refuse_unusual(there)
        # compare bytes, not the hash in the parent's seal: a file damaged since must not be shared
        if there.is_file() and filecmp.cmp(file, there, shallow=False):
            file.unlink()
            link_or_copy(there, file)


def link_or_copy(source: Path, target: Path) -> None:
    """Hard-link a file where the file system allows it, and copy it elsewhere. ``target`` must be new.

    Only for files that nobody writes in place: a change would appear under both names. So a file of another
    user, who may change it, is copied.
    """
    if source.lstat().st_uid == getattr(os, "geteuid", int)():  # Windows has no user ids: 0 on both sides
        try:
            target.hardlink_to(source)
            return
        except FileExistsError:
            raise
        except OSError:
            pass  # another disk, too many links, or a file system without them: copied below
    shutil.copy2(source, target)
