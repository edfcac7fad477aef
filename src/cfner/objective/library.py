"""The terms that methods combine."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from cfner.batches.step_data import IGNORE
from cfner.errors import TrainingError
from cfner.network.probes import Features, LayerSums, Probe, Reading
from cfner.objective import losses
from cfner.objective.effects import MatchedPredictions
from cfner.objective.terms import OwnPredictions, Predictions, Role, Term, TermInputs


def _cosines(inputs: TermInputs) -> Tensor:
    if inputs.cosines is None:
        raise TrainingError(
            "A term needs cosines, which this model's head does not compute.",
            remedy="Methods with cosine terms (lucir, podnet) need the cosine head.",
        )
    return inputs.cosines


def read_by_both(inputs: TermInputs, probe: Probe) -> tuple[Reading, Reading]:
    """A probe's readings of the student and of the teacher."""
    return inputs.readings[probe.name], inputs.old.readings[probe.name]


@dataclass(frozen=True)
class ClassifyAll(Term):
    """Cross-entropy over every token, on the method's targets: the labels of the data, or weighted
    pseudo-labels. Tokens without a target are left out.
    """

    role: ClassVar[Role] = "learn_new"
    formula: ClassVar[str] = r"-\log p_i[y_i] \quad \text{mean over all tokens}"
    name: str = "cross_entropy"

    def __call__(self, inputs: TermInputs) -> Tensor:
        targets = inputs.gold if inputs.targets is None else inputs.targets
        sure = targets != IGNORE
        weights = None if inputs.weights is None else inputs.weights[sure]
        return losses.cross_entropy(inputs.logits[sure].log_softmax(1), targets[sure], weights)


@dataclass(frozen=True)
class ClassifyEntities(Term):
    """Cross-entropy over the tokens of the step's types. With matched predictions: Effect_E."""

    role: ClassVar[Role] = "learn_new"
    formula: ClassVar[str] = r"-\log \bar y_i[y_i] \quad \text{mean over E tokens}"
    name: str = "classify"
    predictions: Predictions = field(default_factory=OwnPredictions)

    def __call__(self, inputs: TermInputs) -> Tensor:
        tokens = inputs.is_entity
        return losses.cross_entropy(self.predictions.log_probs(inputs, tokens, 1.0), inputs.gold[tokens])


@dataclass(frozen=True)
class ClassifyReplayed(Term):
    """Cross-entropy over the labelled mentions of old sentences, if the user replays some."""

    role: ClassVar[Role] = "keep_old"
    formula: ClassVar[str] = r"-\log p_i[y_i] \quad \text{mean over the labelled tokens of old types}"
    name: str = "replay"

    def __call__(self, inputs: TermInputs) -> Tensor:
        tokens = ~(inputs.is_entity | inputs.is_other)
        if inputs.annotated is not None:  # in the step's own slices old types are not labelled, but kept
            tokens = tokens & ~inputs.annotated
        return losses.cross_entropy(inputs.logits[tokens].log_softmax(1), inputs.gold[tokens])


def as_the_teacher(log_probs: Tensor, inputs: TermInputs, tokens: Tensor) -> Tensor:
    """[n, C] -> [n, C_kept] the student's log-probabilities of the answers that the teacher can give.

    ``tokens [W]``: the mask that chose the n words. A word of text that is not labelled with the step's types
    may be of one of them, and the teacher, which does not know them, calls it O. There the teacher's O stands
    for the student's O and new labels together.
    """
    roles, unknown = inputs.roles, ~inputs.is_surely_other[tokens]
    kept = log_probs[:, roles.kept]
    if not bool(unknown.any()):
        return kept
    not_old = log_probs[:, torch.cat((roles.kept[:1], roles.new_ids))].logsumexp(1, keepdim=True)
    return torch.where(unknown[:, None] & (roles.kept == roles.other), not_old, kept)


@dataclass(frozen=True)
class Distil(Term):
    """Kullback-Leibler divergence from the teacher over O tokens. With matched predictions: Effect_O. In text
    that is not labelled with the step's types, $s_O$ is the student's probability of O or any new label.
    """

    role: ClassVar[Role] = "keep_old"
    formula: ClassVar[str] = (
        r"\sum_{c \in \{O\} \cup \text{old}} q_c (\log q_c - \log s_c) \quad \text{mean over O tokens}"
    )
    name: str = "distil"
    predictions: Predictions = field(default_factory=OwnPredictions)
    t_student: float = 1.0
    t_teacher: float = 1.0
    hard: bool = False  # the teacher's label instead of its distribution

    def __call__(self, inputs: TermInputs) -> Tensor:
        tokens = inputs.is_other
        student = self.predictions.log_probs(inputs, tokens, self.t_student)
        return losses.distillation(as_the_teacher(student, inputs, tokens), self.target(inputs, tokens))

    def target(self, inputs: TermInputs, tokens: Tensor) -> Tensor:
        """[n, C_kept] the teacher's distribution for the tokens chosen by the mask ``tokens [W]``."""
        logits = inputs.old.logits[tokens]
        return _one_hot(logits) if self.hard else (logits / self.t_teacher).softmax(1)


