"""The causal effect as a plug-in: a term keeps its formula and reads neighbour-averaged predictions.

Conditioning on the old feature (the collider) links old data and new data: tokens that the teacher found
similar share their predictions. Only the anchor gets a gradient; its matches are constants.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from torch import Tensor

from cfner.errors import ConfigError, TrainingError
from cfner.objective.matching import check_weights
from cfner.objective.schedules import Curriculum
from cfner.objective.terms import Objective, OwnPredictions, Term, TermInputs


@dataclass(frozen=True)
class MatchedPredictions:
    """``y_i = W_i p_i + sum_k W_ik p_ik`` for selected tokens, the token's own softmax for the rest.

    Without a curriculum every token of a pool is selected (Effect_E). With one, only defined-other tokens for
    which the teacher's confidence is above the epoch's threshold (Effect_O).
    """

    k: int
    weights: tuple[float, ...] | None = None
    curriculum: Curriculum | None = None
    of_old: bool = False  # whether the softmax of matches is over O and the old labels alone

    def selected(self, inputs: TermInputs) -> Tensor:
        """[W] which tokens read averaged predictions."""
        if self.curriculum is None:
            return inputs.is_entity
        sure = inputs.old.confidence > self.curriculum.threshold(inputs.epoch)
        return inputs.old.defined_other & sure & inputs.is_other

    def log_probs(self, inputs: TermInputs, tokens: Tensor, temperature: float) -> Tensor:
        own = (inputs.logits[tokens] / temperature).log_softmax(1)  # [n, C]
        if self.k == 0:
            return own
        if inputs.bank is None:
            raise TrainingError("A causal effect was used in a step without matched tokens.")
        among = inputs.roles.kept if self.of_old else None
        anchor_weight, matched = inputs.bank.mixture(inputs.refs[tokens], temperature, among)
        # log(W p + m) computed from log p, so that a confident anchor loses no precision
        averaged = torch.logaddexp(own + anchor_weight.log()[:, None], matched.detach().log())
        return torch.where(self.selected(inputs)[tokens][:, None], averaged, own)

    def group_log_probs(self, inputs: TermInputs) -> Tensor:
        """[W, G, M]: averaged in one group only, that of the word's label, which its matches share."""
        own = OwnPredictions().group_log_probs(inputs)
        groups, chosen = inputs.groups, self.selected(inputs)
        if self.k == 0 or groups is None or not bool(chosen.any()):
            return own
        if inputs.bank is None:
            raise TrainingError("A causal effect was used in a step without matched tokens.")
        labels = inputs.gold if self.curriculum is None else inputs.roles.kept[inputs.old.logits.argmax(1)]
        words = chosen.nonzero()[:, 0]
        group = groups.row_of[labels[words]]
        real = groups.real[group]
        anchor_weight, matched = inputs.bank.group_mixture(inputs.refs[words], groups.members[group], real)
        # where a group has fewer members both are log 0; their sum would have no gradient
        anchors = own[words, group].masked_fill(~real, 0.0) + anchor_weight.log()[:, None]
        averaged = torch.logaddexp(anchors, matched.detach().log()).masked_fill(~real, float("-inf"))
        return own.index_put((words, group), averaged)


def with_causal_effect(
    objective: Objective,
    *,
    effect_e: bool = True,
    effect_o: bool = True,
    k: int = 3,
    weights: Sequence[float] | None = None,
    curriculum: Curriculum | None = None,
) -> Objective:
    """The same objective with Effect_E in its learning terms and Effect_O in its keeping terms.

    A term can take an effect if it reads predictions (classification of entities, distillation of
    scores). An effect for which no term fits is an error.
    """
    checked = check_weights(weights, k) if weights is not None else None
    wanted: dict[str, MatchedPredictions] = {}
    if effect_e:
        wanted["learn_new"] = MatchedPredictions(k, checked)
    if effect_o:
        wanted["keep_old"] = MatchedPredictions(k, checked, curriculum or Curriculum(0.0, 0.0, 1))
    for role in wanted:
        if not any(_reads_predictions(term) for term in objective.terms if term.role == role):
            names = ", ".join(term.name for term in objective.terms if term.role == role) or "none"
            raise ConfigError(
                f"{'Effect_E' if role == 'learn_new' else 'Effect_O'} has nothing to act on: no {role} term "
                f"reads the student's predictions (terms: {names}).",
                remedy="Plug CF into a method that classifies entity tokens or distils scores.",
            )
    return Objective(tuple(_with_effect(term, wanted) for term in objective.terms))


def _with_effect(term: Term, wanted: Mapping[str, MatchedPredictions]) -> Term:
    """The term with matched predictions, if it can read them; it is then named after the effect."""
    if term.role not in wanted or not _reads_predictions(term):
        return term
    name = "effect_e" if term.role == "learn_new" else "effect_o"
    # dataclasses.replace checks the field itself; the base class does not declare it
    return cast("Term", replace(cast("Any", term), predictions=wanted[term.role], name=name))


def matching_of(objective: Objective) -> MatchedPredictions | None:
    """How this objective matches tokens, or None if no term reads matched predictions."""
    for term in objective.terms:
        predictions = getattr(term, "predictions", None)
        if isinstance(predictions, MatchedPredictions) and predictions.k:
            return predictions
    return None


def _reads_predictions(term: Term) -> bool:
    return hasattr(term, "predictions")
