"""Prepares an encoder: removes its classifier, finds its length limit, checks its tokenizer."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn

from cfner.errors import EncoderError

_CLASSIFIERS = ("classifier", "score")  # names of the final linear layer in token classifiers


def strip_classifier(body: nn.Module) -> nn.Linear:
    """Replace the final linear layer by an identity; returns the layer."""
    for attribute in _CLASSIFIERS:
        layer = getattr(body, attribute, None)
        if isinstance(layer, nn.Linear):
            setattr(body, attribute, nn.Identity())
            return layer
    raise EncoderError(
        f"{type(body).__name__} has no final linear layer named {' or '.join(_CLASSIFIERS)}.",
        remedy="Use an encoder whose token-classification model ends in a linear layer.",
    )


def usable_length(body: nn.Module, tokenizer: Any, wanted: int | None) -> int:
    """The encoder's own limit in subwords, or less if requested."""
    config: Any = body.config
    positions = getattr(config, "max_position_embeddings", None)
    if positions is not None and getattr(config, "model_type", "") in {"roberta", "xlm-roberta", "camembert"}:
        positions -= config.pad_token_id + 1  # these encoders count positions from the padding index + 1
    relative_only = not getattr(config, "position_biased_input", True)  # DeBERTa: no position table, no limit
    limits = [tokenizer.model_max_length if tokenizer.model_max_length < 10**6 else 512]
    if positions and positions > 0 and not relative_only:
        limits.append(positions)
    limit = int(min(limits))
    if limit < 3:
        raise EncoderError(
            f"This encoder reads {limit} subwords: too few for a word between two special tokens.",
            remedy="Use a different encoder, or correct model_max_length in its tokenizer_config.json.",
        )
    if wanted is not None and wanted > limit:
        raise EncoderError(
            f"max_length {wanted} is more than the {limit} subwords that this encoder reads.",
            remedy=f"Set max_length to {limit} or less; longer sentences are read in overlapping windows.",
        )
    return wanted or limit


def prepare_tokenizer(tokenizer: Any) -> Any:
    if not tokenizer.is_fast:
        raise EncoderError(
            f"{type(tokenizer).__name__} is a slow tokenizer, which does not report the word of a subword.",
            remedy="Use an encoder that ships a tokenizer.json.",
        )
    if tokenizer.vocab_size <= len(tokenizer.all_special_tokens):
        raise EncoderError(
            "The tokenizer has an empty vocabulary: its vocabulary file is missing.",
            remedy="Download it or save it again, with its tokenizer.json.",
        )
    # a user's text may contain "[SEP]": read it as text, not as the special token. (The backend's own
    # switch, encode_special_tokens, is set from this one at every call.)
    tokenizer.split_special_tokens = True
    return tokenizer


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silence the warning that the classifier is missing: cfner removes it on purpose."""
    from transformers.utils import logging as hub_logging

    level, bars = hub_logging.get_verbosity(), hub_logging.is_progress_bar_enabled()
    hub_logging.set_verbosity(logging.ERROR)
    hub_logging.disable_progress_bar()
    try:
        yield
    finally:
        hub_logging.set_verbosity(level)
        if bars:
            hub_logging.enable_progress_bar()