@dataclass(frozen=True)
class DistilHardSelected(Distil):
    """Distillation in which selected defined-other tokens learn the teacher's label in place of its
    distribution, and their matches are read by a softmax over O and the old labels alone.

    This is what the published code of CFNER does. Without an effect no token is selected, and it is Distil.
    """

    def __post_init__(self) -> None:
        if isinstance(self.predictions, MatchedPredictions):
            object.__setattr__(self, "predictions", replace(self.predictions, of_old=True))

    def target(self, inputs: TermInputs, tokens: Tensor) -> Tensor:
        soft = super().target(inputs, tokens)
        if not isinstance(self.predictions, MatchedPredictions):
            return soft
        selected = self.predictions.selected(inputs)[tokens]
        return torch.where(selected[:, None], _one_hot(inputs.old.logits[tokens]), soft)


def _one_hot(logits: Tensor) -> Tensor:
    return F.one_hot(logits.argmax(1), logits.shape[1]).to(logits)


@dataclass(frozen=True)
class KeepFeatures(Term):
    """Keeps features close to the teacher's: LUCIR's less-forget constraint, PODNet's POD-flat."""

    role: ClassVar[Role] = "keep_old"
    probes: ClassVar[tuple[Probe, ...]] = (Features(),)
    formula: ClassVar[str] = r"1 - \cos(f^{student}_i, f^{teacher}_i) \quad \text{mean over all tokens}"
    name: str = "keep_features"

    def __call__(self, inputs: TermInputs) -> Tensor:
        (student,), (teacher,) = read_by_both(inputs, Features())
        return losses.feature_distance(student, teacher)


@dataclass(frozen=True)
class RankOtherAboveNew(Term):
    """LUCIR's inter-class separation, on O tokens instead of reserved old samples."""

    role: ClassVar[Role] = "keep_old"
    needs_cosines: ClassVar[bool] = True
    formula: ClassVar[str] = (
        r"\max(0, m - \cos(h, w_O) + \max_{j \in new} \cos(h, w_j)) \quad \text{mean over O tokens}"
    )
    name: str = "margin_ranking"
    margin: float = 0.5

    def __call__(self, inputs: TermInputs) -> Tensor:
        cosines = _cosines(inputs)[inputs.is_surely_other]
        return losses.margin_ranking(
            cosines[:, inputs.roles.other], cosines[:, inputs.roles.new_ids], self.margin
        )


@dataclass(frozen=True)
class ClassifyWithMargin(Term):
    """PODNet's NCA loss on the tokens of the step's types."""

    role: ClassVar[Role] = "learn_new"
    needs_cosines: ClassVar[bool] = True
    formula: ClassVar[str] = (
        r"\max\left(0, -\log \frac{e^{\sigma(s_y - m)}}{\sum_{j \ne y} e^{\sigma s_j}}\right)"
        r" \quad \text{mean over E tokens}"
    )
    name: str = "nca"
    margin: float = 0.6

    def __call__(self, inputs: TermInputs) -> Tensor:
        tokens = inputs.is_entity
        cosines = _cosines(inputs)[tokens]
        sigma = inputs.sigma if inputs.sigma is not None else cosines.new_ones(())
        return losses.nca(cosines, inputs.gold[tokens], sigma, self.margin)


@dataclass(frozen=True)
class KeepLayers(Term):
    """PODNet's POD-spatial: keeps sums of every layer's hidden states close to the teacher's."""

    role: ClassVar[Role] = "keep_old"
    probes: ClassVar[tuple[Probe, ...]] = (LayerSums(),)
    formula: ClassVar[str] = (
        r"\frac1L \sum_l \left( \| \hat u_l - \hat u'_l \| + \| \hat v_l - \hat v'_l \| \right),"
        r"\; u_l = \textstyle\sum_h x_l,\; v_l = \sum_t x_l"
    )
    name: str = "pod_spatial"

    def __call__(self, inputs: TermInputs) -> Tensor:
        (s_words, s_units), (t_words, t_units) = read_by_both(inputs, LayerSums())
        if inputs.rows is None:
            raise TrainingError("POD-spatial compares complete windows, but got single words.")
        return losses.pod_spatial((s_words, s_units), (t_words, t_units), inputs.rows)
