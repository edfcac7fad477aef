"""The data types of ``explain``: a sentence token by token, and statistics of its slice."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Pool = Literal["entity", "defined-other"]


@dataclass(frozen=True)
class Share:
    """A label and its probability."""

    label: str
    p: float


@dataclass(frozen=True)
class Distribution:
    """The likeliest labels, likeliest first, and the probability of all others together: they sum to 1."""

    top: tuple[Share, ...]
    rest: float
    group: str | None = None  # the types that share an Other class; None if all do


@dataclass(frozen=True)
class Match:
    """A matched token in its own sentence."""

    sentence: int  # of the slice, from 0
    position: int  # of the word in it, from 0
    words: tuple[str, ...]
    label: str  # in this step's data
    truth: str | None  # with the labels of earlier types too
    teacher_label: str
    distance: float  # 1 - cosine, in the teacher's feature space
    weight: float  # W_ik
    student: Distribution  # at the temperature at which its anchor reads it

    @property
    def word(self) -> str:
        return self.words[self.position]


@dataclass(frozen=True)
class TokenLoss:
    """One loss that a token took part in."""

    term: str  # the objective's name of the term
    shown: str  # what it is for this token: Effect_E, Effect_O, distillation, cross-entropy ...
    role: str
    weight: float
    matched: bool  # read from neighbour-averaged predictions
    value: float | None  # of this token alone, before the weight; None if only whole sentences have one
    group: str | None = None  # the group of types, if each group has its own Other class

    @property
    def title(self) -> str:
        return self.shown if self.group is None else f"{self.shown} ({self.group})"


@dataclass(frozen=True)
class TokenExplanation:
    """One word: its labels, the predictions of teacher and student, and its losses."""

    position: int
    word: str
    label: str  # in this step's data
    trained_on: str  # the same, unless the method relabels
    truth: str | None  # including labels of earlier types; None outside a stream
    teacher: Distribution  # over O and the old labels
    teacher_label: str
    confidence: float
    student: Distribution
    averaged: Distribution | None  # what the loss used instead, if an effect applied
    temperature: float  # of the student's distributions
    pool: Pool | None
    selected: bool  # an effect applied to it in this epoch
    joins: int | None  # a defined-other token's first epoch above the threshold, if there is one
    losses: tuple[TokenLoss, ...]
    anchor_weight: float  # W_i
    matches: tuple[Match, ...]

    @property
    def path(self) -> str:
        """The losses as one line."""
        return " + ".join(loss.title for loss in self.losses) or "no loss"

    @property
    def waits(self) -> bool:
        """Whether it is a defined-other token below the threshold."""
        return bool(self.matches) and not self.selected


def hidden_truth(token: Match | TokenExplanation) -> str | None:
    """The true label, if it differs from the label in this step's data."""
    return None if token.truth == token.label else token.truth


@dataclass(frozen=True)
class EpochSelection:
    """How many defined-other tokens of the slice an epoch selects."""

    epoch: int
    threshold: float
    selected: int
    right: int | None  # the teacher's label is correct
    right_type: int | None  # at least its type is correct


@dataclass(frozen=True)
class SliceSummary:
    """Statistics of the slice. Those that need true labels are None outside a stream."""

    sentences: int
    tokens: int
    entity_tokens: int  # E
    other_tokens: int  # labelled O
    hidden_old: int | None  # O tokens that are old entities in truth
    defined_other: int
    defined_other_right: int | None
    hidden_old_found: int | None  # of hidden_old, those for which the teacher predicts the true type
    epochs: tuple[EpochSelection, ...]  # empty without Effect_O


@dataclass(frozen=True)
class TermFacts:
    """A term of the objective."""

    name: str
    role: str
    weight: float
    formula: str
    matched: bool  # reads neighbour-averaged predictions


@dataclass(frozen=True)
class Explanation:
    """Everything about one sentence in one epoch of one step."""

    method: str
    step: int  # from 1
    new_types: tuple[str, ...]
    old_types: tuple[str, ...]
    epoch: int
    epochs: int
    best_epoch: int | None  # the epoch whose weights the student has
    k: int  # matched tokens per anchor; 0 if the method has no causal effect
    terms: tuple[TermFacts, ...]
    slice: SliceSummary
    sentence: int  # of the slice, from 0
    source: str | None
    tokens: tuple[TokenExplanation, ...]

    def __repr__(self) -> str:
        return (
            f"Explanation({self.method}, step {self.step}, epoch {self.epoch} of {self.epochs}, "
            f"sentence {self.sentence}: {len(self.tokens)} tokens)"
        )

    @property
    def now(self) -> EpochSelection | None:
        """The tokens that the epoch selects; None without Effect_O."""
        return self.slice.epochs[self.epoch - 1] if self.slice.epochs else None

    @property
    def threshold(self) -> float | None:
        """The epoch's delta."""
        return self.now.threshold if self.now else None

    @property
    def anchors(self) -> tuple[TokenExplanation, ...]:
        """Tokens with matched tokens, in the order of the sentence."""
        return tuple(token for token in self.tokens if token.matches)

    def to_json(self) -> dict[str, Any]:
        data = asdict(self)
        data["threshold"] = self.threshold
        for shown, token in zip(data["tokens"], self.tokens, strict=True):
            shown["path"] = token.path
        return data
