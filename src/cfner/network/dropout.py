"""Sets the dropout rate of an encoder for training."""

from __future__ import annotations

from typing import Final

from torch import nn

# where architectures store the rate: torch's module, DeBERTa's, and attributes that attention reads itself
_RATES: Final = ("p", "drop_prob", "attention_dropout", "dropout", "dropout_rate", "activation_dropout")


def set_dropout(encoder: nn.Module, rate: float | None) -> None:
    """Give every dropout of the encoder this rate; None leaves each as it is.

    Saved and exported models keep the encoder's original rates: only modules are changed, not its config.
    """
    if rate is None:
        return
    for module in encoder.modules():
        for name in _RATES:
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, rate)
