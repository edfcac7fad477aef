"""The state of the random generators, as tensors and plain numbers that a file can hold."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch
from torch import Tensor


def random_state(device: torch.device) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """(torch's states, those of Python and NumPy as JSON-able numbers)."""
    tensors = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        tensors["cuda"] = torch.cuda.get_rng_state(device)
    elif device.type == "mps":
        tensors["mps"] = torch.mps.get_rng_state()
    kind, keys, *rest = np.random.get_state(legacy=True)
    return tensors, {"python": random.getstate(), "numpy": [kind, np.asarray(keys).tolist(), *rest]}


def restore_random(tensors: dict[str, Tensor], numbers: dict[str, Any], device: torch.device) -> None:
    torch.set_rng_state(tensors["cpu"])
    if device.type == "cuda" and "cuda" in tensors:
        torch.cuda.set_rng_state(tensors["cuda"], device)
    elif device.type == "mps" and "mps" in tensors:
        torch.mps.set_rng_state(tensors["mps"])
    version, keys, gauss = numbers["python"]
    random.setstate((version, tuple(keys), gauss))
    np.random.set_state(tuple(numbers["numpy"]))
