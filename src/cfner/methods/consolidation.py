"""Merges experts into one network. Not a method for a stream, so it is not registered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch

from cfner.errors import ModelError
from cfner.methods.context import StepContext, Targets
from cfner.methods.method import Method
from cfner.network.experts import ExpertNetwork
from cfner.network.grow_experts import consolidated
from cfner.network.network import Network
from cfner.objective.groups import KEEP
from cfner.objective.own_others import KeepGroups
from cfner.objective.teacher import WordScores
from cfner.objective.terms import Objective
from cfner.stream.labels import Grouping


class Consolidation(Method):
    """Distils all experts into one network, on text that needs no labels.

    The network starts from the newest expert's encoder and the head rows of all experts. On every word each
    group of labels learns the experts' predictions. With `old_wins` those predictions respect the ranks of
    types; the network itself has no ranks.
    """

    name: ClassVar[str] = "consolidate"
    plain_first_step: ClassVar[bool] = False

    @property
    def grouping(self) -> Grouping | None:
        return "type"

    def grow(self, network: Network, ctx: StepContext) -> Network:
        if not isinstance(network, ExpertNetwork):
            raise ModelError("Only a model with experts can be consolidated.")
        return consolidated(network, ctx.labels.group_of)

    def begin(self, network: Network, ctx: StepContext) -> None:
        """All rows are trained, O's too."""
        network.head.freeze(())

    def objective(self, ctx: StepContext) -> Objective:
        return Objective((KeepGroups(),))

    def targets(self, ctx: StepContext, teachers: Mapping[str, WordScores]) -> Targets:
        """No word has a known label: every group learns the experts' predictions."""
        size = (len(ctx.data.gold), len(ctx.groups.numbers))
        return Targets(ctx.data.gold, groups=torch.full(size, KEEP, dtype=torch.long))
