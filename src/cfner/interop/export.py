"""Export any model into a folder for other programs."""

from __future__ import annotations

import tempfile
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from cfner.errors import ConfigError, ModelError, nearest
from cfner.files.atomic import atomic_folder
from cfner.interop.export_folder import ExportReport, refuse_occupied
from cfner.interop.onnx import is_onnx_folder, read_onnx, refuse_device
from cfner.network.half_precision import InBf16
from cfner.network.prediction import TaggingModel
from cfner.store.model_files import LoadedModel
from cfner.store.open import open_model

Kind = Literal["hf", "onnx"]
Runtime = Literal["torch", "torch-bf16", "onnx", "onnx-int8"]
_CLOSE = 1e-2  # largest allowed difference of float ONNX logits; 1e-5 is usual


def export_model(
    source: LoadedModel | str | Path,
    folder: str | Path,
    to: str = "hf",
    *,
    step: int | None = None,
    int8: bool = False,
    check_text: str | Path | None = None,
    license: str | None = None,
    overwrite: bool = False,
) -> ExportReport:
    """Export a model for other programs: a folder's current step (or another), a checkpoint, a loaded model.

    ``to``: "hf" (a stock transformers folder) or "onnx" (with ``int8``: 8-bit weights), with a model card.
    The export is read back and compared with the original before the folder gets its name, on the text in the
    file ``check_text`` (ordinary text of the model's domain; default: a dozen built-in sentences).
    """
    # imported here because prediction does not need them
    from cfner.interop.check_text import built_in, compare, read_check_text, word_logits
    from cfner.interop.hf_export import stock_columns, write_huggingface
    from cfner.interop.model_card import Provenance, model_card
    from cfner.interop.onnx_export import write_onnx_folder

    if to not in get_args(Kind):
        raise ConfigError(f"There is no export to '{to}'.", remedy=nearest(to, get_args(Kind)))
    if int8 and to != "onnx":
        raise ConfigError("Only ONNX can have 8-bit weights.", remedy="Leave int8 out, or export to onnx.")
    target = Path(folder)
    refuse_occupied(target, overwrite)  # before reading anything large
    measured_on = built_in() if check_text is None else read_check_text(check_text)
    if isinstance(source, LoadedModel):
        model, facts = source, Provenance(target.name)
    else:  # on the CPU, where the export is read back and compared
        model, facts = open_model(source, step, device="cpu"), Provenance.of(source, step)
    with atomic_folder(target, refuse=partial(refuse_occupied, overwrite=overwrite)) as unfinished:
        norm = None
        decoder = model.decoder()
        text = model.encode(measured_on.sentences)
        scores = word_logits(model.network, text)
        original = decoder.columns(scores)
        broken = decoder.broken_alone(scores, np.diff(text.sentence_bounds).tolist())
        if to == "hf":
            logits, norm = write_huggingface(model, unfinished, measured_on)
            original = stock_columns(original, model.labels)
        else:
            logits = decoder.columns(write_onnx_folder(model, unfinished, measured_on, int8=int8))
        report = ExportReport(
            kind="onnx-int8" if int8 else to,
            folder=target,
            types=model.labels.types,
            scheme=model.labels.scheme,
            head=model.network.head.kind,
            max_length=model.max_length,
            checked_on=measured_on.source,
            mean_feature_norm=norm,
            calibration=model.calibration,
            agreement=compare(original, logits),
            sentences=len(measured_on.sentences),
            broken_sentences=len(broken),
        )
        _refuse_other_answers(report)
        report.write(unfinished, model_card(model, report, facts, license=license))
    return report


def _refuse_other_answers(report: ExportReport) -> None:
    """Refuse an export that differs from the original. With 8-bit weights, or shifts that do not fold
    exactly, the difference is only reported."""
    same = report.agreement
    if report.kind == "hf" and same.same_label < same.words and not report.shifts_are_inexact:
        raise ModelError(
            f"The exported model gives {same.words - same.same_label} of {same.words} words another label "
            "than the original.",
            where=str(report.folder),
            remedy="This is a bug in the export of this kind of encoder: please report it.",
        )
    if report.kind == "onnx" and not same.largest_logit_difference <= _CLOSE:
        raise ModelError(
            "The ONNX file computes different logits than the model (by up to "
            f"{same.largest_logit_difference:.2g}).",
            where=str(report.folder),
            remedy="This encoder cannot be exported exactly; use torch, or export it with `to='hf'`.",
        )


def open_for_prediction(
    source: str | Path, step: int | None = None, runtime: str | None = None, *, device: str = "auto"
) -> TaggingModel:
    """A model that ``tag`` takes: a folder of steps, a checkpoint, or an exported ONNX folder.

    ``runtime``: "torch" (the default), "torch-bf16" (faster where the device computes in bf16), "onnx" or
    "onnx-int8". For the last two the model is first exported into a temporary folder (some seconds; export
    it once to save them). An ONNX folder is run as it is.
    ``device`` as for ``open_model``; ONNX runs on the CPU.
    """
    refuse_runtime(source, step, runtime)
    if is_onnx_folder(source):
        return read_onnx(source, device=device)
    if runtime in (None, "torch"):
        return open_model(source, step, device=device)
    if runtime == "torch-bf16":
        return _in_bf16(open_model(source, step, device=device))
    refuse_device(device)
    with tempfile.TemporaryDirectory(prefix="cfner-onnx-") as temporary:
        folder = Path(temporary) / "model"
        model = open_model(source, step, device="cpu")
        export_model(model, folder, "onnx", int8=runtime == "onnx-int8")
        return read_onnx(folder)


def _in_bf16(model: LoadedModel) -> TaggingModel:
    given = {one.name: getattr(model, one.name) for one in fields(TaggingModel)}
    return TaggingModel(**given | {"network": InBf16(model.network)})


def refuse_runtime(source: str | Path, step: int | None, runtime: str | None) -> None:
    """Refuse an unknown runtime, and what an exported ONNX folder does not have."""
    if runtime is not None and runtime not in get_args(Runtime):
        raise ConfigError(f"There is no runtime '{runtime}'.", remedy=nearest(runtime, get_args(Runtime)))
    if is_onnx_folder(source) and (step is not None or runtime in {"torch", "torch-bf16"}):
        raise ModelError(
            "This is an exported ONNX model: it has one step, and no weights for torch.",
            where=str(source),
            remedy="Leave out step and runtime, or give the original model.",
        )
