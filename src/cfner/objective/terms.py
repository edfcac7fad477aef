"""Terms and objectives: an objective is a sum of named losses, each with a role and a weight."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol

import torch
from torch import Tensor

from cfner.errors import ConfigError, TrainingError
from cfner.network.head import Head
from cfner.network.probes import Features, Probe, Reading
from cfner.objective.matching import ScoreBank

if TYPE_CHECKING:
    from cfner.objective.groups import LabelGroups

Role = Literal["learn_new", "keep_old"]


class LabelRoles:
    """The role of each label id in a step."""

    def __init__(
        self,
        other: int,
        old: Sequence[int],
        new: Sequence[int],
        labels: int,
        kept: Sequence[int] | None = None,
    ) -> None:
        self.other = other
        self.old = tuple(old)  # labels of known types that are not labelled in this step
        self.new = tuple(new)  # labels of the step's current types
        self.labels = labels  # the number of all labels
        # [1 + old] labels that the teacher has scores for: O and the old labels, or O and ``kept``
        self.kept = torch.tensor([other, *(old if kept is None else kept)])
        self.new_ids = torch.tensor(self.new, dtype=torch.long)
        self.is_new = torch.zeros(labels, dtype=torch.bool)  # [C]
        self.is_new[list(new)] = True

    def to(self, device: torch.device) -> LabelRoles:
        """The same roles with their tensors on a different device."""
        moved = LabelRoles(self.other, self.old, self.new, self.labels, self.kept[1:].tolist())
        for name in ("kept", "new_ids", "is_new"):
            setattr(moved, name, getattr(self, name).to(device))
        return moved


@dataclass(frozen=True)
class TeacherView:
    """The teacher's scores for this batch's words, from those computed once for the step."""

    logits: Tensor  # [W, C_kept]: over roles.kept, in that order
    defined_other: Tensor  # [W] bool: labelled O here, an old type to the teacher
    confidence: Tensor  # [W] probability of the label the teacher predicts
    readings: Mapping[str, Reading] = field(default_factory=dict)  # by probe


@dataclass(frozen=True)
class TermInputs:
    """One batch as input of the losses: one row per word."""

    logits: Tensor  # [W, C] the student's
    features: Tensor  # [W, H] the student's
    gold: Tensor  # [W] label ids in the step's data
    refs: Tensor  # [W] TokenRefs
    roles: LabelRoles
    targets: Tensor | None = None  # [W] label ids to train on; IGNORE: label not known. None: gold
    weights: Tensor | None = None  # [W] weight of each target. None: 1
    annotated: Tensor | None = None  # [W] bool: the word's slice is completely annotated. None: all are
    groups: LabelGroups | None = None  # where types have their own Other class
    group_targets: Tensor | None = None  # [W, G] the target of each word in each group
    group_weights: Tensor | None = None  # [G] weight of words of a group's types. None: 1
    rows: Tensor | None = None  # [W] which window of the batch
    epoch: int = 1  # from 1
    teachers: Mapping[str, TeacherView] = field(default_factory=dict)
    bank: ScoreBank | None = None
    cosines: Tensor | None = None  # [W, C] before sigma
    sigma: Tensor | None = None
    readings: Mapping[str, Reading] = field(default_factory=dict)  # the student's, by probe
    head: Head | None = None  # the student's, for terms that score more than the batch's words
    parts: Mapping[str, Tensor] = field(default_factory=dict)  # what the network stores, by name
    # the same words in the same order in other views of the text, by name
    views: Mapping[str, TermInputs] = field(default_factory=dict)

    @property
    def teacher(self) -> TeacherView | None:
        """The network before this step; None in a first step."""
        return self.teachers.get("old")

    @property
    def old(self) -> TeacherView:
        """The same, for terms that require it."""
        if self.teacher is None:
            raise TrainingError("A term that keeps old knowledge was used in a step that has no teacher.")
        return self.teacher

    @property
    def is_entity(self) -> Tensor:
        """[W] E tokens: gold label of a current type."""
        return self.roles.is_new[self.gold]

    @property
    def is_other(self) -> Tensor:
        """[W] O tokens, old entities among them."""
        return self.gold == self.roles.other

    @property
    def is_surely_other(self) -> Tensor:
        """[W] O tokens that are certainly not of a current type: their text is labelled with all of them. Any
        word of unlabelled text may be.
        """
        return self.is_other if self.annotated is None else self.is_other & self.annotated

    def word(self, row: int) -> TermInputs:
        """One word of the batch as a batch of one, without readings, which may be per window."""
        one = slice(row, row + 1)

        def cut(tensor: Tensor | None) -> Tensor | None:
            return None if tensor is None else tensor[one]

        def per_word(readings: Mapping[str, Reading]) -> dict[str, Reading]:
            return {name: (r[0][one],) for name, r in readings.items() if name == Features.name}

        return replace(
            self,
            logits=self.logits[one],
            features=self.features[one],
            gold=self.gold[one],
            refs=self.refs[one],
            targets=cut(self.targets),
            weights=cut(self.weights),
            annotated=cut(self.annotated),
            group_targets=cut(self.group_targets),
            rows=None,
            cosines=cut(self.cosines),
            teachers={
                name: TeacherView(
                    view.logits[one], view.defined_other[one], view.confidence[one], per_word(view.readings)
                )
                for name, view in self.teachers.items()
            },
            readings=per_word(self.readings),
            views={name: view.word(row) for name, view in self.views.items()},
        )


class Predictions(Protocol):
    """Where a term reads the student's predictions from."""

    def log_probs(self, inputs: TermInputs, tokens: Tensor, temperature: float) -> Tensor:
        """[n, C] log-probabilities of the tokens chosen by the mask ``tokens [W]``."""
        ...

    def group_log_probs(self, inputs: TermInputs) -> Tensor:
        """[W, G, M] log-probabilities of each group's members."""
        ...


