"""How much of an encoder is dropped while it is trained."""

from __future__ import annotations

from typing import Final

from torch import nn

# where architectures keep a rate: torch's own module, DeBERTa's, and attributes that attention reads itself
_RATES: Final = ("p", "drop_prob", "attention_dropout", "dropout", "dropout_rate", "activation_dropout")


def set_dropout(encoder: nn.Module, rate: float | None) -> None:
    """Give every dropout of the encoder this rate; None leaves each as it came.

    What is saved and exported keeps the encoder's own rates: only modules are changed, not its config.
    """
    if rate is None:
        return
    for module in encoder.modules():
        for name in _RATES:
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, rate)
