"""From a network to an ONNX file: traced, checked against the original, and made smaller if asked for."""

from __future__ import annotations

import copy
import importlib.util
import logging
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from cfner.batches.loader import collate
from cfner.errors import MissingExtraError, ModelError
from cfner.files.atomic import atomic_folder
from cfner.files.json_files import write_json
from cfner.interop.calibration import Calibration, built_in, compare, word_logits
from cfner.interop.export_folder import ExportReport, refuse_occupied
from cfner.interop.hf_export import name_labels, save_tokenizer
from cfner.interop.model_card import Provenance, model_card
from cfner.interop.onnx import ONNX_FILE, OnnxModel, OnnxNetwork, onnxruntime, read_onnx
from cfner.interop.redact import public
from cfner.store.model_files import LoadedModel

_ONE_FILE = 1_800_000_000  # bytes of weights that an ONNX file can hold with some room; more go beside it
_CLOSE = 1e-2  # logits of the float file that differ more are a fault; usual are 1e-5


def export_onnx(
    model: LoadedModel,
    folder: str | Path,
    *,
    int8: bool = False,
    calibration: Calibration | None = None,
    facts: Provenance | None = None,
    license: str | None = None,
    overwrite: bool = False,
) -> ExportReport:
    """Write model.onnx (encoder and head), tokenizer, labels and a model card into a new folder.

    The file is run and compared with the original on ``calibration`` (default: a dozen built-in sentences);
    float logits that differ are an error, for ``int8`` (8-bit weights) the agreement is reported.
    """
    target = Path(folder)
    measured_on = calibration or built_in()
    with atomic_folder(target, refuse=partial(refuse_occupied, overwrite=overwrite)) as unfinished:
        write_onnx(model, unfinished / ONNX_FILE, int8=int8)
        _write_neighbours(model, unfinished)
        text = model.encode(measured_on.sentences)
        exported = word_logits(OnnxNetwork(unfinished / ONNX_FILE), text)
        agreement = compare(word_logits(model.network, text), exported)
        report = ExportReport.of("onnx-int8" if int8 else "onnx", target, model, measured_on, agreement)
        if not int8 and not report.agreement.largest_logit_difference <= _CLOSE:
            raise ModelError(
                "The ONNX file gives other logits than the model (they differ by up to "
                f"{report.agreement.largest_logit_difference:.2g}).",
                where=str(target),
                remedy="This encoder cannot be exported faithfully; use it in torch, or export --to hf.",
            )
        card = model_card(model, report, facts or Provenance(target.name), license=license)
        report.write(unfinished, card)
    return report


def in_onnx(model: LoadedModel, *, int8: bool = False) -> OnnxModel:
    """The same model run by onnxruntime; the files are made in a temporary folder and removed."""
    with tempfile.TemporaryDirectory(prefix="cfner-onnx-") as folder:
        export_onnx(model, Path(folder) / "model", int8=int8)
        return read_onnx(Path(folder) / "model")


def write_onnx(model: LoadedModel, file: Path, *, int8: bool = False) -> None:
    """Trace encoder and head: ``input_ids``, ``attention_mask`` [B, T] -> ``logits`` [B, T, C]."""
    for package in ("onnx", "onnxscript", "onnxruntime"):
        if importlib.util.find_spec(package) is None:
            raise MissingExtraError(package, "onnx", "Exporting to ONNX")
    body: Any = model.network.body
    large = sum(p.numel() * p.element_size() for p in body.parameters()) > _ONE_FILE
    _trace(model, file, large)
    if int8:
        _quantise(file, large)


def _trace(model: LoadedModel, file: Path, large: bool) -> None:
    encoder: Any = copy.deepcopy(model.network.body)
    encoder.set_attn_implementation("eager")  # a simpler graph than sdpa's, and a little faster
    graph = _Graph(encoder, copy.deepcopy(model.network.head)).cpu().eval()
    either = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    with _quiet(), torch.no_grad():
        try:
            torch.onnx.export(
                graph,
                _example(model),
                file,
                dynamo=True,
                input_names=["input_ids", "attention_mask"],
                output_names=["logits"],
                dynamic_shapes={"input_ids": either, "attention_mask": either},
                external_data=large,
                verbose=False,
            )
        except (torch.onnx.OnnxExporterError, RuntimeError, ValueError, TypeError) as error:
            body: Any = model.network.body
            raise ModelError(
                f"torch cannot write encoders of the kind '{body.config.model_type}' as ONNX "
                f"({type(error).__name__} while tracing).",
                remedy="Use the model in torch, or export it with --to hf.",
            ) from error


class _Graph(nn.Module):
    """Encoder and head over all positions."""

    def __init__(self, body: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.body = body
        self.head = head

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        out: Any = self.body(input_ids=input_ids, attention_mask=attention_mask)
        rows, tokens, hidden = out.logits.shape
        logits: Tensor = self.head(out.logits.reshape(-1, hidden))  # heads see words: [W, H] -> [W, C]
        return logits.reshape(rows, tokens, -1)


def _example(model: LoadedModel) -> tuple[Tensor, Tensor]:
    """Two real windows of different length: tracing must see padding, and no size that is 1."""
    batch = collate(model.encode(built_in().sentences[:2]), [0, 1])
    return batch.input_ids, batch.attention_mask


def _quantise(file: Path, large: bool) -> None:
    """8-bit weights, one scale per output row; activations are quantised while the model runs."""
    onnxruntime()
    from onnxruntime.quantization import QuantType, quantize_dynamic

    small = file.with_name("small.onnx")
    with _quiet():
        quantize_dynamic(
            file,
            small,
            per_channel=True,
            weight_type=QuantType.QInt8,
            use_external_data_format=large,
            extra_options={"MatMulConstBOnly": True},
        )
    file.unlink()
    file.with_name(file.name + ".data").unlink(missing_ok=True)
    small.rename(file)


def _write_neighbours(model: LoadedModel, folder: Path) -> None:
    save_tokenizer(model, folder)
    body: Any = model.network.body
    config = copy.deepcopy(body.config)
    name_labels(config, model.labels.labels)
    config.architectures = [type(body).__name__]
    config.to_json_file(folder / "config.json", use_diff=True)
    limits = {"max_length": model.max_length, "overlap": model.overlap}
    facts = {**model.labels.to_json(), **limits, "encoder": public(model.encoder)}
    write_json(folder / "labels.json", facts)


@contextmanager
def _quiet() -> Iterator[None]:
    """Tracing tells of operators of packages that are not installed, and of folding; none of it matters."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir", "root")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
