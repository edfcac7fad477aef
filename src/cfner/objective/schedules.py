"""Numbers that change over a stream or over epochs: the adaptive weight and the curriculum."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cfner.errors import ConfigError


def adaptive_weight(base: float, old_types: int, new_types: int) -> float:
    """``base * sqrt(C_O / C_N)``: the more old types there are, the larger the weight of keeping them."""
    return base * math.sqrt(old_types / new_types)


@dataclass(frozen=True)
class Curriculum:
    """The confidence above which a defined-other token is selected, by epoch (counted from 1)."""

    delta_1: float = 1.0
    delta_m: float = 0.0
    m: int = 10

    def __post_init__(self) -> None:
        if not 0 <= self.delta_m <= self.delta_1 <= 1:
            raise ConfigError(
                f"The curriculum needs 0 <= delta_m <= delta_1 <= 1, got delta_1={self.delta_1}, "
                f"delta_m={self.delta_m}.",
                remedy="Set delta_1 to at least delta_m.",
            )
        if self.m < 1:
            raise ConfigError(f"The curriculum needs m >= 1, got {self.m}.", remedy="Set m to 1 or more.")

    def threshold(self, epoch: int) -> float:
        """delta_i; with m = 1 it is delta_m from the start."""
        if self.m == 1 or epoch >= self.m:
            return self.delta_m
        return self.delta_1 + (epoch - 1) / (self.m - 1) * (self.delta_m - self.delta_1)
