"""Run an exported ONNX model with onnxruntime: same words, windows and decoding as in torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import torch
from torch import nn

from cfner.batches.loader import TokenBatch
from cfner.corpus.sentence import Sentence
from cfner.errors import CfnerError, ConfigError, ModelError, import_extra
from cfner.evaluation.metrics import score
from cfner.evaluation.scores import Scores
from cfner.files.json_files import read_json
from cfner.interop.export_folder import EXPORT_FACTS
from cfner.interop.text_stream import sentence_of_text
from cfner.network.calibration import read_calibration
from cfner.network.encoders import prepare_tokenizer
from cfner.network.inference import predict_spans
from cfner.network.network import TaggerOutput
from cfner.network.prediction import Prediction, TaggingModel, tag
from cfner.network.probes import Probe
from cfner.stream.labels import LabelSpace

ONNX_FILE = "model.onnx"
# onnxruntime's fused addition and layer normalisation is slower than its parts: with 8-bit weights it costs a
# sixth of all time
_SLOW_FUSIONS = ["SkipLayerNormFusion"]
Text = str | Sentence


class OnnxNetwork(nn.Module):
    """A replacement for ``network.Network`` that runs in onnxruntime: words in, logits out, no training.

    Each batch is computed by one thread, several batches at once: threads that share a batch wait for each
    other after every layer, and those of onnxruntime keep a core busy while they wait.
    """

    # Small, so that few sentences make enough batches. Fixed, because 8-bit scores depend on the batch and
    # must not change with the number of threads.
    subwords_per_batch = 512

    def __init__(self, file: str | Path, ranks: Sequence[int] = ()) -> None:
        super().__init__()
        self.ranks = tuple(ranks)
        self.batches_at_once = torch.get_num_threads()  # so that OMP_NUM_THREADS applies here too
        runtime = onnxruntime()
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        try:
            self.session = runtime.InferenceSession(
                str(file),
                sess_options=options,
                providers=["CPUExecutionProvider"],
                disabled_optimizers=_SLOW_FUSIONS,
            )
        except Exception as error:  # onnxruntime's exceptions have no other common base class
            raise ModelError(
                f"The file cannot be loaded ({str(error).strip().splitlines()[0]}).",
                where=str(file),
                remedy="Export the model again: `export(MODEL, out=FOLDER, to='onnx')`.",
            ) from error
        self.training = False

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    def forward(self, batch: TokenBatch, probes: Sequence[Probe] = ()) -> TaggerOutput:
        if probes:
            raise ModelError(
                "An ONNX file does not provide features of its layers.", remedy="Use the original model."
            )
        inputs = {"input_ids": batch.input_ids.numpy(), "attention_mask": batch.attention_mask.numpy()}
        (logits,) = self.session.run(["logits"], inputs)  # [B, T, C]
        words = torch.from_numpy(logits[batch.rows.numpy(), batch.positions.numpy()])  # [W, C]
        return TaggerOutput(words[:, :0], words)


@dataclass(frozen=True)
class OnnxModel(TaggingModel):
    """The model in an exported folder."""

    network: OnnxNetwork


def is_onnx_folder(source: str | Path) -> bool:
    return (Path(source) / ONNX_FILE).is_file() and (Path(source) / EXPORT_FACTS).is_file()


def refuse_device(device: str) -> None:
    """ONNX models run on the CPU."""
    if device not in {"auto", "cpu"}:
        raise ConfigError(f"An ONNX model cannot run on '{device}'.", remedy="Use auto or cpu.")


def read_onnx(folder: str | Path, *, device: str = "auto") -> OnnxModel:
    """Read a model that ``export`` wrote as ONNX."""
    refuse_device(device)
    from transformers import AutoTokenizer

    path = Path(folder)
    if not is_onnx_folder(path):
        raise ModelError(
            "There is no exported ONNX model here.",
            where=str(path),
            remedy="Make one: `export(MODEL, out=FOLDER, to='onnx')`.",
        )
    facts = read_json(path / "labels.json")
    try:
        labels = LabelSpace.from_json(facts)
        calibration = read_calibration(facts, labels.types)
        limits = int(facts["max_length"]), facts["overlap"]
        ranks = tuple(int(rank) for rank in facts.get("ranks", ()))
        if ranks and len(ranks) != len(labels):
            raise ValueError(f"{len(ranks)} ranks do not fit {len(labels)} labels")
        encoder = str(facts["encoder"])
        tokenizer = prepare_tokenizer(
            AutoTokenizer.from_pretrained(str(path), trust_remote_code=False, local_files_only=True)
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, CfnerError) as error:
        raise ModelError(
            f"The exported model is damaged: {error!r}.", where=str(path), remedy="Export it again."
        ) from error
    network = OnnxNetwork(path / ONNX_FILE, ranks)
    return OnnxModel(network, tokenizer, labels, limits[0], encoder, limits[1], calibration)


@dataclass(eq=False)
class OnnxTagger:
    """Predict and evaluate with an exported model, without its model folder."""

    model: OnnxModel
    batch_size: int = 16

    @classmethod
    def read(cls, folder: str | Path, *, batch_size: int = 16, device: str = "auto") -> OnnxTagger:
        return cls(read_onnx(folder, device=device), batch_size=batch_size)

    @property
    def device(self) -> torch.device:
        return self.model.network.device

    @property
    def types(self) -> tuple[str, ...]:
        return self.model.labels.types

    # a str is also a sequence of str; the first matching overload is used
    @overload
    def predict(self, texts: Text) -> Prediction: ...  # type: ignore[overload-overlap]

    @overload
    def predict(self, texts: Sequence[Text]) -> list[Prediction]: ...

    def predict(self, texts: Text | Sequence[Text]) -> Prediction | list[Prediction]:
        """Find the entities in one text (or sentence) or in many."""
        many: Sequence[Text] = [texts] if isinstance(texts, str | Sentence) else texts
        sentences = [
            text if isinstance(text, Sentence) else sentence_of_text(text, f"text {number}")
            for number, text in enumerate(many, start=1)
        ]
        found = tag(self.model, sentences, batch_size=self.batch_size)
        return found[0] if isinstance(texts, str | Sentence) else found

    def evaluate(self, sentences: Sequence[Sentence]) -> Scores:
        """Entity-level scores over all types."""
        kept = [sentence for sentence in sentences if len(sentence)]
        model = self.model
        predicted = predict_spans(
            model.network,
            model.encode(kept),
            model.labels,
            calibration=model.calibration,
            batch_size=self.batch_size,
        )
        return score([sentence.spans for sentence in kept], predicted, self.types)


def onnxruntime() -> Any:
    return import_extra("onnxruntime", "onnx", "Running an ONNX model")
