"""Saves a step: the only place that adds one to a model folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cfner.errors import ModelError
from cfner.evaluation.measured import Measured
from cfner.files.json_files import write_json
from cfner.files.lock import PATIENCE, locked
from cfner.network.experts import ExpertNetwork
from cfner.store.link_steps import share_weights
from cfner.store.model_files import LoadedModel, write_model
from cfner.store.model_folder import ModelFolder, StoredStep
from cfner.store.step_files import FACTS, SCORES, format_of


def save_step(
    folder: str | Path,
    model: LoadedModel,
    record: Mapping[str, Any],
    *,
    parent: str | None,
    measured: Measured | None = None,
    extras: Mapping[str, Any] | None = None,
    saved: StoredStep | None = None,
) -> StoredStep:
    """Add a step to a model folder and make it current.

    ``parent``: the hash of the step that it was learned from, which must be the folder's current one.
    ``extras``: JSON files to save with the step, by name. ``saved``: where this same step was saved before;
    if that is in this folder, there is nothing to do, since steps are immutable.
    """
    target = ModelFolder(folder)

    def write(path: Path) -> None:
        write_model(path, model)
        experts = isinstance(model.network, ExpertNetwork)
        calibrated, parts = model.calibration is not None, bool(model.network.parts)
        stored = as_stored(
            record,
            parent,
            experts=experts,
            calibrated=calibrated,
            parts=parts,
            ordered=model.labels.ordered,
        )
        write_json(path / FACTS, stored)
        if experts and target.exists():
            share_weights(path, target.step())
        if measured is not None:
            write_json(path / SCORES, measured.to_json())
        for name, value in (extras or {}).items():
            write_json(path / name, value)

    with locked(target.path, wait=PATIENCE):
        target.sweep()
        if saved is not None and saved.folder.parent.resolve() == target.steps_path.resolve():
            return saved
        if target.exists() and target.step().hash != parent:
            raise ModelError(
                "The folder's current step is not the one that this model was learned from.",
                where=str(target.path),
                remedy="Choose a different folder, or continue from the folder with ContinualTagger.load.",
            )
        return target.add(write)


def as_stored(
    record: Mapping[str, Any],
    parent: str | None,
    *,
    experts: bool = False,
    calibrated: bool = False,
    parts: bool = False,
    ordered: bool = False,
) -> dict[str, Any]:
    """A step's record for step.json. ``experts``, ``calibrated``, ``parts``: what the model has. ``ordered``:
    its labels follow an order.
    """
    return {**record, "format": format_of(experts, calibrated, parts, ordered), "parent": parent}
