"""Open a model wherever it is from: a model folder of ours, or any Hugging Face token classifier."""

from __future__ import annotations

from pathlib import Path

from cfner.errors import ModelError
from cfner.store.hf_import import read_checkpoint
from cfner.store.model_files import LoadedModel, read_model
from cfner.store.model_folder import CURRENT, ModelFolder


def is_model_folder(source: str | Path) -> bool:
    """Whether this is a folder of steps, as opposed to somebody's checkpoint."""
    path = Path(source)
    return (path / CURRENT).exists() or (not (path / "config.json").exists() and (path / "steps").is_dir())


def open_model(source: str | Path, step: int | None = None) -> LoadedModel:
    """The model of a folder's current step (or another), its seal checked; or a checkpoint as it is."""
    if is_model_folder(source):
        folder = ModelFolder(source)
        stored = folder.step(step)
        folder.verify(stored)
        return read_model(stored)
    path = Path(source)
    if path.is_dir() and not (path / "config.json").is_file():
        raise ModelError(
            "There is no model here.",
            where=str(path),
            remedy="Give a folder of steps (with a file CURRENT), or a Hugging Face checkpoint (with a "
            "config.json).",
        )
    if step is not None:
        raise ModelError(
            f"Step {step} was asked for, but this is a checkpoint without steps.",
            where=str(source),
            remedy="Leave the step out.",
        )
    return read_checkpoint(str(source))
