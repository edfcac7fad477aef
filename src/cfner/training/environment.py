"""What a training runs in: devices, precision and trackers through accelerate, and versions to record."""

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
    # accelerate keeps one precision and one device per process; another tagger may have had others
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
            f"The training set-up is refused: {error}", remedy="Check precision and trackers."
        ) from error
    if len(accelerator.log_with) < len(config.trackers):  # accelerate leaves out what is not installed
        raise ConfigError(
            f"Not all of the trackers {', '.join(config.trackers)} are installed.",
            remedy="Install them, for example with: pip install tensorboard",
        )
    if config.trackers:
        facts = {key: str(value) for key, value in config.model_dump(mode="json").items()}
        accelerator.init_trackers("cfner", config=facts)
    return accelerator


def precision_used(config: TrainingConfig) -> str:
    """What ``auto`` comes to here. Emulated bf16 is slower than fp32, so only real instructions count."""
    if config.precision != "auto":
        return config.precision
    device = choose_device(config.device).type
    if device == "cuda":
        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp32"
    fast = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return "bf16" if fast and device == "cpu" else "fp32"


_version = cache(importlib.metadata.version)  # which reads a file at each call


def versions() -> dict[str, Any]:
    names = ("cfner", "torch", "transformers", "accelerate", "tokenizers", "numpy")
    found = {name: _version(name) for name in names}
    return {**found, "python": platform.python_version(), "threads": torch.get_num_threads()}


def other_threads(before: Any) -> str | None:
    """A warning if what is resumed was computed with another number of threads."""
    now = torch.get_num_threads()
    if not isinstance(before, int) or before == now:
        return None
    return (
        f"resumed with {now} thread(s), begun with {before}: sums are rounded in another order, so the "
        "weights will differ in their last bits from those of a run that was not interrupted "
        f"(OMP_NUM_THREADS={before} avoids it)"
    )


def peak_memory() -> int:
    """Bytes that this program took at most so far.

    Linux is asked for the peak of this very program: what getrusage tells begins with the peak of the
    process that started it.
    """
    status = Path("/proc/self/status")
    if status.is_file():
        for line in status.read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
