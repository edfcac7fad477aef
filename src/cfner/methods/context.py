"""What a method may see before the first batch of a step. ``training`` provides it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn, Protocol

from torch import Tensor

from cfner.batches.step_data import StepData
from cfner.errors import ConfigError
from cfner.network.network import Network
from cfner.network.probes import Probe
from cfner.objective.groups import LabelGroups
from cfner.objective.teacher import WordScores
from cfner.objective.terms import LabelRoles
from cfner.stream.labels import LabelSpace
from cfner.stream.step import Step


@dataclass(frozen=True)
class Targets:
    """What cross-entropy trains each word on, decided once per step."""

    labels: Tensor  # [N] label ids by TokenRef; IGNORE where the label is not known
    weights: Tensor | None = None  # [N] weight of each word; None: 1
    groups: Tensor | None = None  # [N, G] the target in each group, where types have their own Other class
    group_weights: Tensor | None = None  # [G] how much words of a group's types count; None: 1, as others do


class StepContext(Protocol):
    """A step as a method sees it."""

    @property
    def step(self) -> Step: ...
    @property
    def labels(self) -> LabelSpace:
        """All labels, the new ones included."""
        ...

    @property
    def current(self) -> tuple[str, ...]:
        """The types that are labelled in the step's data, new or known."""
        ...

    @property
    def roles(self) -> LabelRoles: ...
    @property
    def groups(self) -> LabelGroups:
        """The labels, grouped by the Other class that they compete with."""
        ...

    @property
    def data(self) -> StepData:
        """The words of all slices, by TokenRef, with their label ids."""
        ...

    @property
    def has_old(self) -> bool:
        """Whether there is an old network: False in a first step."""
        ...

    @property
    def old(self) -> Network:
        """The network before this step, frozen: the usual teacher, and weights to fuse with."""
        ...

    @property
    def epochs(self) -> int: ...
    @property
    def old_types(self) -> int:
        """C_O: known types that the step does not label."""
        ...

    @property
    def new_types(self) -> int:
        """C_N: types that the step labels."""
        ...

    @property
    def freeze_other(self) -> bool:
        """Whether the user wants O's row frozen with those of old types."""
        ...

    def ask(self, network: Network, probes: Sequence[Probe] = (), *, as_learned: bool = False) -> WordScores:
        """One pass of a network over the step's words: scores, and what the probes read.

        ``as_learned``: the log-odds of types that an earlier network learned are that network's, where each
        group of labels has its own Other class. Costs a pass for each such network.
        """
        ...


@dataclass(frozen=True)
class ExampleContext:
    """A step of which only the sizes are known: enough to show or check an ``objective``."""

    old_types: int
    new_types: int
    epochs: int = 10
    freeze_other: bool = False

    @property
    def roles(self) -> LabelRoles:
        old, new = 2 * self.old_types, 2 * self.new_types  # B- and I- of each
        return LabelRoles(0, tuple(range(1, old + 1)), tuple(range(old + 1, old + new + 1)), old + new + 1)

    @property
    def current(self) -> NoReturn:
        raise self._without("current")

    @property
    def groups(self) -> NoReturn:
        raise self._without("groups")

    @property
    def step(self) -> NoReturn:
        raise self._without("step")

    @property
    def labels(self) -> NoReturn:
        raise self._without("labels")

    @property
    def data(self) -> NoReturn:
        raise self._without("data")

    @property
    def has_old(self) -> bool:
        return self.old_types > 0

    @property
    def old(self) -> NoReturn:
        raise self._without("old")

    def ask(self, network: Network, probes: Sequence[Probe] = (), *, as_learned: bool = False) -> WordScores:
        raise self._without("ask")

    def _without(self, what: str) -> ConfigError:
        return ConfigError(
            f"A method's objective may not look at '{what}': cfner shows and checks it without a step.",
            remedy="Use the roles, the numbers of types and the epochs. Decide everything else in targets().",
        )
