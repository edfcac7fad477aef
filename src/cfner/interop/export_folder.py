"""Folders that appear whole or not at all, and never over something of the user's."""

from __future__ import annotations

import importlib.metadata
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cfner.errors import ModelError
from cfner.interop.calibration import Agreement, Calibration
from cfner.model.saving import LoadedModel
from cfner.model.store import write_json

EXPORT_FACTS = "cfner_export.json"  # in every exported folder: what it was made of, and how


def is_export(folder: Path) -> bool:
    return (folder / EXPORT_FACTS).is_file()


def refuse_occupied(folder: Path, overwrite: bool) -> None:
    """Only an earlier export is ever replaced, and only if that is asked for."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not folder.is_dir() or not is_export(folder):
        raise ModelError(
            "There is something else here already, which is not an exported model.",
            where=str(folder),
            remedy="Choose another folder.",
        )
    if not overwrite:
        raise ModelError(
            "There is an exported model here already.",
            where=str(folder),
            remedy="Choose another folder, or allow it to be replaced with --overwrite.",
        )


@contextmanager
def whole_folder(folder: Path, refuse: Callable[[Path], None]) -> Iterator[Path]:
    """A folder to fill, which gets its name when all is well; after an error nothing is left behind.

    ``refuse(folder)`` raises if what is there must not be replaced; it is asked before the work and after.
    """
    refuse(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}.partial-", dir=folder.parent))
    except OSError as error:
        raise ModelError(
            f"The folder cannot be written ({error.strerror}).",
            where=str(folder),
            remedy="Check the path, the permissions and the space left.",
        ) from error
    try:
        yield partial
        partial.chmod(0o755)
        for file in partial.iterdir():
            file.chmod(0o644)  # some writers make files that only their owner can read
        refuse(folder)  # somebody may have written it in the meantime
        aside = partial.with_name(partial.name + "-replaced")
        if folder.exists():
            folder.rename(aside)
        try:
            partial.rename(folder)
        except OSError:
            if aside.exists():
                aside.rename(folder)  # what was there before goes back
            raise
        shutil.rmtree(aside, ignore_errors=True)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


@dataclass(frozen=True)
class ExportReport:
    """What was exported, and how it compares with the original."""

    kind: str  # hf, onnx or onnx-int8
    folder: Path
    types: tuple[str, ...]
    scheme: str
    head: str  # of the original: linear or cosine
    max_length: int
    calibrated_on: str
    mean_feature_norm: float | None  # by which a cosine head was divided
    agreement: Agreement

    @classmethod
    def of(
        cls, kind: str, folder: Path, model: LoadedModel, measured_on: Calibration, agreement: Agreement,
        mean_feature_norm: float | None = None,
    ) -> ExportReport:  # fmt: skip
        return cls(
            kind=kind,
            folder=folder,
            types=model.labels.types,
            scheme=model.labels.scheme,
            head=model.network.head.kind,
            max_length=model.max_length,
            calibrated_on=measured_on.source,
            mean_feature_norm=mean_feature_norm,
            agreement=agreement,
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "types": list(self.types),
            "scheme": self.scheme,
            "head": self.head,
            "max_length": self.max_length,
            "calibrated_on": self.calibrated_on,
            "mean_feature_norm": self.mean_feature_norm,
            "agreement": self.agreement.to_json(),
            "cfner": importlib.metadata.version("cfner"),
        }

    def write(self, folder: Path, card: str) -> None:
        write_json(folder / EXPORT_FACTS, self.to_json())
        (folder / "README.md").write_text(card, encoding="utf-8")
