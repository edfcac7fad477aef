"""An encoder split permanently into two modules: its lowest layers, which several tops share, and the rest.

(``frozen_layers`` splits an encoder only for the duration of a call.) Hidden states are passed in context
variables, not in modules, so that several threads may predict.
"""

from __future__ import annotations

import copy
from contextvars import ContextVar
from typing import Any

from torch import Tensor, nn

from cfner.errors import ConfigError
from cfner.network.frozen_layers import layer_list

_HANDED: ContextVar[Tensor] = ContextVar("_HANDED")
_CAUGHT: ContextVar[list[Tensor]] = ContextVar("_CAUGHT")
_REMEDY = "Use the method own-other, which needs no split, or a different encoder."


class _Handed(nn.Module):
    """Replaces the embeddings of a top: whatever its input, it returns the output of the lower layers."""

    def forward(self, *_: Any, **__: Any) -> Tensor:
        return _HANDED.get()


class SharedLayers(nn.Module):
    """Embeddings and the lowest layers, split off an encoder: ``body`` has no other layers any more."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body
        layers = _layers(body)
        self.depth = len(layers)
        layers[-1].register_forward_hook(_catch)  # later modules (a norm, a dropout) belong to the top

    def lower(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """[B, T] -> [B, T, H]."""
        caught: list[Tensor] = []
        token = _CAUGHT.set(caught)
        try:
            base: Any = _base(self.body)
            base(input_ids=input_ids, attention_mask=attention_mask)
        finally:
            _CAUGHT.reset(token)
        return caught[0]


def _catch(_: nn.Module, __: Any, out: Any) -> None:
    _CAUGHT.get().append(out[0] if isinstance(out, tuple) else out)


def run_top(top: nn.Module, hidden: Tensor, input_ids: Tensor, attention_mask: Tensor, **wanted: bool) -> Any:
    """The output of an encoder with this top, whose lowest layers returned ``hidden [B, T, H]``."""
    token = _HANDED.set(hidden)
    try:
        return top(input_ids=input_ids, attention_mask=attention_mask, **wanted)
    finally:
        _HANDED.reset(token)


def depth(body: nn.Module) -> int:
    """How many layers an encoder has; raises if its layers cannot be separated."""
    return len(_layers(body))


def top_layers(body: nn.Module, top: int | None) -> int:
    """How many of an encoder's layers are its top: ``top``, or a third. Raises if none are left to share."""
    layers = depth(body)
    chosen = max(1, layers // 3) if top is None else top
    if not 0 < chosen < layers:
        raise ConfigError(
            f"The top cannot be {chosen} layers: the encoder has {layers}, and experts share at least one.",
            remedy=f"Give top a number from 1 to {layers - 1}." if layers > 1 else _REMEDY,
        )
    return chosen


def cut(body: nn.Module, top: int) -> tuple[SharedLayers, nn.Module]:
    """(lower layers, top) of an encoder, which itself becomes the lower part. Its outputs stay the same."""
    owner, attribute = layer_list(body, _REMEDY)
    layers: nn.ModuleList = getattr(owner, attribute)
    base, lowest = _base(body), len(layers) - top
    own, project = base.embeddings, getattr(base, "embeddings_project", None)
    setattr(owner, attribute, layers[lowest:])
    base.embeddings = _Handed()
    if project is not None:
        base.embeddings_project = nn.Identity()
    upper = copy.deepcopy(body)
    setattr(owner, attribute, layers[:lowest])
    base.embeddings = own
    if project is not None:
        base.embeddings_project = project
    return SharedLayers(body), upper


def joined(shared: SharedLayers, top: nn.Module) -> nn.Module:
    """The complete encoder again, as a copy."""
    body, lower = copy.deepcopy(top), copy.deepcopy(shared.body)
    base, below = _base(body), _base(lower)
    owner, attribute = layer_list(body, _REMEDY)
    below_layers = _layers(lower)
    below_layers[-1]._forward_hooks.clear()
    setattr(owner, attribute, nn.ModuleList([*below_layers, *getattr(owner, attribute)]))
    base.embeddings = below.embeddings
    if getattr(below, "embeddings_project", None) is not None:
        base.embeddings_project = below.embeddings_project
    return body


def freeze_lowest(top: nn.Module, layers: int) -> None:
    """Freeze the lowest ``layers`` of a top."""
    for layer in _layers(top)[: max(0, layers)]:
        layer.requires_grad_(False)


def _layers(body: nn.Module) -> nn.ModuleList:
    owner, attribute = layer_list(body, _REMEDY)
    layers: nn.ModuleList = getattr(owner, attribute)
    return layers


def _base(body: nn.Module) -> Any:
    return getattr(body, "base_model", body)
