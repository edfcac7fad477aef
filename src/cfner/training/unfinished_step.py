"""An unfinished step: everything that an interrupted step needs to resume exactly where it was.

Written between epochs (all randomness depends on seed and epoch alone), and between two batches when the user
stops the training (then with the random generators), as one safetensors file that is replaced atomically. The
teacher, the matches and the data are not in it: they are computed again from the parent model, and from the
earlier ones that learned old types.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.optim import Optimizer

from cfner.errors import TrainingError
from cfner.files.atomic import atomic_file
from cfner.network.network import Network
from cfner.objective.matching import ScoreBank
from cfner.stream.manifest import settings_hash
from cfner.stream.step import Step
from cfner.training.config import TrainingConfig
from cfner.training.state import PartOfEpoch, TrainingState

FILE = "unfinished-step.safetensors"


class UnfinishedStep:
    """Where an unfinished step is saved. ``parent``: the hash of the step that it continues. ``origins``:
    what identifies the earlier models that learned old types.
    """

    def __init__(
        self,
        folder: str | Path,
        step: Step,
        config: TrainingConfig,
        parent: str | None,
        origins: Sequence[str] = (),
    ) -> None:
        self.path = Path(folder) / FILE
        known = {"config": config.what_matters(), "data": step.data, "step": step.index, "parent": parent}
        if step.stop_after is not None:
            known["stop_after"] = step.stop_after
        if origins:
            known["origins"] = list(origins)
        self.identity = settings_hash(known)
        self.minutes = config.checkpoint_minutes
        self._last = time.monotonic()

    def write_if_due(
        self,
        network: Network,
        optimiser: Optimizer,
        schedule: Any,
        bank: ScoreBank | None,
        state: TrainingState,
    ) -> None:
        """Save the step after an epoch, unless it was saved a few minutes ago."""
        if time.monotonic() - self._last >= self.minutes * 60:
            self.write(network, optimiser, schedule, bank, state)

    def write(
        self,
        network: Network,
        optimiser: Optimizer,
        schedule: Any,
        bank: ScoreBank | None,
        state: TrainingState,
        *,
        trained: bool = False,
    ) -> None:
        """Save the step. ``trained``: no epoch is left, so the optimiser is not needed."""
        tensors = {f"network/{key}": value for key, value in network.state_dict().items()}
        tensors |= {f"best/{key}": value for key, value in state.best_weights.items()}
        for index, slot in () if trained else optimiser.state_dict()["state"].items():
            tensors |= {
                f"optimiser/{index}/{k}": torch.as_tensor(v) for k, v in slot.items() if v is not None
            }
        if bank is not None:
            tensors["bank"] = bank.logits
        facts = {
            "identity": self.identity,
            "epoch": state.epoch,
            "best_epoch": state.best_epoch,
            "best_choice": state.best_choice,
            "history": state.history,
            "threads": state.threads,
            "schedule": {k: v for k, v in schedule.state_dict().items() if isinstance(v, int | float | list)},
        }
        if state.part is not None:
            tensors |= {f"sums/{term}": value for term, value in state.part.sums.items()}
            tensors |= {f"random/{key}": value for key, value in state.part.generators.items()}
            facts |= {"batches": state.part.batches, "random": state.part.numbers}
        contiguous = {key: value.detach().cpu().contiguous() for key, value in tensors.items()}
        with atomic_file(self.path) as partial:
            save_file(contiguous, partial, metadata={"facts": json.dumps(facts)})
        self._last = time.monotonic()

    def read(
        self, network: Network, optimiser: Optimizer, schedule: Any, bank: ScoreBank | None
    ) -> TrainingState | None:
        """Restore an interrupted step's state; None if there is none for exactly this step."""
        if not self.path.is_file():
            return None
        try:
            with safe_open(self.path, framework="pt") as file:
                facts = json.loads((file.metadata() or {})["facts"])
                tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 - no mapping
        except (SafetensorError, OSError, KeyError, ValueError) as error:
            raise TrainingError(
                f"The unfinished step cannot be read: {error}.",
                where=str(self.path),
                remedy="Delete the file; the step then starts from scratch.",
            ) from error
        if facts["identity"] != self.identity:
            return None
        network.load_state_dict(_under(tensors, "network/"))
        slots: dict[int, dict[str, Tensor]] = {}
        for key, value in _under(tensors, "optimiser/").items():
            index, name = key.split("/", 1)
            slots.setdefault(int(index), {})[name] = value
        optimiser.load_state_dict({**optimiser.state_dict(), "state": slots})
        schedule.load_state_dict({**schedule.state_dict(), **facts["schedule"]})
        for group, rate in zip(optimiser.param_groups, facts["schedule"]["_last_lr"], strict=True):
            group["lr"] = rate
        if bank is not None:
            bank.logits.copy_(tensors["bank"])
        part = None
        if "batches" in facts:
            sums, generators = _under(tensors, "sums/"), _under(tensors, "random/")
            part = PartOfEpoch(facts["batches"], sums, generators, facts["random"])
        return TrainingState(
            facts["epoch"],
            facts["best_epoch"],
            facts["best_choice"],
            _under(tensors, "best/"),
            facts["history"],
            facts["threads"],
            part,
        )


def _under(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}
