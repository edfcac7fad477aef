"""An encoder in two parts: its lowest layers, whose output may be computed once, and the rest.

Token classifiers of the Hugging Face library all run embeddings, then a list of layers. For the duration of
one call, the encoder gets a shorter list of layers. For the upper part its embeddings are replaced by a
module that returns the lower part's output. So the same modules compute the same numbers either way.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from cfner.batches.encoding import EncodedText
from cfner.batches.loader import TokenBatch, inference_batches
from cfner.errors import ConfigError

_LAYER_LISTS = (("encoder", "layer"), ("transformer", "layer"), (None, "layers"))


class LowerLayers(Protocol):
    """The lowest layers of an encoder."""

    body: nn.Module

    def lower(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor: ...


class Frozen(Protocol):
    """The frozen part of a network in training: its output may be computed once for a complete text."""

    def cached(self, text: EncodedText, device: torch.device, batch_size: int) -> CachedLowerLayers: ...


class _Given(nn.Module):
    """Replaces the embeddings: whatever its input, it returns the given hidden states."""

    def __init__(self, hidden: Tensor) -> None:
        super().__init__()
        self.hidden = hidden

    def forward(self, *_: Any, **__: Any) -> Tensor:
        return self.hidden


def layer_list(
    body: nn.Module, remedy: str = "Leave freeze_layers at 0 for this encoder."
) -> tuple[Any, str]:
    """(the module that has the encoder's list of layers, the list's name in it); raises if there is none.

    ``remedy``: the remedy of that error.
    """
    base: Any = getattr(body, "base_model", body)
    for holder, attribute in _LAYER_LISTS:
        owner = base if holder is None else getattr(base, holder, None)
        if isinstance(getattr(owner, attribute, None), nn.ModuleList):
            break
    else:
        raise ConfigError(
            f"The layers of {type(base).__name__} cannot be separated, so none can be frozen.", remedy=remedy
        )
    if getattr(owner, "conv", None) is not None:
        raise ConfigError(
            f"{type(base).__name__} has a convolution beside its first layer, so none can be frozen.",
            remedy=remedy,
        )
    return owner, attribute


class SplitEncoder:
    """``body`` split above its ``lowest`` layers."""

    def __init__(self, body: nn.Module, lowest: int) -> None:
        base: Any = getattr(body, "base_model", body)
        self.body, self.base, self.lowest = body, base, lowest
        self.owner, self.attribute = layer_list(body)
        self.layers: nn.ModuleList = getattr(self.owner, self.attribute)
        if not 0 < lowest < len(self.layers):
            raise ConfigError(
                f"freeze_layers {lowest} is not possible: the encoder has {len(self.layers)} layers.",
                remedy=f"Give a number from 0 to {len(self.layers) - 1}.",
            )

    def freeze(self) -> None:
        """Freeze the embeddings and the lowest layers."""
        lower: list[nn.Module] = [self.base.embeddings, *self.layers[: self.lowest]]
        if hasattr(self.base, "embeddings_project"):
            lower.append(self.base.embeddings_project)
        for module in lower:
            module.requires_grad_(False)

    def lower(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """[B, T] -> [B, T, H]: the output of the lowest layers."""
        caught: list[Tensor] = []

        def catch(_: nn.Module, __: Any, out: Any) -> None:
            caught.append(out[0] if isinstance(out, tuple) else out)

        hook = self.layers[self.lowest - 1].register_forward_hook(catch)
        try:
            with self._lent(self.layers[: self.lowest]):
                self.base(input_ids=input_ids, attention_mask=attention_mask)
        finally:
            hook.remove()
        return caught[0]

    def cached(self, text: EncodedText, device: torch.device, batch_size: int) -> CachedLowerLayers:
        """The lowest layers' output for a complete text, computed once."""
        return CachedLowerLayers(self, text, device, batch_size)

    def upper(self, hidden: Tensor, input_ids: Tensor, attention_mask: Tensor) -> Any:
        """The body's output, computed from ``hidden`` on."""
        with self._lent(self.layers[self.lowest :], _Given(hidden)):
            return self.body(input_ids=input_ids, attention_mask=attention_mask)

    @contextmanager
    def _lent(self, layers: nn.ModuleList, embeddings: nn.Module | None = None) -> Iterator[None]:
        own = self.base.embeddings
        project = getattr(self.base, "embeddings_project", None)
        setattr(self.owner, self.attribute, layers)
        if embeddings is not None:
            self.base.embeddings = embeddings
            if project is not None:
                self.base.embeddings_project = nn.Identity()
        try:
            yield
        finally:
            setattr(self.owner, self.attribute, self.layers)
            self.base.embeddings = own
            if project is not None:
                self.base.embeddings_project = project


class CachedLowerLayers:
    """The lowest layers' output for every window of a text, computed once. 4 H bytes for each subword."""

    def __init__(self, parts: LowerLayers, text: EncodedText, device: torch.device, batch_size: int) -> None:
        self.parts = parts
        self.starts = torch.from_numpy(np.asarray(text.window_bounds[:-1], dtype=np.int64)).to(device)
        size = int(text.window_bounds[-1])
        self.hidden: Tensor | None = None
        training = parts.body.training
        parts.body.eval()
        with torch.no_grad():
            for batch in inference_batches(text, batch_size=batch_size):
                placed = batch.to(device)
                out = parts.lower(placed.input_ids, placed.attention_mask)
                if self.hidden is None:
                    self.hidden = out.new_empty(size, out.shape[-1])
                rows, columns = placed.attention_mask.nonzero(as_tuple=True)
                self.hidden[self.starts[placed.windows][rows] + columns] = out[rows, columns]
        parts.body.train(training)

    def of(self, batch: TokenBatch) -> Tensor:
        """[B, T, H] for a batch of the same text; zeros at padding."""
        assert self.hidden is not None  # noqa: S101 - a batch has windows, so the text had some
        columns = torch.arange(batch.input_ids.shape[1], device=self.starts.device)
        places = self.starts[batch.windows][:, None] + columns
        real = batch.attention_mask.bool()
        return self.hidden[places.where(real, 0)] * real[:, :, None]
