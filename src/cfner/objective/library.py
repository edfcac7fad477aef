"""The terms that methods are made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor

from cfner.errors import TrainingError
from cfner.objective import losses
from cfner.objective.terms import Need, OwnPredictions, Predictions, Role, TeacherView, Term, TermInputs


def _teacher(inputs: TermInputs) -> TeacherView:
    if inputs.teacher is None:
        raise TrainingError("A term that keeps old knowledge was used in a step that has no teacher.")
    return inputs.teacher


def _present(value: Tensor | None, what: str) -> Tensor:
    if value is None:
        raise TrainingError(
            f"A term needs {what}, which this model does not give.",
            remedy="Methods with cosine terms (lucir, podnet) need the cosine head.",
        )
    return value


@dataclass(frozen=True)
class ClassifyAll(Term):
    """Cross-entropy over every labelled token."""

    name: ClassVar[str] = "cross_entropy"
    role: ClassVar[Role] = "learn_new"
    formula: ClassVar[str] = r"-\log p_i[y_i] \quad \text{mean over all tokens}"

    def __call__(self, inputs: TermInputs) -> Tensor:
        return losses.cross_entropy(inputs.logits.log_softmax(1), inputs.gold)


@dataclass(frozen=True)
class ClassifyEntities(Term):
    """Cross-entropy over the tokens of the step's types. With matched predictions: Effect_E."""

    name: ClassVar[str] = "effect_e"
    role: ClassVar[Role] = "learn_new"
    formula: ClassVar[str] = r"-\log \bar y_i[y_i] \quad \text{mean over E tokens}"
    predictions: Predictions = field(default_factory=OwnPredictions)

    def __call__(self, inputs: TermInputs) -> Tensor:
        tokens = inputs.is_entity
        return losses.cross_entropy(self.predictions.log_probs(inputs, tokens, 1.0), inputs.gold[tokens])


@dataclass(frozen=True)
class ClassifyReplayed(Term):
    """Cross-entropy over the labelled mentions of old sentences, where a user has some to mix in."""

    name: ClassVar[str] = "replay"
    role: ClassVar[Role] = "keep_old"
    formula: ClassVar[str] = r"-\log p_i[y_i] \quad \text{mean over the labelled tokens of old types}"

    def __call__(self, inputs: TermInputs) -> Tensor:
        tokens = ~(inputs.is_entity | inputs.is_other)
        return losses.cross_entropy(inputs.logits[tokens].log_softmax(1), inputs.gold[tokens])


@dataclass(frozen=True)
class Distil(Term):
    """Kullback-Leibler divergence from the teacher over O tokens. With matched predictions: Effect_O."""

    name: ClassVar[str] = "effect_o"
    role: ClassVar[Role] = "keep_old"
    needs: ClassVar[frozenset[Need]] = frozenset({"teacher"})
    formula: ClassVar[str] = (
        r"\sum_{c \in \{O\} \cup \text{old}} q_c (\log q_c - \log s_c) \quad \text{mean over O tokens}"
    )
    predictions: Predictions = field(default_factory=OwnPredictions)
    t_student: float = 1.0
    t_teacher: float = 1.0
    hard: bool = False  # the teacher's label instead of its distribution

    def __call__(self, inputs: TermInputs) -> Tensor:
        tokens = inputs.is_other
        logits = _teacher(inputs).logits[tokens]
        if self.hard:
            target = F.one_hot(logits.argmax(1), logits.shape[1]).to(logits)
        else:
            target = (logits / self.t_teacher).softmax(1)
        student = self.predictions.log_probs(inputs, tokens, self.t_student)[:, inputs.roles.kept]
        return losses.distillation(student, target)


@dataclass(frozen=True)
class KeepFeatures(Term):
    """Features stay where the teacher had them: LUCIR's less-forget constraint, PODNet's POD-flat."""

    name: ClassVar[str] = "keep_features"
    role: ClassVar[Role] = "keep_old"
    needs: ClassVar[frozenset[Need]] = frozenset({"teacher", "features"})
    formula: ClassVar[str] = r"1 - \cos(f^{student}_i, f^{teacher}_i) \quad \text{mean over all tokens}"

    def __call__(self, inputs: TermInputs) -> Tensor:
        return losses.feature_distance(
            inputs.features, _present(_teacher(inputs).features, "teacher features")
        )


@dataclass(frozen=True)
class RankOtherAboveNew(Term):
    """LUCIR's inter-class separation, on O tokens instead of reserved old samples."""

    name: ClassVar[str] = "margin_ranking"
    role: ClassVar[Role] = "keep_old"
    needs: ClassVar[frozenset[Need]] = frozenset({"cosines"})
    formula: ClassVar[str] = (
        r"\max(0, m - \cos(h, w_O) + \max_{j \in new} \cos(h, w_j)) \quad \text{mean over O tokens}"
    )
    margin: float = 0.5

    def __call__(self, inputs: TermInputs) -> Tensor:
        cosines = _present(inputs.cosines, "cosines")[inputs.is_other]
        return losses.margin_ranking(
            cosines[:, inputs.roles.other], cosines[:, inputs.roles.new_ids], self.margin
        )


@dataclass(frozen=True)
class ClassifyWithMargin(Term):
    """PODNet's NCA loss on the tokens of the step's types."""

    name: ClassVar[str] = "nca"
    role: ClassVar[Role] = "learn_new"
    needs: ClassVar[frozenset[Need]] = frozenset({"cosines"})
    formula: ClassVar[str] = (
        r"\max\left(0, -\log \frac{e^{\sigma(s_y - m)}}{\sum_{j \ne y} e^{\sigma s_j}}\right)"
        r" \quad \text{mean over E tokens}"
    )
    margin: float = 0.6

    def __call__(self, inputs: TermInputs) -> Tensor:
        tokens = inputs.is_entity
        cosines = _present(inputs.cosines, "cosines")[tokens]
        return losses.nca(cosines, inputs.gold[tokens], _present(inputs.sigma, "sigma"), self.margin)


@dataclass(frozen=True)
class KeepLayers(Term):
    """PODNet's POD-spatial: sums of every layer's hidden states stay close to the teacher's."""

    name: ClassVar[str] = "pod_spatial"
    role: ClassVar[Role] = "keep_old"
    needs: ClassVar[frozenset[Need]] = frozenset({"teacher", "layers"})
    formula: ClassVar[str] = (
        r"\frac1L \sum_l \left( \| \hat u_l - \hat u'_l \| + \| \hat v_l - \hat v'_l \| \right),"
        r"\; u_l = \textstyle\sum_h x_l,\; v_l = \sum_t x_l"
    )

    def __call__(self, inputs: TermInputs) -> Tensor:
        teacher = _teacher(inputs).layers
        if teacher is None or inputs.layers is None:
            raise TrainingError("POD-spatial needs the hidden states of student and teacher.")
        return losses.pod_spatial(inputs.layers, teacher)
