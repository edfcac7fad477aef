"""A model as a stock Hugging Face token classifier, which loads with no code of ours."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cfner.batches.loader import TokenBatch
from cfner.errors import ModelError
from cfner.files.atomic import atomic_folder
from cfner.interop.calibration import Calibration, built_in, compare, mean_feature_norm, word_logits
from cfner.interop.export_folder import ExportReport, refuse_occupied
from cfner.interop.model_card import Provenance, model_card
from cfner.network.encoders import prepare_tokenizer, quiet_transformers
from cfner.network.head import CosineHead, Head, LinearHead
from cfner.network.network import TaggerOutput
from cfner.network.probes import Probe
from cfner.store.model_files import LoadedModel, write_tokenizer


def export_huggingface(
    model: LoadedModel,
    folder: str | Path,
    *,
    calibration: Calibration | None = None,
    facts: Provenance | None = None,
    license: str | None = None,
    overwrite: bool = False,
) -> ExportReport:
    """Write ``AutoModelForTokenClassification`` files and a model card into a new folder.

    A linear head is written as it is. A cosine head becomes a linear one: the logits of a word are those of
    the original times the length of its features over the mean length, which is measured on ``calibration``
    (default: a dozen built-in sentences). All logits of a word are scaled alike, so its label stays. What was
    written is read back and compared with the original before the folder gets its name.
    """
    target = Path(folder)
    measured_on = calibration or built_in()
    with atomic_folder(target, refuse=partial(refuse_occupied, overwrite=overwrite)) as unfinished:
        norm = None
        if isinstance(model.network.head, CosineHead):
            norm = mean_feature_norm(model, measured_on)
        with quiet_transformers():
            stock_model(model, norm).save_pretrained(unfinished)
            save_tokenizer(model, unfinished)
            both = _both(model, unfinished, measured_on)
        report = ExportReport.of("hf", target, model, measured_on, compare(*both), norm)
        if report.agreement.same_label < report.agreement.words:
            raise ModelError(
                f"The exported model gives {report.agreement.words - report.agreement.same_label} of "
                f"{report.agreement.words} words another label than the original.",
                where=str(target),
                remedy="This is a fault of the export for this kind of encoder: please report it.",
            )
        card = model_card(model, report, facts or Provenance(target.name), license=license)
        report.write(unfinished, card)
    return report


def stock_model(model: LoadedModel, mean_norm: float | None = None) -> Any:
    """The stock class of the encoder's architecture, with our head as its classifier."""
    body: Any = copy.deepcopy(model.network.body).cpu().eval()
    place = next(
        name for name in ("classifier", "score") if isinstance(getattr(body, name, None), nn.Identity)
    )
    weight, bias = folded(model.network.head, mean_norm)
    layer = nn.Linear(weight.shape[1], weight.shape[0])
    with torch.no_grad():
        layer.weight.copy_(weight)
        layer.bias.copy_(bias)
    setattr(body, place, layer)
    body.num_labels = len(weight)
    name_labels(body.config, model.labels.labels)
    return body


def folded(head: Head, mean_norm: float | None) -> tuple[Tensor, Tensor]:
    """(weight [C, H], bias [C]) of the linear layer that stands for a head."""
    if isinstance(head, LinearHead):
        return head.weight.detach().cpu(), head.bias.detach().cpu()
    if not isinstance(head, CosineHead) or mean_norm is None:
        raise TypeError(f"no way to fold a {type(head).__name__} with a mean norm of {mean_norm}")
    rows = F.normalize(head.weight.detach(), dim=1) * head.sigma.detach() / mean_norm
    return rows.cpu(), torch.zeros(len(rows))


def name_labels(config: Any, labels: tuple[str, ...]) -> None:
    config.id2label = dict(enumerate(labels))
    # merged types have several numbers of one name: the name stands for the first of them
    config.label2id = {label: number for number, label in reversed(tuple(enumerate(labels)))}


def save_tokenizer(model: LoadedModel, folder: Path) -> None:
    tokenizer = copy.deepcopy(model.tokenizer)
    # what the encoder can read, so that a pipeline cuts longer texts instead of failing
    tokenizer.model_max_length = model.max_length
    for setting in ("is_local", "local_files_only", "name_or_path"):  # of this machine, not of the model
        tokenizer.init_kwargs.pop(setting, None)
    write_tokenizer(tokenizer, folder)


class _StockScorer(nn.Module):
    """A stock model that is asked for words, to be compared with ours."""

    def __init__(self, stock: nn.Module) -> None:
        super().__init__()
        self.stock = stock
        self.device = torch.device("cpu")

    def forward(self, batch: TokenBatch, probes: Sequence[Probe] = ()) -> TaggerOutput:
        out: Any = self.stock(input_ids=batch.input_ids, attention_mask=batch.attention_mask)
        logits = out.logits[batch.rows, batch.positions]
        return TaggerOutput(logits[:, :0], logits)


def _both(model: LoadedModel, folder: Path, calibration: Calibration) -> tuple[Tensor, Tensor]:
    """Logits of the original and of what was written, each with its own tokenizer."""
    from transformers import AutoModelForTokenClassification, AutoTokenizer

    stock = AutoModelForTokenClassification.from_pretrained(folder, local_files_only=True).eval()
    tokenizer = prepare_tokenizer(AutoTokenizer.from_pretrained(folder, local_files_only=True))
    text = model.encode(calibration.sentences)
    original = word_logits(model.network, text)
    theirs = replace(model, tokenizer=tokenizer).encode(calibration.sentences)
    return original, word_logits(_StockScorer(stock), theirs)
