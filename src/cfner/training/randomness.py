"""Seeds from seeds: every step and every epoch has its own, whatever the size of the user's."""

from __future__ import annotations

import numpy as np


def derived_seed(*parts: int) -> int:
    """A 32-bit seed that depends on all parts and their order, the same on every machine."""
    return int(np.random.SeedSequence(parts).generate_state(1)[0])
