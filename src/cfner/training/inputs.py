"""From a batch to what its losses read: the one place where a term's inputs are put together."""

from __future__ import annotations

import torch

from cfner.batches.loader import TokenBatch
from cfner.network.head import CosineHead
from cfner.network.network import Network, TaggerOutput
from cfner.objective.terms import TermInputs
from cfner.training.preparation import PreparedStep


def term_inputs(
    prepared: PreparedStep, network: Network, batch: TokenBatch, out: TaggerOutput, epoch: int
) -> TermInputs:
    """``out`` is what the student said of the batch, with what the objective's probes read."""
    refs, now = batch.refs, {}
    if prepared.old is not None:
        uncached = [probe for probe in prepared.objective.probes if not probe.cached]
        with torch.no_grad():
            now = dict(prepared.old(batch, uncached).readings)
    weights = prepared.targets.weights
    sigma = None
    if isinstance(network.head, CosineHead) and prepared.objective.needs_cosines:
        sigma = network.head.sigma
    return TermInputs(
        logits=out.logits,
        features=out.features,
        gold=prepared.data.gold[refs],
        refs=refs,
        roles=prepared.roles,
        targets=prepared.targets.labels[refs],
        weights=None if weights is None else weights[refs],
        annotated=prepared.annotated[refs],
        rows=batch.rows,
        epoch=epoch,
        teachers={
            name: scores.view(batch, now if name == "old" else None)
            for name, scores in prepared.teachers.items()
        },
        bank=prepared.bank,
        cosines=None if sigma is None else out.logits / sigma,
        sigma=sigma,
        readings=out.readings,
    )
