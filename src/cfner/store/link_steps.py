"""Steps taken over from another model folder. Sealed files never change, so two folders can share one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection
from pathlib import Path

from cfner.files.atomic import flush_tree, writing
from cfner.files.json_files import refuse_unusual
from cfner.store.model_folder import ModelFolder, StoredStep


def link_steps(source: ModelFolder, target: ModelFolder) -> None:
    """Put all steps into a folder that has none, under the same names; none of them is current there."""
    with writing(target.path):
        target.steps_path.mkdir(parents=True)
        for name in source.names():
            (target.steps_path / name).mkdir()
            link_files(source.step(name), target.steps_path / name)
        flush_tree(target.steps_path)


def link_files(step: StoredStep, folder: Path, leave_out: Collection[str] = ()) -> None:
    """A step's files as hard links; as copies where the file system has none, or the folder is on another."""
    for file in step.folder.iterdir():
        refuse_unusual(file)
        if file.name in leave_out:
            continue
        try:
            os.link(file, folder / file.name)
        except OSError:
            shutil.copy2(file, folder / file.name)
