"""What each method decides for a step, as its training sees it. The rules have oracles of their own; here is
that the methods apply them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from cfner.corpus.corpus import Corpus
from cfner.methods import IGNORE, KEEP, create
from cfner.methods.context import ExampleContext
from cfner.methods.cpfd import KeepAttention
from cfner.methods.rdp import prototypical_labels
from cfner.stream.step import Step
from cfner.stream.stream import TaskStream
from cfner.tagger import ContinualTagger
from cfner.training.prepared_step import PreparedStep
from cfner.training.reminders import chosen
from check_method import Subject, prepared_step
from random_steps import Shape, random_step

Second = Callable[..., PreparedStep]


@pytest.fixture
def stream(tiny_corpus: Corpus) -> TaskStream:
    return TaskStream.split(tiny_corpus, first=2, per_step=1, min_mentions=1)


@pytest.fixture
def second(stream: TaskStream, tiny_encoder: Path) -> Second:
    """The second step of a method, as it was trained, with unlabelled text."""

    def made(name: str, without: tuple[str, ...] = (), **parameters: Any) -> PreparedStep:
        tagger = Subject(name, tiny_encoder, stream, without, parameters).tagger(epochs=6)
        tagger.learn(replace(stream[0], dev=()))
        text = tuple(sentence.only(()) for sentence in stream.test)
        tagger.learn(replace(stream[1], dev=(), unlabelled=text))
        return prepared_step(tagger)

    return made


def new_group(step: PreparedStep) -> tuple[Tensor, Tensor]:
    """(the targets of the new type's group; which words are unlabelled)."""
    assert step.targets.groups is not None and step.groups is not None
    column = int(step.groups.row_of[step.roles.new[0]])
    return step.targets.groups[:, column], ~step.annotated


@pytest.mark.parametrize("name", ["own-other", "own-other+cf", "experts"])
def test_words_that_the_old_model_is_sure_of_are_negatives_of_the_new_type(name: str, second: Second) -> None:
    with_, unlabelled = new_group(second(name, sure=0.5, refines=1.0))
    assert set(with_[unlabelled].tolist()) == {IGNORE, 0}  # 0 is the group's Other
    without, unlabelled = new_group(second(name, ("negatives",), sure=0.5, refines=1.0))
    assert set(without[unlabelled].tolist()) == {IGNORE}


def test_exclusive_types(second: Second) -> None:
    def of_new_entities(exclusive: bool) -> set[int]:
        step = second("own-other", exclusive=exclusive, refines=1.0)
        assert step.targets.groups is not None and step.groups is not None
        old = [int(step.groups.row_of[label]) for label in step.roles.old]
        return set(step.targets.groups[step.roles.is_new[step.data.gold]][:, old].flatten().tolist())

    assert of_new_entities(False) == {KEEP} and of_new_entities(True) == {0}


def test_groups_by_type_or_by_step(stream: TaskStream, second: Second) -> None:
    by_type, by_step = (second("own-other", groups=groups).groups for groups in ("type", "step"))
    assert by_type is not None and by_step is not None
    assert [len(found.numbers) for found in (by_type, by_step)] == [len(stream[1].types_so_far), 2]


def test_words_of_rare_types_weigh_more_unless_they_should_not(second: Second) -> None:
    weights = second("own-other", rare=1.0).targets.group_weights
    assert weights is not None and bool((weights > 1).any()) and float(weights.max()) <= 4
    assert second("own-other", rare=0.0).targets.group_weights is None


def test_effects_match_words_of_one_group(second: Second) -> None:
    step = second("own-other+cf")
    assert step.bank is not None and step.groups is not None and step.teacher is not None
    table, gold = step.bank.table, step.data.gold
    given_label = step.roles.kept[step.teacher.logits.argmax(1).cpu()]
    group = step.groups.row_of[torch.where(step.roles.is_new[gold], gold, given_label)]
    pairs = [
        (int(group[ref]), int(group[table.refs[neighbour]]))
        for ref, row in zip(table.refs.tolist(), table.neighbours.tolist(), strict=True)
        for neighbour in row
        if neighbour >= 0
    ]
    assert len({anchor for anchor, _ in pairs}) > 1  # words of several groups are matched
    assert all(anchor == matched for anchor, matched in pairs)


def test_joint_own_sees_each_slice_with_its_own_labels_alone(stream: TaskStream, tiny_encoder: Path) -> None:
    tagger = Subject("joint-own", tiny_encoder, stream).tagger(epochs=1)
    for number in range(2):
        tagger.learn(replace(stream[number], dev=()))
    data, labels = prepared_step(tagger).data, tagger.model.labels
    assert [part.annotated for part in data.slices] == [frozenset(stream[n].types) for n in range(2)]
    for number, part in enumerate(data.slices):
        found = {labels.type_of(int(label)) for label in data.gold[data.slice_of == number].unique()}
        assert found - {None} == set(stream[number].types)
        assert {span.type for sentence in part.sentences for span in sentence.spans} == part.annotated


def test_more_data_for_a_known_type_keeps_its_expert_where_nothing_is_annotated(
    stream: TaskStream, tiny_encoder: Path
) -> None:
    tagger = Subject("experts", tiny_encoder, stream).tagger(epochs=1)
    tagger.learn(replace(stream[0], dev=()))
    again, others = stream[0].types[:1], stream[0].types[1:]
    more = tuple(sentence.only(again) for sentence in stream.slices[1])
    text = tuple(sentence.only(()) for sentence in stream.test)
    tagger.learn(Step(again, more, known=others, unlabelled=text))
    step = prepared_step(tagger)
    assert [term.name for term in step.objective.terms] == ["classify", "keep"]
    targets, unlabelled = new_group(step)
    assert set(targets[unlabelled].tolist()) == {KEEP}


def test_rdp_labels_words_by_prototypes_and_leaves_gold_alone(second: Second) -> None:
    step = second("rdp")
    assert step.teacher is not None
    gold, given_labels = step.data.gold, step.targets.labels
    (features,) = step.teacher.readings["features"]
    wanted = step.roles.kept[prototypical_labels(features, step.teacher.logits).cpu()]
    other, new = gold == step.roles.other, step.roles.is_new[gold]
    assert torch.equal(given_labels[new], gold[new]) and bool(new.any())
    assert torch.equal(given_labels[other & step.annotated], wanted[other & step.annotated])
    assert bool(torch.isin(wanted[other], torch.tensor(step.roles.old)).any())


def test_attention_maps_of_all_layers_count() -> None:
    step = random_step(Shape(3, tokens=4, in_batch=4))
    real = torch.ones(1, 4)
    maps = [torch.rand(1, 2, 4, 4) for _ in range(3)]

    def loss(changed: int | None) -> float:
        teacher = [m + (0.5 if layer == changed else 0.0) for layer, m in enumerate(maps)]
        name = KeepAttention.probes[0].name
        view = replace(step.inputs.old, readings={name: (*teacher, real)})
        inputs = replace(step.inputs, teachers={"old": view}, readings={name: (*maps, real)})
        return float(KeepAttention()(inputs))

    assert loss(None) == 0 and all(loss(layer) > 0 for layer in range(3))


def test_is3_has_the_papers_weights() -> None:
    terms = create("is3", {"distill_weight": 3.0, "pro_weight": 0.4, "grad_weight": 0.7}).objective(
        ExampleContext(2, 1)
    )
    weights = {term.name: term.weight for term in terms.terms}
    assert weights == {"classify_debiased": 1.0, "distil": 3.0, "prototypes": 0.4}
    assert getattr(terms.terms[0], "grad_weight", None) == 0.7
    usual = create("is3").parameters
    assert (usual.distill_weight, usual.pro_weight, usual.grad_weight) == (2.0, 0.1, 0.6)


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=3), max_size=12), st.data(), st.integers(1, 4))
def test_sentences_that_remind_are_chosen_until_every_type_is_mentioned_enough(
    found: list[list[str]], data: st.DataObject, enough: int
) -> None:
    mentions = [Counter(types) for types in found]
    wanted = data.draw(st.integers(0, len(mentions)))
    numbers = chosen(mentions, wanted, enough)
    assert len(numbers) == wanted and numbers == sorted(set(numbers))
    total = sum(mentions, Counter[str]())
    have = sum((mentions[i] for i in numbers), Counter[str]())
    needed = sum(min(enough, sum(1 for one in mentions if one[type_])) for type_ in total)
    if wanted >= needed:  # there is room for all types
        assert all(have[type_] >= min(enough, total[type_]) for type_ in total)
    elif wanted and total:  # the rarest type is served first
        rarest = min(total, key=lambda name: (total[name], name))
        assert have[rarest] >= min(enough, total[rarest], wanted)


def test_the_old_model_chooses_sentences_that_mention_old_types(
    stream: TaskStream, tiny_encoder: Path
) -> None:
    tagger = ContinualTagger.from_pretrained(str(tiny_encoder), epochs=8, lr_encoder=2e-3, lr_head=1e-2)
    tagger.learn(replace(stream[0], dev=()))
    found = tagger.find(stream.test)
    text = [sentence.only(()) for sentence in stream.test]
    silent = [sentence for sentence, spans in zip(text, found, strict=True) if not spans]
    assert silent and len(silent) < len(text)
    short = stream[1].train[:5]
    many = tuple(silent[:1] * 10 + [s for s in text if s not in silent][:5])
    tagger.learn(replace(stream[1], train=short, dev=(), unlabelled=many))
    (_, reminders) = prepared_step(tagger).data.slices
    assert reminders.unlabelled and set(reminders.sentences) == set(many[10:])
