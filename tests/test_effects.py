"""Whole objectives against the oracle on random steps; identities between methods; who gets a gradient."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from cfner.errors import ConfigError, TrainingError
from cfner.methods import create, method_names
from cfner.objective.effects import MatchedPredictions, matching_of, with_causal_effect
from cfner.objective.library import ClassifyAll, ClassifyEntities, Distil, KeepFeatures
from cfner.objective.schedules import Curriculum
from cfner.objective.terms import Objective
from random_steps import RandomStep, Shape, random_step, shapes

CLOSE = {"rel": 1e-6, "abs": 1e-6}
quick = settings(deadline=None, max_examples=40)
CAUSAL = ["cfner", "lucir+cf", "self-training+cf"]
ABLATIONS = [
    ("adaptive_weight",),
    ("curriculum",),
    ("curriculum", "adaptive_weight"),
    ("effect_o",),
    ("effect_e",),
    ("effect_e", "effect_o"),
]
weight_lists = st.lists(st.floats(0.01, 1), min_size=2, max_size=5).map(
    lambda values: tuple(sorted((value / sum(values) for value in values), reverse=True))
)


def same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Equal to the last bit."""
    return torch.equal(a, b)


def value(loss: torch.Tensor) -> float:
    return loss.detach().item()


# -- the oracle ------------------------------------------------------------------------------------------


def test_the_oracle_knows_the_papers_family() -> None:
    assert set(oracle.OBJECTIVES) <= set(method_names())  # later methods have oracles of their own


@pytest.mark.parametrize("name", sorted(oracle.OBJECTIVES))
@given(shape=shapes())
@quick
def test_total_objective(name: str, shape: Shape) -> None:
    """Many shapes: no token, one token, all O, all of one label, no old type, pools smaller than K."""
    step = random_step(shape)
    parameters = step.causal if name in CAUSAL else {}
    expected = oracle.OBJECTIVES[name](step.batch)
    assert value(step.total(name, **parameters)) == pytest.approx(expected, **CLOSE)


@pytest.mark.parametrize("without", ABLATIONS, ids="+".join)
@given(shape=shapes())
@quick
def test_ablations(without: tuple[str, ...], shape: Shape) -> None:
    step = random_step(shape)
    expected = oracle.cfner(step.batch, without=frozenset(without))
    assert value(step.total("cfner", without, **step.causal)) == pytest.approx(expected, **CLOSE)


@given(shape=shapes(), weights=weight_lists)
@quick
def test_given_weights(shape: Shape, weights: tuple[float, ...]) -> None:
    """Any non-increasing weights; also where a pool has fewer tokens than there are weights."""
    step = random_step(replace(shape, k=len(weights) - 1, weights=weights))
    expected = oracle.cfner(step.batch, given=weights)
    assert value(step.total("cfner", **step.causal)) == pytest.approx(expected, **CLOSE)


@given(shapes(), st.sampled_from([0.5, 1.0, 2.0, 5.0]), st.sampled_from([0.5, 1.0, 2.0]), st.floats(0, 9))
@quick
def test_temperatures_and_weight(shape: Shape, t_student: float, t_teacher: float, base: float) -> None:
    step = random_step(shape)
    given = {"t_student": t_student, "t_teacher": t_teacher}
    ours = step.total("cfner", lambda_base=base, **given, **step.causal)
    assert value(ours) == pytest.approx(oracle.cfner(step.batch, base, **given), **CLOSE)
    ours = step.total("extendner", lambda_base=base, **given)
    assert value(ours) == pytest.approx(oracle.extendner(step.batch, base, **given), **CLOSE)


@given(shapes())
@quick
def test_each_effect_alone(shape: Shape) -> None:
    step = random_step(shape)
    losses = step.losses("cfner", **step.causal)
    assert value(losses["effect_e"]) == pytest.approx(oracle.effect_e(step.batch.entities), **CLOSE)
    expected = oracle.effect_o(step.batch.tokens, step.batch.kept, shape.delta)
    assert value(losses["effect_o"]) == pytest.approx(expected, **CLOSE)


