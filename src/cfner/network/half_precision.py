"""A network that predicts with the products of its encoder in bf16: faster where the device has it."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from cfner.batches.loader import TokenBatch
from cfner.network.network import Network, TaggerOutput
from cfner.network.probes import Probe


class InBf16:
    """Scores words as the network does, up to the rounding of bf16. For prediction only."""

    training = False
    batches_at_once = 1

    def __init__(self, network: Network) -> None:
        self.network = network.eval()
        self.ranks = network.ranks
        self.subwords_per_batch = network.subwords_per_batch

    @property
    def device(self) -> torch.device:
        return self.network.device

    def eval(self) -> InBf16:
        return self

    def train(self, mode: bool = True) -> InBf16:
        """It has one mode; prediction asks for its return to the one before."""
        return self

    def __call__(self, batch: TokenBatch, probes: Sequence[Probe] = ()) -> TaggerOutput:
        with torch.autocast(self.device.type, dtype=torch.bfloat16):
            scored: TaggerOutput = self.network(batch, probes)
        return scored
