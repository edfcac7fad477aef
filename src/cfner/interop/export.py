"""``cfner export`` as a call: a model from anywhere into a folder that others can use."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

from cfner.errors import ConfigError, ModelError, nearest
from cfner.interop.export_folder import ExportReport, refuse_occupied
from cfner.interop.onnx import OnnxModel, is_onnx_folder, read_onnx, refuse_device
from cfner.store.model_files import LoadedModel
from cfner.store.open import open_model

Kind = Literal["hf", "onnx"]
Runtime = Literal["torch", "onnx", "onnx-int8"]


def export_model(
    source: str | Path,
    folder: str | Path,
    to: str = "hf",
    *,
    step: int | None = None,
    int8: bool = False,
    calibrate: str | Path | None = None,
    license: str | None = None,
    overwrite: bool = False,
) -> ExportReport:
    """Export a model folder's current step (or another), or a checkpoint, for other programs.

    ``to``: "hf" (a stock transformers folder) or "onnx" (with ``int8``: 8-bit weights). ``calibrate`` names a
    file of ordinary text of the model's domain, on which the export is measured.
    """
    # not at the top: whoever only predicts does not need them
    from cfner.interop.calibration import read_calibration
    from cfner.interop.hf_export import export_huggingface
    from cfner.interop.model_card import Provenance
    from cfner.interop.onnx_export import export_onnx

    if to not in get_args(Kind):
        raise ConfigError(f"There is no export to '{to}'.", remedy=nearest(to, get_args(Kind)))
    if int8 and to != "onnx":
        raise ConfigError("Only ONNX can have 8-bit weights.", remedy="Leave int8 out, or export to onnx.")
    refuse_occupied(Path(folder), overwrite)  # before anything large is read
    texts = None if calibrate is None else read_calibration(calibrate)
    # on the processor, where the export is read back and compared
    model, facts = open_model(source, step, device="cpu"), Provenance.of(source, step)
    if to == "hf":
        return export_huggingface(
            model, folder, calibration=texts, facts=facts, license=license, overwrite=overwrite
        )
    return export_onnx(
        model, folder, int8=int8, calibration=texts, facts=facts, license=license, overwrite=overwrite
    )


def open_for_prediction(
    source: str | Path, step: int | None = None, runtime: str | None = None, *, device: str = "auto"
) -> LoadedModel | OnnxModel:
    """A model that ``tag`` takes: a folder of steps, a checkpoint, or an exported ONNX folder.

    ``runtime``: "torch" (the default), "onnx" or "onnx-int8", for which the model is first exported into a
    temporary folder (some seconds; export it once to save them). An ONNX folder is run as it is.
    ``device`` as for ``open_model``; ONNX is computed on the processor.
    """
    if runtime is not None and runtime not in get_args(Runtime):
        raise ConfigError(f"There is no runtime '{runtime}'.", remedy=nearest(runtime, get_args(Runtime)))
    if is_onnx_folder(source):
        if step is not None or runtime == "torch":
            raise ModelError(
                "This is an exported ONNX model: it has one step, and no weights for torch.",
                where=str(source),
                remedy="Leave out step and runtime, or give the model it was made of.",
            )
        return read_onnx(source, device=device)
    if runtime in (None, "torch"):
        return open_model(source, step, device=device)
    refuse_device(device)
    from cfner.interop.onnx_export import in_onnx

    return in_onnx(open_model(source, step, device="cpu"), int8=runtime == "onnx-int8")
