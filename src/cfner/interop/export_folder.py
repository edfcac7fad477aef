"""The files of an export, and which folders it may replace: never one with other files in it."""

from __future__ import annotations

import importlib.metadata
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cfner.errors import ModelError
from cfner.files.json_files import read_json, write_json
from cfner.interop.check_text import Agreement
from cfner.network.calibration import Calibration

_NOT_STORED = {"folder", "calibration", "uploaded"}
EXPORT_FACTS = "cfner_export.json"  # in every exported folder: its source and how it was made


def is_export(folder: Path) -> bool:
    return (folder / EXPORT_FACTS).is_file()


def refuse_occupied(folder: Path, overwrite: bool) -> None:
    """Only an earlier export may be replaced, and only with ``overwrite``."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not folder.is_dir() or not is_export(folder):
        raise ModelError(
            "The folder exists, and is not an exported model.",
            where=str(folder),
            remedy="Choose another folder.",
        )
    if strangers := _strangers(folder):
        raise ModelError(
            f"The folder contains an exported model and a file that is not part of it: '{strangers[0]}'.",
            where=str(folder),
            remedy="Choose another folder, or move your files elsewhere.",
        )
    if not overwrite:
        raise ModelError(
            "There is an exported model here already.",
            where=str(folder),
            remedy="Choose another folder, or set `overwrite=True`.",
        )


def _strangers(folder: Path) -> list[str]:
    """Names of files in the folder that no export wrote, such as ``.git`` or notes."""
    try:
        facts = read_json(folder / EXPORT_FACTS)
    except ModelError as error:
        raise ModelError(error.what, where=error.where, remedy="Choose another folder.") from error
    listed = facts.get("files") if isinstance(facts, dict) else None
    written = listed if isinstance(listed, list) else [EXPORT_FACTS]
    plain = {item.name for item in folder.iterdir() if item.is_file() and not item.is_symlink()}
    return sorted(item.name for item in folder.iterdir() if item.name not in plain.intersection(written))


@dataclass(frozen=True)
class ExportReport:
    """What was exported, and how it compares with the original."""

    kind: str  # hf, onnx or onnx-int8
    folder: Path
    types: tuple[str, ...]
    scheme: str
    head: str  # of the original: linear or cosine
    max_length: int
    checked_on: str
    mean_feature_norm: float | None  # the divisor of a cosine head
    agreement: Agreement
    sentences: int  # that it was compared on
    broken_sentences: int  # in which the labels of the words, each alone, do not follow the scheme
    calibration: Calibration | None = None  # of the original
    uploaded: str | None = None  # the URL on the hub

    @property
    def shifts_are_inexact(self) -> bool:
        """Whether there are calibrated shifts that are exact only for features of mean norm."""
        shifts = [] if self.calibration is None else [one.shift for one in self.calibration.types.values()]
        return self.mean_feature_norm is not None and any(shifts)

    def to_json(self) -> dict[str, Any]:
        facts = {key: value for key, value in asdict(self).items() if key not in _NOT_STORED}
        calibration = None if self.calibration is None else self.calibration.to_json()
        return {**facts, "calibration": calibration, "cfner": importlib.metadata.version("cfner")}

    def write(self, folder: Path, card: str) -> None:
        (folder / "README.md").write_text(card, encoding="utf-8")
        # all files of the export, so that replacing it can detect others
        files = sorted({EXPORT_FACTS, *(file.name for file in folder.iterdir())})
        write_json(folder / EXPORT_FACTS, {**self.to_json(), "files": files})
        for name in files:
            (folder / name).chmod(0o644)  # some writers make files that only their owner can read