def test_the_random_steps_reach_what_they_should() -> None:
    """The comparisons above would prove little if no drawn token were selected, matched, or alone."""
    matches, selected = set(), 0
    for seed in range(30):
        step = random_step(Shape(seed, tokens=1 + seed % 14, in_batch=1 + seed % 14))
        matches |= {len(token.matched) for token in step.batch.entities}
        selected += sum(oracle.defined_other(token, step.batch.kept) for token in step.batch.tokens)
    assert matches == {0, 1, 2, 3}
    assert selected > 20


# -- identities ------------------------------------------------------------------------------------------


@given(shapes())
@quick
def test_cfner_without_both_effects_is_extendner(shape: Shape) -> None:
    """At the same weight and temperatures, to the last bit: in values and in gradients."""
    step = random_step(shape)
    ours = step.total("cfner", ("effect_e", "effect_o"), **step.causal)
    theirs = step.total("extendner", lambda_base=2.0, adaptive=True, t_student=1.0)
    assert same(ours, theirs)
    logits = step.inputs.logits
    assert same(torch.autograd.grad(ours, logits)[0], torch.autograd.grad(theirs, logits)[0])


@pytest.mark.parametrize("name", CAUSAL)
@given(shape=shapes(delta=1.0), certain=st.booleans())
@quick
def test_delta_of_1_is_plain_distillation(name: str, shape: Shape, certain: bool) -> None:
    """No confidence is greater than 1, not even that of a teacher that rounds to 1: no token is selected."""
    step = random_step(replace(shape, sharpness=1000.0 if certain else shape.sharpness))
    ours = step.losses(name, **step.causal)["effect_o"]
    assert same(ours, step.losses(name, ("effect_o",), **step.causal)["distil"])


@pytest.mark.parametrize("name", CAUSAL)
@given(shape=shapes(k=0))
@quick
def test_k_of_0_takes_both_effects_away(name: str, shape: Shape) -> None:
    step = random_step(shape)
    ours, theirs = (step.total(name, parts, **step.causal) for parts in ((), ("effect_e", "effect_o")))
    assert same(ours, theirs)
    assert matching_of(step.objective(name, step.causal)) is None


@pytest.mark.parametrize("name", CAUSAL)
@pytest.mark.parametrize("old_types", [1, 4, 9])
def test_without_adaptive_weight_lambda_is_its_base(name: str, old_types: int) -> None:
    facts = random_step(Shape(0, old_types=old_types)).facts
    for without, expected in ((("adaptive_weight",), 3.0), ((), 3.0 * old_types**0.5)):
        terms = create(name, {"lambda_base": 3.0}, without).objective(facts).terms
        assert [term.weight for term in terms if term.name == "effect_o"] == [pytest.approx(expected)]


@pytest.mark.parametrize("name", CAUSAL)
@given(shape=shapes())
@quick
def test_without_curriculum_delta_is_0_from_the_start(name: str, shape: Shape) -> None:
    step = random_step(shape)
    given = {"k": shape.k, "delta_1": 1.0, "delta_m": 0.4, "m": 10}
    ours = step.total(name, ("curriculum",), **given)
    assert same(ours, step.total(name, k=shape.k, delta_1=0.0, delta_m=0.0))


@given(shapes())
@quick
def test_a_token_alone_in_its_pool_weighs_1(shape: Shape) -> None:
    step = random_step(replace(shape, tokens=1, in_batch=1, delta=0.0))
    alone, plain = step.losses("cfner", **step.causal), step.losses("cfner", ("effect_e", "effect_o"))
    for effect, term in (("effect_e", "classify"), ("effect_o", "distil")):
        assert value(alone[effect]) == pytest.approx(value(plain[term]), rel=1e-12, abs=1e-12)


# -- gradients -------------------------------------------------------------------------------------------


