"""Export a model as a stock Hugging Face token classifier, which loads without cfner."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cfner.errors import ModelError
from cfner.interop.check_text import CheckText, mean_feature_norm, word_logits
from cfner.network.encoders import quiet_transformers
from cfner.network.experts import ExpertNetwork
from cfner.network.head import CosineHead, Head, LinearHead
from cfner.store.hf_import import LABEL_ORDER, read_checkpoint
from cfner.store.model_files import LoadedModel, write_tokenizer
from cfner.stream.labels import OTHER, LabelSpace

UNHEARD: Final = -1e4  # log-odds of labels that must never win: their types were removed


def write_huggingface(
    model: LoadedModel, folder: Path, measured_on: CheckText
) -> tuple[Tensor, float | None]:
    """Write ``AutoModelForTokenClassification`` files; returns the logits [N, C] of the files, read back.

    A linear head is written unchanged. A cosine head becomes a linear one: the logits of a word are those of
    the original times the norm of its features divided by the mean norm, which is measured and returned. All
    logits of a word are scaled by the same factor, so its label does not change. Types with their own Other
    class become ordinary labels, whose logits are those of O plus their log-odds. Calibrated shifts are added
    as biases; for a cosine head that became linear, they are exact only for features of mean norm.
    """
    if isinstance(model.network, ExpertNetwork):
        raise ModelError(
            f"A model with {len(model.network.rows)} experts is not a stock Hugging Face model.",
            remedy="Distil it into one network first: `consolidate(MODEL, TEXT)`. Or export it to onnx, "
            "which contains all experts.",
        )
    is_cosine = isinstance(model.network.head, CosineHead)
    norm = mean_feature_norm(model, measured_on) if is_cosine else None
    with quiet_transformers():
        stock_model(model, norm).save_pretrained(folder)
        save_tokenizer(model, folder)
    written = read_checkpoint(str(folder), scheme=model.labels.scheme)
    text = replace(model, tokenizer=written.tokenizer).encode(measured_on.sentences)
    return word_logits(written.network, text), norm


def stock_model(model: LoadedModel, mean_norm: float | None = None) -> Any:
    """The stock class of the encoder's architecture, with cfner's head as its classifier."""
    body: Any = copy.deepcopy(model.network.body).cpu().eval()
    place = next(
        name for name in ("classifier", "score") if isinstance(getattr(body, name, None), nn.Identity)
    )
    weight, bias = folded(model.network.head, mean_norm)
    bias += model.decoder().columns(torch.zeros(1, len(bias)))[0]  # the calibrated shift of each label
    other, unheard = model.labels.other_id, list(model.labels.unheard)
    weight[unheard], bias[unheard] = weight[other].clone(), bias[other] + UNHEARD
    layer = nn.Linear(weight.shape[1], weight.shape[0])
    with torch.no_grad():
        layer.weight.copy_(weight)
        layer.bias.copy_(bias)
    setattr(body, place, layer)
    body.num_labels = len(weight)
    name_labels(body.config, model.labels)
    return body


def stock_columns(logits: Tensor, labels: LabelSpace) -> Tensor:
    """[N, C] logits of the original as the stock model computes them, without removed labels."""
    unheard = list(labels.unheard)
    columns = logits.clone()
    columns[:, unheard] = logits[:, [labels.other_id]] + UNHEARD
    return columns


def folded(head: Head, mean_norm: float | None) -> tuple[Tensor, Tensor]:
    """(weight [C, H], bias [C]) of the linear layer that replaces a head."""
    own = head.group_of.cpu() > 0
    if isinstance(head, LinearHead):
        weight, bias = head.weight.detach().cpu().clone(), head.bias.detach().cpu().clone()
        weight[own] += weight[head.other]  # z_O + z_c: its own Other class has logit 0
        bias[own] += bias[head.other]
        return weight, bias
    if not isinstance(head, CosineHead) or mean_norm is None:
        raise TypeError(f"no way to fold a {type(head).__name__} with a mean norm of {mean_norm}")
    rows = F.normalize(head.weight.detach(), dim=1).cpu() * head.sigma.detach().cpu()
    if head.own_groups:
        group = head.group_of.cpu()[own] - 1
        towards = F.normalize(head.weight.detach(), dim=1).cpu()[own]
        away = F.normalize(head.others.detach(), dim=1).cpu()[group]
        rows[own] = rows[head.other] + head.sigmas.detach().cpu()[group, None] * (towards - away)
    return rows / mean_norm, torch.zeros(len(rows))


def name_labels(config: Any, labels: LabelSpace) -> None:
    """Labels without a type are also called O, which stock pipelines leave out."""
    names = [OTHER if number in labels.silent else label for number, label in enumerate(labels.labels)]
    config.id2label = dict(enumerate(names))
    # merged types have several ids with one name: the name maps to the first
    first = {label: number for number, label in reversed(tuple(enumerate(names)))}
    config.label2id = {**first, OTHER: labels.other_id}
    if labels.ordered:  # for cfner, when it opens the folder again
        setattr(config, LABEL_ORDER, {"labels": names, "free": labels.free})


def save_tokenizer(model: LoadedModel, folder: Path) -> None:
    tokenizer = copy.deepcopy(model.tokenizer)
    # the encoder's maximum length, so that a pipeline truncates longer texts instead of failing
    tokenizer.model_max_length = model.max_length
    for setting in ("is_local", "local_files_only", "name_or_path"):  # specific to this machine
        tokenizer.init_kwargs.pop(setting, None)
    write_tokenizer(tokenizer, folder)