@dataclass(frozen=True)
class OwnPredictions:
    """The token's own softmax."""

    def log_probs(self, inputs: TermInputs, tokens: Tensor, temperature: float) -> Tensor:
        return (inputs.logits[tokens] / temperature).log_softmax(1)

    def group_log_probs(self, inputs: TermInputs) -> Tensor:
        return _groups(inputs).log_probs(inputs.logits)


def _groups(inputs: TermInputs) -> LabelGroups:
    if inputs.groups is None:
        raise TrainingError("A term for own Other classes was used in a step whose labels have none.")
    return inputs.groups


@dataclass(frozen=True)
class Term:
    """A loss with a name, a role and a weight. Subclasses compute it in ``__call__``."""

    role: ClassVar[Role]
    probes: ClassVar[tuple[Probe, ...]] = ()  # what it reads from the encoder
    needs_cosines: ClassVar[bool] = False
    formula: ClassVar[str] = ""
    name: str = ""
    weight: float = 1.0

    def __call__(self, inputs: TermInputs) -> Tensor:
        raise NotImplementedError

    @property
    def of_words(self) -> bool:
        """Whether it is a mean of losses of single words; False where windows are compared."""
        return all(probe.axes == ("word",) for probe in self.probes)


@dataclass(frozen=True)
class Objective:
    """The weighted sum of its terms."""

    terms: tuple[Term, ...]

    def __post_init__(self) -> None:
        for name, times in Counter(term.name for term in self.terms).items():
            if times > 1 or not name:
                raise ConfigError(
                    f"{times} terms of an objective are named '{name}'." if name else "A term has no name.",
                    remedy="Give each term a different name: Distil(name='distil_again').",
                )

    def losses(self, inputs: TermInputs) -> dict[str, Tensor]:
        """Each term's value, before its weight."""
        return {term.name: term(inputs) for term in self.terms}

    def total(self, losses: dict[str, Tensor]) -> Tensor:
        return torch.stack([term.weight * losses[term.name] for term in self.terms]).sum()

    @property
    def probes(self) -> tuple[Probe, ...]:
        """What its terms read from the encoder, each once."""
        return tuple({probe.name: probe for term in self.terms for probe in term.probes}.values())

    @property
    def needs_cosines(self) -> bool:
        return any(term.needs_cosines for term in self.terms)

    def role(self, role: Role) -> Iterable[Term]:
        return (term for term in self.terms if term.role == role)
