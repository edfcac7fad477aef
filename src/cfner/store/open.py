"""Opens a model of any kind: a cfner model folder, or a Hugging Face token classifier."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cfner.errors import ConfigError, ModelError
from cfner.network.device import choose_device
from cfner.store.hf_import import read_checkpoint
from cfner.store.model_files import LoadedModel, read_model
from cfner.store.model_folder import CURRENT, ModelFolder
from cfner.store.step_files import read_labels

_STEP: Final = re.compile(r"(?P<source>.+)@(?P<step>[0-9]{1,9})", re.DOTALL)


@dataclass(frozen=True)
class ModelRef:
    """A model folder or checkpoint, and one of its steps (None: the current one)."""

    source: str
    step: int | None = None

    @property
    def name(self) -> str:
        return self.source if self.step is None else f"{self.source}@{self.step}"

    @classmethod
    def parse(cls, text: str | Path, step: int | None = None) -> ModelRef:
        """``M``, or ``M@3`` for step 3 of M; ``step`` is an alternative to the part after the @.

        If something exists under the complete name, it is that: a folder's name may end in @3.
        """
        match = None if Path(text).exists() else _STEP.fullmatch(str(text))
        if match is None:
            return cls(str(text), step)
        if step is not None:
            raise ConfigError(
                f"'{text}' asks for step {match['step']}, but an option asks for step {step}.",
                remedy="Name the step once.",
            )
        return cls(match["source"], int(match["step"]))

    def open(self, device: str = "auto") -> LoadedModel:
        return open_model(self.source, self.step, device=device)


def is_model_folder(source: str | Path) -> bool:
    """Whether this is a folder of steps, not a Hugging Face checkpoint."""
    path = Path(source)
    return (path / CURRENT).exists() or (not (path / "config.json").exists() and (path / "steps").is_dir())


def known_types(source: str | Path) -> tuple[str, ...] | None:
    """The types of a model folder's step (MODEL or MODEL@STEP), without loading weights; None for a
    checkpoint.
    """
    ref = ModelRef.parse(source)
    return read_labels(ModelFolder(ref.source).step(ref.step)).types if is_model_folder(ref.source) else None


def open_model(source: str | Path, step: int | None = None, *, device: str = "auto") -> LoadedModel:
    """Open the model of a folder's current step (or another) and verify its seal; or open a checkpoint.

    Args:
        source: A model folder ("M@3": its step 3), or any Hugging Face token-classification checkpoint.
        step: Which step of the model; default: the current one.
        device: "auto" (a GPU if there is one), "cpu", "cuda", "cuda:N" or "mps".

    Returns:
        The network with its tokenizer and labels. To learn and predict, use ``ContinualTagger.open`` instead.
    """
    chosen = choose_device(device)  # before anything large is read
    ref = ModelRef.parse(source, step)
    model = _read(ref.source, ref.step)
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
            f"Step {step} was requested, but this is a checkpoint without steps.",
            where=str(source),
            remedy="Leave the step out.",
        )
    return read_checkpoint(str(source))
