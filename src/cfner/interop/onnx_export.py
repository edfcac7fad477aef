"""Export a network to an ONNX file by tracing, optionally with 8-bit weights."""

from __future__ import annotations

import copy
import importlib.util
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from cfner.batches.loader import collate
from cfner.errors import MissingExtraError, ModelError
from cfner.files.json_files import write_json
from cfner.interop.check_text import CheckText, built_in, word_logits
from cfner.interop.hf_export import name_labels, save_tokenizer
from cfner.interop.onnx import ONNX_FILE, OnnxNetwork, onnxruntime
from cfner.interop.reproduction import public
from cfner.network.network import Network
from cfner.store.model_files import LoadedModel

_ONE_FILE = (
    1_800_000_000  # bytes of weights that safely fit into an ONNX file; larger weights go into a second file
)


def write_onnx_folder(
    model: LoadedModel, folder: Path, measured_on: CheckText, *, int8: bool = False
) -> Tensor:
    """Write model.onnx (encoder and head), tokenizer and labels; returns the logits [N, C] of the file."""
    write_onnx(model, folder / ONNX_FILE, int8=int8)
    save_tokenizer(model, folder)
    body: Any = model.network.body
    config = copy.deepcopy(body.config)
    name_labels(config, model.labels)
    config.architectures = [type(body).__name__]
    config.to_json_file(folder / "config.json", use_diff=True)
    limits = {"max_length": model.max_length, "overlap": model.overlap}
    facts = {
        **model.labels.to_json(),
        **({} if model.calibration is None else {"calibration": model.calibration.to_json()}),
        **({"ranks": list(model.network.ranks)} if any(model.network.ranks) else {}),
        **limits,
        "encoder": public(model.encoder),
    }
    write_json(folder / "labels.json", facts)
    return word_logits(OnnxNetwork(folder / ONNX_FILE), model.encode(measured_on.sentences))


def write_onnx(model: LoadedModel, file: Path, *, int8: bool = False) -> None:
    """Trace encoder and head: ``input_ids``, ``attention_mask`` [B, T] -> ``logits`` [B, T, C]."""
    for package in ("onnx", "onnxscript", "onnxruntime"):
        if importlib.util.find_spec(package) is None:
            raise MissingExtraError(package, "onnx", "Exporting to ONNX")
    large = sum(p.numel() * p.element_size() for p in model.network.parameters()) > _ONE_FILE
    _trace(model, file, large)
    if int8:
        _quantise(file, large)


def _trace(model: LoadedModel, file: Path, large: bool) -> None:
    network = copy.deepcopy(model.network)
    for encoder in network.encoders:
        encoder.set_attn_implementation("eager")  # a simpler graph than sdpa's, and a little faster
    graph = _Graph(network).cpu().eval()
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
                remedy="Use the model in torch, or export it with `to='hf'`.",
            ) from error


class _Graph(nn.Module):
    """The network over all positions."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return self.network.columns(input_ids, attention_mask)


def _example(model: LoadedModel) -> tuple[Tensor, Tensor]:
    """Two real windows of different length, because tracing needs padding and no dimension of size 1."""
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


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence harmless messages of tracing, about packages that are not installed and about folding."""
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
