"""Open a model wherever it is from: a model folder of ours, or any Hugging Face token classifier."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cfner.errors import ModelError
from cfner.evaluation.scores import Scores
from cfner.network.device import choose_device
from cfner.store.hf_import import read_checkpoint
from cfner.store.model_files import LoadedModel, read_model
from cfner.store.model_folder import CURRENT, ModelFolder, StoredStep
from cfner.store.step_files import SCORES, read_facts, read_if_there


@dataclass(frozen=True)
class LoadedStep:
    """A step with everything that its folder says of it. ``record`` is its step.json."""

    stored: StoredStep
    model: LoadedModel
    record: dict[str, Any]
    scores: Scores | None


def load_step(folder: str | Path, step: int | None = None) -> LoadedStep:
    """The current step of a model folder (or another), every byte checked against its seal."""
    stored = ModelFolder(folder).verified(step)
    record, scores = read_facts(stored), read_if_there(stored, SCORES, Scores.from_json)
    return LoadedStep(stored, read_model(stored), record, scores)


def is_model_folder(source: str | Path) -> bool:
    """Whether this is a folder of steps, as opposed to somebody's checkpoint."""
    path = Path(source)
    return (path / CURRENT).exists() or (not (path / "config.json").exists() and (path / "steps").is_dir())


def open_model(source: str | Path, step: int | None = None, *, device: str = "auto") -> LoadedModel:
    """The model of a folder's current step (or another), its seal checked; or a checkpoint as it is.

    ``device``: auto (a graphics card if there is one), cpu, cuda, cuda:N or mps.
    """
    chosen = choose_device(device)  # before anything large is read
    model = _read(source, step)
    model.network.to(chosen)
    return model


def _read(source: str | Path, step: int | None) -> LoadedModel:
    if is_model_folder(source):
        return read_model(ModelFolder(source).verified(step))
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