def rows_in_package_order(step: RandomStep, gradients: list[list[float]]) -> torch.Tensor:
    wanted = torch.zeros(len(gradients), len(step.to_package), dtype=torch.float64)
    wanted[:, step.to_package] = torch.tensor(gradients, dtype=torch.float64).reshape(len(gradients), -1)
    return wanted


@given(shapes(mix="all_entity", tokens=9))
@quick
def test_only_the_anchor_gets_a_gradient_from_effect_e(shape: Shape) -> None:
    """All anchors and their matches are in the batch: a gradient through a match would show in its row."""
    step = random_step(replace(shape, in_batch=9))
    loss = step.losses("cfner", k=shape.k)["effect_e"]
    (gradient,) = torch.autograd.grad(loss, step.inputs.logits)
    wanted = rows_in_package_order(step, [oracle.effect_e_gradient(t) for t in step.batch.tokens]) / 9
    torch.testing.assert_close(gradient, wanted, rtol=1e-5, atol=1e-7)


@given(
    shapes(mix="all_other", tokens=9, delta=0.0, sharpness=3.0, unlabelled=0.0), st.sampled_from([1.0, 2.0])
)
@quick
def test_only_the_anchor_gets_a_gradient_from_effect_o(shape: Shape, temperature: float) -> None:
    step = random_step(replace(shape, in_batch=9))
    loss = step.losses("cfner", t_student=temperature, **step.causal)["effect_o"]
    (gradient,) = torch.autograd.grad(loss, step.inputs.logits)
    rows = [oracle.effect_o_gradient(token, step.batch.kept, temperature) for token in step.batch.tokens]
    torch.testing.assert_close(gradient, rows_in_package_order(step, rows) / 9, rtol=1e-5, atol=1e-7)


def test_the_bank_forgets_the_graph_of_what_it_is_given() -> None:
    step = random_step(Shape(1, mix="all_entity", tokens=8, in_batch=8))
    bank = step.inputs.bank
    assert bank is not None
    weight = torch.ones((), dtype=torch.float64, requires_grad=True)  # stands for the student
    bank.update(step.inputs.refs, step.inputs.logits * weight)
    assert not bank.logits.requires_grad
    frozen = replace(step.inputs, logits=step.inputs.logits.detach())
    loss = step.objective("cfner", {}).losses(frozen)["effect_e"]
    assert not loss.requires_grad  # nothing but the anchor's own scores could have carried a gradient


@pytest.mark.parametrize("spread", [50.0, 500.0, 5000.0])
def test_certain_predictions_keep_losses_and_gradients_finite(spread: float) -> None:
    """A student that is sure of a wrong label underflows to probability 0."""
    for seed in range(5):
        step = random_step(Shape(seed, sharpness=spread))
        inputs = replace(step.inputs, logits=(step.inputs.logits.detach() * spread).requires_grad_())
        objective = step.objective("cfner", {"delta_1": 0.0})
        total = objective.total(objective.losses(inputs))
        (gradient,) = torch.autograd.grad(total, inputs.logits)
        assert torch.isfinite(total)
        assert torch.isfinite(gradient).all()


# -- the wrapper -----------------------------------------------------------------------------------------


def test_the_wrapper_leaves_the_other_terms_alone() -> None:
    plain = Objective((ClassifyEntities(), Distil(weight=3.0, t_student=2.0), KeepFeatures(weight=5.0)))
    wrapped = with_causal_effect(plain, k=2)
    assert [term.weight for term in wrapped.terms] == [1.0, 3.0, 5.0]
    assert wrapped.terms[2] is plain.terms[2]
    assert isinstance(wrapped.terms[0].predictions, MatchedPredictions)  # type: ignore[attr-defined]
    assert wrapped.terms[1].t_student == 2.0  # type: ignore[attr-defined]
    assert with_causal_effect(plain, effect_e=False, effect_o=False) == plain


