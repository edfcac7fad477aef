"""A model as a stock Hugging Face token classifier, which loads with no code of ours."""

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
from cfner.store.hf_import import read_checkpoint
from cfner.store.model_files import LoadedModel, write_tokenizer
from cfner.stream.labels import OTHER, LabelSpace

UNHEARD: Final = -1e4  # log-odds of labels that must never win: their types were taken away


def write_huggingface(
    model: LoadedModel, folder: Path, measured_on: CheckText
) -> tuple[Tensor, float | None]:
    """Write ``AutoModelForTokenClassification`` files; the logits [N, C] of what was written, read back.

    A linear head is written as it is. A cosine head becomes a linear one: the logits of a word are those of
    the original times the length of its features over the mean length, which is measured (and returned). All
    logits of a word are scaled alike, so its label stays. Types with Others of their own become labels like
    any other, whose logits are those of O plus their log-odds. Calibrated shifts are added as biases, which a
    cosine head that became a linear one decides by exactly only where features have the mean length.
    """
    if isinstance(model.network, ExpertNetwork):
        raise ModelError(
            f"A model with {len(model.network.rows)} experts is not a stock Hugging Face model.",
            remedy="Make it one network first: `consolidate(MODEL, TEXT)`. Or export it to onnx, which "
            "holds all experts.",
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
    """The stock class of the encoder's architecture, with our head as its classifier."""
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
    """[N, C] of the original, as the stock model gives them: without what nobody listens to."""
    unheard = list(labels.unheard)
    columns = logits.clone()
    columns[:, unheard] = logits[:, [labels.other_id]] + UNHEARD
    return columns


def folded(head: Head, mean_norm: float | None) -> tuple[Tensor, Tensor]:
    """(weight [C, H], bias [C]) of the linear layer that stands for a head."""
    own = head.group_of.cpu() > 0
    if isinstance(head, LinearHead):
        weight, bias = head.weight.detach().cpu().clone(), head.bias.detach().cpu().clone()
        weight[own] += weight[head.other]  # z_O + z_c: the Other of its own is 0
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
    """Labels that name no type are called O, too: that is what a stock pipeline leaves out."""
    names = [OTHER if number in labels.silent else label for number, label in enumerate(labels.labels)]
    config.id2label = dict(enumerate(names))
    # merged types have several numbers of one name: the name stands for the first of them
    first = {label: number for number, label in reversed(tuple(enumerate(names)))}
    config.label2id = {**first, OTHER: labels.other_id}


def save_tokenizer(model: LoadedModel, folder: Path) -> None:
    tokenizer = copy.deepcopy(model.tokenizer)
    # what the encoder can read, so that a pipeline cuts longer texts instead of failing
    tokenizer.model_max_length = model.max_length
    for setting in ("is_local", "local_files_only", "name_or_path"):  # of this machine, not of the model
        tokenizer.init_kwargs.pop(setting, None)
    write_tokenizer(tokenizer, folder)
