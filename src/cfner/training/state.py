"""The state of a step in training."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor


@dataclass(frozen=True)
class PartOfEpoch:
    """Where an epoch was stopped: batches done, the terms' sums over them, and the random generators."""

    batches: int
    sums: dict[str, Tensor]
    generators: dict[str, Tensor]  # torch's
    numbers: dict[str, Any]  # Python's and NumPy's


@dataclass
class TrainingState:
    """How far a step is, and its best epoch so far; a resumed step starts from it."""

    epoch: int = 0  # epochs done
    best_epoch: int = 0
    best_choice: float = -math.inf  # by the chosen rule: see training.selection
    best_weights: dict[str, Tensor] = field(default_factory=dict)
    history: list[dict[str, float]] = field(default_factory=list)
    threads: list[int] = field(default_factory=list)  # thread counts that it was trained with: several
    # if it was resumed with a different number
    part: PartOfEpoch | None = None  # of the next epoch, if training was stopped inside it

    @property
    def epochs_without_gain(self) -> int:
        """Epochs since the best was first reached; 0 without dev data."""
        if self.best_choice == -math.inf:
            return 0
        reached = [figures.get("dev_choice", -math.inf) >= self.best_choice for figures in self.history]
        return self.epoch - (reached.index(True) + 1)

    def note(self, epoch: int, figures: dict[str, float]) -> bool:
        """Record an epoch; returns whether it is the best so far (without dev data every epoch is)."""
        self.epoch = epoch
        self.history.append(figures)
        f1 = figures.get("dev_choice")
        # of equal epochs the later one: it was trained longer, and an F1 of 0 must not keep the first
        better = f1 is None or f1 >= self.best_choice
        if better:
            self.best_epoch = epoch
            self.best_choice = self.best_choice if f1 is None else f1
        return better
