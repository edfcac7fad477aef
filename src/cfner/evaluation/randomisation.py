"""Is a second model worse, or is the difference chance? A paired randomisation test over sentences.

If the two models are equally good, it does not matter which of them gave which answer to a sentence. So the
test swaps the answers at random, sentence by sentence, thousands of times, and compares the measured loss
with the losses of the swaps. Testing many figures gives many chances of a false alarm, so each figure is
compared with the *largest* standardised loss of every swap. This bounds the chance of any false alarm in the
whole run.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cfner.evaluation.intervals import Floats

SWAPS = 10_000
_CELLS = 20_000_000  # sentences x swaps held at a time
TIE = 1e-9  # equal losses may differ by rounding


def swapped_losses(
    before: Floats, after: Floats, figures: Callable[[Floats], Floats], seed: int, swaps: int = SWAPS
) -> Floats:
    """[S, T, 3] counts of both models -> [N, ...]: what the figures lose (before - after) in each swap.

    Only sentences in which the two models differ can change a sum, so only those are drawn.
    """
    random = np.random.default_rng(seed)
    apart = (before - after).reshape(len(before), -1) / 2
    apart = apart[apart.any(1)]
    middle = (before + after).sum(0) / 2
    at_a_time = max(1, _CELLS // max(len(apart), middle.size, 1))
    parts = []
    for start in range(0, swaps, at_a_time):
        rows = min(at_a_time, swaps - start)
        sides = random.integers(0, 2, (rows, len(apart)), dtype=np.int8) * 2.0 - 1
        moved = (sides @ apart).reshape(rows, *middle.shape)
        parts.append(figures(middle + moved) - figures(middle - moved))
    return np.concatenate(parts)


def spread(drawn: Floats) -> Floats:
    """[N, ...] -> [...]: the standard error of each loss if the models are equal. Its mean is then 0."""
    result: Floats = np.sqrt((drawn**2).mean(0))
    return result


def standardised(losses: Floats, errors: Floats) -> Floats:
    """Losses in standard errors; 0 where no swap changes anything."""
    result: Floats = np.where(errors > TIE, losses / np.where(errors > TIE, errors, 1), 0)
    return result


def share_reached(largest: Floats, measured: Floats) -> Floats:
    """[N], [...] -> [...]: how often chance gets as far; the measured loss counts as one of the swaps."""
    ordered = np.sort(largest)
    below = np.searchsorted(ordered, measured - TIE)
    result: Floats = (1 + len(ordered) - below) / (1 + len(ordered))
    return result


def p_values(measured: Floats, drawn: Floats) -> Floats:
    """[K], [N, K] -> [K]: one-sided; each loss is compared with the largest of all K in every swap."""
    errors = spread(drawn)
    largest = standardised(drawn, errors).max(axis=1, initial=-np.inf)
    return share_reached(largest, standardised(measured, errors))
