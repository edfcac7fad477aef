"""The model of a run, as other processes and machines open it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from cfner.interop.export import export_model, open_for_prediction, refuse_runtime
from cfner.interop.onnx import is_onnx_folder, refuse_device
from cfner.network.prediction import TaggingModel
from cfner.store.model_folder import ModelFolder
from cfner.store.open import ModelRef, is_model_folder
from cfner.store.pretrained import files_hash


@dataclass(frozen=True)
class ModelSource:
    """A model that other processes open: a folder (or a hub name), its step, and what identifies it."""

    source: str
    step: int | None
    identity: str
    runtime: str | None = None  # None: as the folder is

    @classmethod
    def of(cls, model: str | Path, step: int | None, runtime: str | None) -> ModelSource:
        """The model as it is now: a step that is learned meanwhile changes nothing."""
        refuse_runtime(model, step, runtime)
        if is_onnx_folder(model):
            return cls(str(model), None, files_hash(str(model)) or str(model))
        ref = ModelRef.parse(model, step)
        if is_model_folder(ref.source):
            stored = ModelFolder(ref.source).step(ref.step)
            return cls(ref.source, int(stored.name), stored.hash)
        return cls(ref.source, ref.step, files_hash(ref.source) or ref.source)

    def exported(self, runtime: str | None, device: str, temporary: Path) -> ModelSource:
        """The same for ``runtime``: exported once into a temporary folder if it is ONNX."""
        if runtime in (None, "torch") or is_onnx_folder(self.source):
            return self
        if runtime == "torch-bf16":
            return replace(self, runtime=runtime)
        refuse_device(device)
        export_model(self.source, temporary / "model", "onnx", step=self.step, int8=runtime == "onnx-int8")
        return ModelSource(str(temporary / "model"), None, self.identity)

    def open(self, device: str) -> TaggingModel:
        return open_for_prediction(self.source, self.step, self.runtime, device=device)

    def packed(self) -> PackedModel:
        """With the content of its files, for machines that do not have them."""
        folder = Path(self.source)
        if not folder.is_dir():
            return PackedModel(self, {})
        steps = is_model_folder(folder)
        inside = ModelFolder(folder).verified(self.step).folder if steps else folder
        files = (path for path in inside.iterdir() if path.is_file())
        return PackedModel(self, {str(path.relative_to(folder)): path.read_bytes() for path in files})


@dataclass(frozen=True)
class PackedModel:
    """A model with its files. Without files it has a hub name, and is opened by it."""

    model: ModelSource
    files: Mapping[str, bytes]

    def open(self, device: str) -> TaggingModel:
        if not self.files:
            return self.model.open(device)
        with tempfile.TemporaryDirectory(prefix="cfner-model-") as temporary:
            for name, content in self.files.items():
                path = Path(temporary, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            return open_for_prediction(temporary, self.model.step, self.model.runtime, device=device)
