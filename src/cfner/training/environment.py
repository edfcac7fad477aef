"""The environment of a training: devices, precision and trackers (by accelerate), and versions."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from functools import cache
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, PartialState
from accelerate.utils import patch_environment

from cfner.errors import ConfigError
from cfner.network.device import choose_device
from cfner.training.config import TrainingConfig


def make_accelerator(config: TrainingConfig) -> Accelerator:
    device = choose_device(config.device)
    # accelerate has one precision and one device per process; an earlier tagger may have set others
    several = PartialState._shared_state != {} and PartialState().use_distributed
    AcceleratorState._reset_state(reset_partial_state=not several)
    one = {} if several or device.type != "cuda" else {"ACCELERATE_TORCH_DEVICE": str(device)}
    try:
        with patch_environment(**one):
            accelerator = Accelerator(
                cpu=config.device == "cpu",
                mixed_precision="bf16" if precision_used(config) == "bf16" else "no",
                gradient_accumulation_steps=config.accumulation,
                log_with=list(config.trackers) or None,
                project_dir="runs" if config.trackers else None,
            )
    except ValueError as error:
        raise ConfigError(
            f"accelerate refused the training set-up: {error}", remedy="Check precision and trackers."
        ) from error
    if len(accelerator.log_with) < len(config.trackers):  # accelerate silently drops those not installed
        raise ConfigError(
            f"Not all of the trackers {', '.join(config.trackers)} are installed.",
            remedy="Install them, for example with: pip install tensorboard",
        )
    if config.trackers:
        facts = {key: str(value) for key, value in config.model_dump(mode="json").items()}
        accelerator.init_trackers("cfner", config=facts)
    return accelerator


def precision_used(config: TrainingConfig) -> str:
    """The precision that ``auto`` means here. Emulated bf16 is slower than fp32, so it does not count."""
    if config.precision != "auto":
        return config.precision
    device = choose_device(config.device).type
    if device == "cuda":
        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp32"
    fast = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return "bf16" if fast and device == "cpu" else "fp32"


_version = cache(importlib.metadata.version)  # cached, because it reads a file at each call


def versions() -> dict[str, Any]:
    names = ("cfner", "torch", "transformers", "accelerate", "tokenizers", "numpy")
    found = {name: _version(name) for name in names}
    return {**found, "python": platform.python_version(), "threads": torch.get_num_threads()}


def other_threads(before: Any) -> str | None:
    """A warning if a resumed step was started with a different number of threads."""
    now = torch.get_num_threads()
    if not isinstance(before, int) or before == now:
        return None
    return (
        f"resumed with {now} thread(s), started with {before}: sums are rounded in a different order, so the "
        "weights will differ in their last bits from those of a run that was not interrupted "
        f"(OMP_NUM_THREADS={before} avoids it)"
    )


def peak_memory() -> int:
    """The peak memory of this program in bytes.

    On Linux this reads the peak of this program alone: getrusage starts with the peak of the process that
    started it.
    """
    status = Path("/proc/self/status")
    if status.is_file():
        for line in status.read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
