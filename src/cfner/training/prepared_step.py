"""A step ready for training: everything that is decided once, and the inputs of a batch's losses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from cfner.batches.loader import TokenBatch, collate
from cfner.batches.step_data import StepData
from cfner.methods.context import Targets
from cfner.network.head import CosineHead
from cfner.network.network import Network, TaggerOutput
from cfner.network.probes import Probe
from cfner.objective.groups import LabelGroups
from cfner.objective.matching import ScoreBank
from cfner.objective.teacher import WordScores
from cfner.objective.terms import LabelRoles, Objective, TermInputs


@dataclass(frozen=True)
class PreparedStep:
    """A step ready for training; the network to train already has its grown head."""

    data: StepData
    roles: LabelRoles
    objective: Objective
    targets: Targets
    annotated: Tensor  # [N] bool: annotated with the types that the step labels
    groups: LabelGroups | None = None  # where the method gives types their own Other class
    teachers: Mapping[str, WordScores] = field(default_factory=dict)
    bank: ScoreBank | None = None
    old: Network | None = None  # only where a probe reads it again for every batch
    views: Mapping[str, PreparedStep] = field(
        default_factory=dict
    )  # the same step with other views of its text

    @property
    def teacher(self) -> WordScores | None:
        return self.teachers.get("old")

    def on(self, device: torch.device) -> PreparedStep:
        """The same step, with the tensors that batches index on the training device."""

        def moved(tensor: Tensor | None) -> Tensor | None:
            return None if tensor is None else tensor.to(device)

        targets = self.targets
        return replace(
            self,
            data=replace(self.data, gold=self.data.gold.to(device)),
            roles=self.roles.to(device),
            targets=Targets(
                targets.labels.to(device),
                moved(targets.weights),
                moved(targets.groups),
                moved(targets.group_weights),
            ),
            annotated=self.annotated.to(device),
            groups=None if self.groups is None else self.groups.to(device),
            bank=None if self.bank is None else self.bank.on(device),
            views={name: view.on(device) for name, view in self.views.items()},
        )

    def inputs(
        self,
        network: Network,
        batch: TokenBatch,
        out: TaggerOutput,
        epoch: int,
        read: Callable[[TokenBatch, Sequence[Probe]], TaggerOutput] | None = None,
    ) -> TermInputs:
        """The inputs of a batch's losses. ``out`` is the student's output, with the readings of the
        objective's probes. ``read``: how to run the student on other views; default: the network itself.
        """
        refs, now = batch.refs, {}
        if self.old is not None:
            uncached = [probe for probe in self.objective.probes if not probe.cached]
            with torch.no_grad():
                now = dict(self.old(batch, uncached).readings)
        weights, taught = self.targets.weights, self.targets.groups
        sigma = None
        if isinstance(network.head, CosineHead) and self.objective.needs_cosines:
            sigma = network.head.sigma
        return TermInputs(
            logits=out.logits,
            features=out.features,
            gold=self.data.gold[refs],
            refs=refs,
            roles=self.roles,
            targets=self.targets.labels[refs],
            weights=None if weights is None else weights[refs],
            annotated=self.annotated[refs],
            groups=self.groups,
            group_targets=None if taught is None else taught[refs],
            group_weights=self.targets.group_weights,
            rows=batch.rows,
            epoch=epoch,
            teachers={
                name: scores.view(batch, now if name == "old" else None)
                for name, scores in self.teachers.items()
            },
            bank=self.bank,
            cosines=None if sigma is None else out.logits / sigma,
            sigma=sigma,
            readings=out.readings,
            head=network.head,
            parts=network.parts,
            views={
                name: view._in_view(network, batch, epoch, read or network)
                for name, view in self.views.items()
            },
        )

    def _in_view(
        self,
        network: Network,
        batch: TokenBatch,
        epoch: int,
        read: Callable[[TokenBatch, Sequence[Probe]], TaggerOutput],
    ) -> TermInputs:
        """The inputs of the losses in this view, for a batch of the step's usual text."""
        here = collate(self.data.text, batch.windows.cpu().numpy()).to(batch.refs.device)
        return self.inputs(network, here, read(here, self.objective.probes), epoch)
