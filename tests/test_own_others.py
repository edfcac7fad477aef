"""Own Others: each definition against loops over plain lists, and what may never happen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle_groups as slow
from cfner.batches.step_data import IGNORE
from cfner.methods import create
from cfner.methods.context import ExampleContext
from cfner.network.decoder import Decoder
from cfner.objective.effects import MatchedPredictions
from cfner.objective.groups import KEEP, REST, weights_of_rare
from cfner.objective.own_others import ClassifyGroups, KeepGroups
from cfner.objective.schedules import Curriculum
from random_groups import GroupStep, plain, random_space, random_step

seeds = st.integers(0, 2**32 - 1)
CLOSE = {"rel": 1e-8, "abs": 1e-9}
ALMOST = {"rel": 1e-6, "abs": 1e-7}  # weights of matches are of single precision
quick = settings(deadline=None, max_examples=120)


def in_words(step: GroupStep, code: int, group: int) -> slow.Target:
    """A target of the package as the oracle says it."""
    if code < 0:
        return {KEEP: slow.KEEP, REST: slow.REST, IGNORE: slow.NOTHING}[code]
    return int(step.groups.members[group, code])


@given(seeds)
@quick
def test_what_each_word_teaches_each_group(seed: int) -> None:
    step = random_step(seed)
    assert step.inputs.group_targets is not None
    assert list(step.groups.numbers) == step.space.groups
    for row, expected in enumerate(step.targets):
        codes = step.inputs.group_targets[row].tolist()
        found = {g: in_words(step, codes[at], at) for at, g in enumerate(step.groups.numbers)}
        assert found == expected


@given(seeds)
@quick
def test_distributions_of_groups(seed: int) -> None:
    step = random_step(seed)
    log_p = step.groups.log_probs(step.inputs.logits.detach())
    for row, word in enumerate(step.words):
        for at, group in enumerate(step.groups.numbers):
            expected = slow.distribution(word.z, word.others, group, step.space)
            real = step.groups.real[at]
            members = step.groups.members[at][real].tolist()
            found = dict(zip(members, log_p[row, at][real].exp().tolist(), strict=True))
            assert found == pytest.approx(expected, **CLOSE)
            assert log_p[row, at][~real].exp().sum() == 0


@given(seeds)
@quick
def test_losses(seed: int) -> None:
    step = random_step(seed)
    current = set(step.current)
    learned = ClassifyGroups()(step.inputs)
    expected = slow.classify(step.words, step.targets, step.space, current)
    assert float(learned.detach()) == pytest.approx(expected, **CLOSE)
    loss = learned
    if step.inputs.teachers:
        kept = KeepGroups()(step.inputs)
        expected = slow.keep(step.words, step.targets, step.space, current)
        assert float(kept.detach()) == pytest.approx(expected, **CLOSE)
        loss = loss + kept
    loss.backward()
    assert torch.isfinite(step.inputs.logits.grad).all()


@given(seeds, st.sampled_from([1.5, 2.0, 4.0]))
@quick
def test_what_the_old_model_finds_may_be_kept_sharper(seed: int, power: float) -> None:
    step = random_step(seed)
    if step.inputs.teachers:
        kept = KeepGroups(sharpen=power)(step.inputs)
        expected = slow.keep(step.words, step.targets, step.space, set(step.current), power=power)
        assert float(kept.detach()) == pytest.approx(expected, **ALMOST)
        kept.backward()
        assert torch.isfinite(step.inputs.logits.grad).all()


@given(seeds, st.sampled_from([0.05, 0.5, 1.0]))
@quick
def test_words_of_rare_types_count_more(seed: int, share: float) -> None:
    step = random_step(seed)
    weights = weights_of_rare(step.inputs.group_targets, share)
    assert ((weights >= 1) & (weights <= 4)).all()
    learned = ClassifyGroups()(replace(step.inputs, group_weights=weights))
    expected = slow.classify(step.words, step.targets, step.space, set(step.current), share=share)
    assert float(learned.detach()) == pytest.approx(expected, **ALMOST)


@given(seeds, st.integers(1, 3), st.sampled_from([0.0, 0.4, 0.9]))
@quick
def test_losses_with_effects(seed: int, k: int, delta: float) -> None:
    step = random_step(seed, k=k, delta=delta)
    if not step.inputs.teachers:
        return
    current = set(step.current)
    learned = ClassifyGroups(predictions=MatchedPredictions(k))(step.inputs)
    expected = slow.classify(step.words, step.targets, step.space, current, matched=True)
    assert float(learned.detach()) == pytest.approx(expected, **ALMOST)
    kept = KeepGroups(predictions=MatchedPredictions(k, None, Curriculum(delta, delta, 1)))(step.inputs)
    expected = slow.keep(step.words, step.targets, step.space, current, step.averaged)
    assert float(kept.detach()) == pytest.approx(expected, **ALMOST)
    (learned + kept).backward()
    assert torch.isfinite(step.inputs.logits.grad).all()


@given(seeds)
@quick
def test_without_matches_the_effects_change_nothing(seed: int) -> None:
    step = random_step(seed, k=2)
    if not step.inputs.teachers:
        return
    nobody = MatchedPredictions(0, None, Curriculum(0.0, 0.0, 1))
    for term in (ClassifyGroups(), KeepGroups()):
        with_effect = replace(
            term, predictions=nobody if isinstance(term, KeepGroups) else MatchedPredictions(0)
        )
        assert torch.equal(with_effect(step.inputs), term(step.inputs))


def test_without_both_effects_it_is_own_other() -> None:
    step = ExampleContext(4, 1)
    plain_terms = create("own-other").objective(step)
    assert create("own-other+cf", without=("effect_e", "effect_o")).objective(step) == plain_terms
    assert create("own-other+cf").objective(step) != plain_terms


@given(seeds)
@quick
def test_a_term_with_no_word_is_an_exact_zero(seed: int) -> None:
    step = random_step(seed, words=0)
    for term in (ClassifyGroups(), *([KeepGroups()] if step.inputs.teachers else [])):
        loss = term(step.inputs)
        assert float(loss.detach()) == 0.0
        loss.backward()


@given(seeds)
@quick
def test_decoding_and_scores(seed: int) -> None:
    draw = np.random.default_rng(seed)
    old, labels, _ = random_space(draw, int(draw.integers(0, 4)))
    for space_of in (old, labels):
        space = plain(space_of)
        z = draw.normal(0, 2, (30, len(space_of)))
        others = draw.normal(0, 2, (30, 1 + max(space_of.group_of)))
        others[:, 0] = z[:, space_of.other_id]
        pairs = list(zip(z.tolist(), others.tolist(), strict=True))
        columns = torch.tensor([slow.columns(*pair, space) for pair in pairs])
        decoder = Decoder(space_of)
        best = decoder.words_alone(columns)
        scores = decoder.scores_of(columns, best)
        expected = [slow.decided(*pair, space) for pair in pairs]
        assert best.tolist() == expected
        for pair, label, score in zip(pairs, expected, scores.tolist(), strict=True):
            assert 0 <= score <= 1
            if label != space.other:
                assert score == pytest.approx(slow.score(*pair, label, space), rel=1e-4, abs=1e-5)


@given(seeds)
@quick
def test_the_margin_is_where_a_label_changes(seed: int) -> None:
    """No word whose label a small change of its columns changes has a large margin."""
    draw = np.random.default_rng(seed)
    _, labels, _ = random_space(draw, 3)
    decoder = Decoder(labels)
    columns = torch.tensor(draw.normal(0, 2, (40, len(labels))), dtype=torch.float32)
    moved = columns + torch.tensor(draw.uniform(-0.02, 0.02, columns.shape), dtype=torch.float32)
    changed = decoder.words_alone(columns) != decoder.words_alone(moved)
    assert (decoder.margin(columns)[changed] <= 0.02).all()
    assert (decoder.margin(columns) >= 0).all()
