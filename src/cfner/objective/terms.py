"""Terms and objectives: what is minimised is a list of named losses, each with a role and a weight."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, Protocol

import torch
from torch import Tensor

from cfner.objective.losses import LayerSums
from cfner.objective.matching import ScoreBank

Role = Literal["learn_new", "keep_old"]
Need = Literal["teacher", "features", "layers", "cosines"]


@dataclass(frozen=True)
class LabelRoles:
    """Which label ids play which part in a step."""

    other: int
    old: tuple[int, ...]  # labels of known types that are not labelled in this step
    new: tuple[int, ...]  # labels of the step's current types
    labels: int  # how many there are in all

    @cached_property
    def kept(self) -> Tensor:
        """[1 + old] O and the old labels: what the teacher speaks about."""
        return torch.tensor([self.other, *self.old])

    @cached_property
    def new_ids(self) -> Tensor:
        return torch.tensor(self.new, dtype=torch.long)

    @cached_property
    def is_new(self) -> Tensor:
        """[C] bool."""
        mask = torch.zeros(self.labels, dtype=torch.bool)
        mask[list(self.new)] = True
        return mask

    def to(self, device: torch.device) -> LabelRoles:
        """The same roles with their tensors on another device."""
        moved = LabelRoles(self.other, self.old, self.new, self.labels)
        for name in ("kept", "new_ids", "is_new"):
            moved.__dict__[name] = getattr(self, name).to(device)
        return moved


@dataclass(frozen=True)
class TeacherView:
    """What the teacher said of this batch's words, read from what was computed once for the step."""

    logits: Tensor  # [W, C_kept]: over roles.kept, in that order
    defined_other: Tensor  # [W] bool: labelled O here, an old type to the teacher
    confidence: Tensor  # [W] probability of the label the teacher predicts
    features: Tensor | None = None  # [W, H]
    layers: LayerSums | None = None


@dataclass(frozen=True)
class TermInputs:
    """One batch as losses see it: one row per word."""

    logits: Tensor  # [W, C] the student's
    features: Tensor  # [W, H] the student's
    gold: Tensor  # [W] label ids
    refs: Tensor  # [W] TokenRefs
    roles: LabelRoles
    epoch: int = 1  # from 1
    teacher: TeacherView | None = None
    bank: ScoreBank | None = None
    cosines: Tensor | None = None  # [W, C] before sigma
    sigma: Tensor | None = None
    layers: LayerSums | None = None

    @property
    def is_entity(self) -> Tensor:
        """[W] E tokens: gold label of a current type."""
        return self.roles.is_new[self.gold]

    @property
    def is_other(self) -> Tensor:
        """[W] O tokens, old entities among them."""
        return self.gold == self.roles.other


class Predictions(Protocol):
    """Where a term reads the student's predictions from."""

    def log_probs(self, inputs: TermInputs, tokens: Tensor, temperature: float) -> Tensor:
        """[n, C] log-probabilities of the tokens chosen by the mask ``tokens [W]``."""
        ...


@dataclass(frozen=True)
class OwnPredictions:
    """The token's own softmax."""

    def log_probs(self, inputs: TermInputs, tokens: Tensor, temperature: float) -> Tensor:
        return (inputs.logits[tokens] / temperature).log_softmax(1)


@dataclass(frozen=True)
class Term:
    """A loss with a name, a role and a weight. Subclasses say how it is computed."""

    name: ClassVar[str]
    role: ClassVar[Role]
    needs: ClassVar[frozenset[Need]] = frozenset()
    formula: ClassVar[str] = ""
    weight: float = 1.0

    def __call__(self, inputs: TermInputs) -> Tensor:
        raise NotImplementedError


@dataclass(frozen=True)
class Objective:
    """The weighted sum of its terms."""

    terms: tuple[Term, ...]

    def losses(self, inputs: TermInputs) -> dict[str, Tensor]:
        """Each term's own value, before its weight."""
        return {term.name: term(inputs) for term in self.terms}

    def total(self, losses: dict[str, Tensor]) -> Tensor:
        return torch.stack([term.weight * losses[term.name] for term in self.terms]).sum()

    def needs(self, what: Need) -> bool:
        return any(what in term.needs for term in self.terms)

    def role(self, role: Role) -> Iterable[Term]:
        return (term for term in self.terms if term.role == role)