@pytest.mark.parametrize("keep", [True, False])
def test_an_effect_with_nothing_to_act_on_is_refused(keep: bool) -> None:
    """Where a combination makes no sense the error says so."""
    objective = Objective((ClassifyEntities(), KeepFeatures()) if keep else (ClassifyAll(), Distil()))
    with pytest.raises(ConfigError, match="Effect_O" if keep else "Effect_E"):
        with_causal_effect(objective)


@pytest.mark.parametrize(
    "weights",
    [(0.5, 0.5), (0.4, 0.4, 0.1, 0.1, 0.0), (0.1, 0.2, 0.3, 0.4), (0.5, 0.3, 0.2, 0.1), (1.2, 0, 0, -0.2)],
)
def test_impossible_weights_are_refused(weights: tuple[float, ...]) -> None:
    with pytest.raises(ConfigError, match="non-increasing"):
        with_causal_effect(Objective((ClassifyEntities(), Distil())), k=3, weights=weights)


def test_effects_without_bank_or_teacher_are_an_error_not_a_fallback() -> None:
    step = random_step(Shape(0))
    objective = step.objective("cfner", {})
    with pytest.raises(TrainingError, match="without matched"):
        objective.losses(replace(step.inputs, bank=None))
    with pytest.raises(TrainingError, match="no teacher"):
        objective.losses(replace(step.inputs, teachers={}))


def test_selection_follows_the_epoch() -> None:
    """In epoch i the tokens selected are those of which the teacher is surer than delta_i."""
    step = random_step(Shape(3, mix="all_other", tokens=14, in_batch=14, sharpness=1.0))
    reading = MatchedPredictions(3, curriculum=Curriculum(1.0, 0.0, 5))
    counts = []
    for epoch in range(1, 7):
        delta = oracle.curriculum_delta(epoch, 1.0, 0.0, 5)
        wanted = [
            oracle.defined_other(token, step.batch.kept) and oracle.confidence(token, step.batch.kept) > delta
            for token in step.batch.tokens
        ]
        assert reading.selected(replace(step.inputs, epoch=epoch)).tolist() == wanted
        counts.append(sum(wanted))
    assert counts[0] == 0
    assert counts == sorted(counts)
    assert counts[-1] > counts[1]


@given(shapes())
@quick
def test_hard_defined_other_is_the_published_codes(shape: Shape) -> None:
    """Selected tokens learn the teacher's label, and their matches speak of O and the old labels alone."""
    step = random_step(shape)
    kept, losses = step.batch.kept, []
    for token in step.batch.tokens:
        if token.gold != oracle.OTHER:
            continue
        s = oracle.softmax(token.student)
        selected = oracle.defined_other(token, kept) and oracle.confidence(token, kept) > shape.delta
        if selected:
            weights = oracle.matched_weights(len(token.matched), shape.weights)
            old = [oracle.softmax([row[label] for label in kept]) for row in token.matched]
            of_all = [[*row, *[0.0] * (len(s) - len(kept))] for row in old]  # new labels come last
            s = oracle.averaged(s, of_all, weights)
        s = oracle.as_the_teacher(token, s, kept)
        q = oracle.teacher_distribution(token, kept, 1.0, hard=selected)
        losses.append(sum(a * (math.log(a) - math.log(s[c])) for a, c in zip(q, kept, strict=True) if a > 0))
    found = step.losses("cfner", defined_other="hard", **step.causal)
    assert value(found["effect_o"]) == pytest.approx(oracle.mean(losses), **CLOSE)
    assert same(found["effect_e"], step.losses("cfner", **step.causal)["effect_e"])


def test_hard_defined_other_is_about_the_effect_alone_and_not_the_default() -> None:
    step = random_step(Shape(3, tokens=14, in_batch=14))
    soft, hard = (step.losses("cfner", defined_other=how, **step.causal) for how in ("soft", "hard"))
    assert same(step.losses("cfner", **step.causal)["effect_o"], soft["effect_o"])
    assert not same(hard["effect_o"], soft["effect_o"])
    without = (step.losses("cfner", ("effect_o",), defined_other=how) for how in ("soft", "hard"))
    assert same(*(losses["distil"] for losses in without))
