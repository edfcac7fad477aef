"""Chooses the device: a GPU if there is one, or the requested one."""

from __future__ import annotations

import os
import re

import torch

from cfner.errors import ConfigError

NAMES = r"auto|cpu|mps|cuda(:\d+)?"


def choose_device(name: str = "auto") -> torch.device:
    """``auto``: cuda, then mps, then cpu. For an unavailable device, the error lists the available ones."""
    cards = torch.cuda.device_count() if torch.cuda.is_available() else 0
    here = ["cpu", *(f"cuda:{number}" for number in range(cards))]
    here += ["mps"] if torch.backends.mps.is_available() else []
    own = f"cuda:{os.environ.get('LOCAL_RANK', '0')}"  # with several processes, each has its own GPU
    if name == "auto":
        only_cpu = os.environ.get("ACCELERATE_USE_CPU", "").lower() in {"1", "true", "yes"}
        name = "cpu" if only_cpu else next(known for known in (own, "mps", "cpu") if known in here)
    elif not re.fullmatch(NAMES, name):
        raise ConfigError(
            f"There is no device '{name}'.", remedy=f"Use auto, or an available one: {', '.join(here)}."
        )
    chosen = own if name == "cuda" else name
    if chosen not in here:
        raise ConfigError(f"The device '{name}' is not available.", remedy=f"Available: {', '.join(here)}.")
    return torch.device(chosen)
