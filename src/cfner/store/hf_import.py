"""Imports a Hugging Face token classifier unchanged: same weights, same labels, same scores."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import torch

from cfner.corpus.tags import Scheme
from cfner.errors import EncoderError, ModelError, StreamError
from cfner.network.encoders import strip_classifier, usable_length
from cfner.network.head import LinearHead
from cfner.network.network import Network
from cfner.store.model_files import LoadedModel
from cfner.store.pretrained import load_pretrained, recorded
from cfner.stream.labels import FORGOTTEN, OTHER, LabelSpace

# in the config.json of cfner's own exports: its labels, and how many of them are free (``LabelSpace``). It
# does not count if the labels are others: somebody trained the export on
LABEL_ORDER: Final = "cfner_label_order"


def read_checkpoint(source: str, *, scheme: Scheme | None = None) -> LoadedModel:
    """A checkpoint with a token-classification head (a folder, or a hub name), with its own linear head.

    Labels keep their numbers and their scheme, which is inferred from their names unless given.
    """
    try:
        found = load_pretrained(source, "model")
    except EncoderError as error:
        raise ModelError(error.what, where=error.where, remedy=error.remedy) from error
    if missing := sorted(key for key in found.missing if "classifier" in key or "score" in key):
        raise ModelError(
            f"The checkpoint has no token-classification head (its weights lack {missing[0]}): "
            "it is an encoder without entity types.",
            where=source,
            remedy="Give a model that was trained for NER, or train a new one: "
            f"`train(DATA, encoder={source!r})`.",
        )
    if found.missing:
        raise ModelError(
            f"The checkpoint lacks weights: {', '.join(sorted(found.missing)[:3])}.",
            where=source,
            remedy="Download or save it again.",
        )
    names = _label_names(found.body.config, source)
    try:
        labels = LabelSpace.of(names, scheme)
        labels = replace(labels, free=_free_labels(found.body.config, names))
    except StreamError as error:
        raise ModelError(error.what, where=source, remedy=error.remedy) from error
    classifier = strip_classifier(found.body)
    head = LinearHead(classifier.in_features, classifier.out_features, other=labels.other_id)
    with torch.no_grad():
        head.weight.copy_(classifier.weight)
        # a classifier without a bias equals one with a zero bias
        head.bias.zero_() if classifier.bias is None else head.bias.copy_(classifier.bias)
    network = Network(found.body, head)
    network.eval()
    limit = usable_length(found.body, found.tokenizer, None)
    return LoadedModel(network, found.tokenizer, labels, limit, recorded(source), None)


def _label_names(config: Any, source: str) -> list[str]:
    """In the order of their numbers, which must be those of the head's rows."""
    if sorted(config.id2label) != list(range(config.num_labels)):
        raise ModelError(
            "The labels (id2label in config.json) must be numbered from 0 without gaps.",
            where=source,
            remedy="Download or save it again.",
        )
    names = [str(config.id2label[number]) for number in range(config.num_labels)]
    others = [number for number, name in enumerate(names) if name == OTHER]
    # an export also writes O for labels of removed types; label2id says which one is O itself
    real = config.label2id.get(OTHER) if isinstance(config.label2id, dict) else None
    for number in others:
        if number != (real if real in others else others[0]):
            names[number] = FORGOTTEN
    return names


def _free_labels(config: Any, names: list[str]) -> int:
    """How many labels are free: all, unless the checkpoint is an export of cfner with the same labels."""
    order: Any = getattr(config, LABEL_ORDER, None)
    written = [OTHER if name == FORGOTTEN else name for name in names]
    if not isinstance(order, dict) or order.get("labels") != written:
        return len(names)
    free = order.get("free")
    return free if type(free) is int else len(names)
