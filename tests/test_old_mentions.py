"""What the old model's claims teach the new types, and the other way round: refinements are left alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle_groups as slow
from cfner.batches.step_data import IGNORE
from cfner.methods.old_mentions import OldMentions
from cfner.objective.groups import KEEP, LabelGroups
from cfner.objective.teacher import WordScores
from cfner.stream.labels import LabelSpace
from cfner.training.preparation import roles_of
from random_groups import GroupStep, random_step

seeds = st.integers(0, 2**32 - 1)
quick = settings(deadline=None, max_examples=120)


def mentions(step: GroupStep, refines: float) -> OldMentions:
    ctx: Any = SimpleNamespace(
        labels=step.labels, groups=step.groups, data=step.data, roles=step.inputs.roles, current=step.current
    )
    return OldMentions(ctx, step.scores, refines)


def old_types(step: GroupStep) -> list[str]:
    return [type_ for type_ in step.labels.types if type_ not in step.current]


@given(seeds, st.sampled_from([0.3, 0.6, 0.9]), st.sampled_from([0.0, 0.05, 0.5, 1.0]))
@quick
def test_sure_negatives(seed: int, sure: float, refines: float) -> None:
    """In text that says nothing of a new group, a word that is surely of a type that the group does not
    refine is its Other. All else stays as it is.
    """
    step = random_step(seed, words=20)
    taught = step.inputs.group_targets
    if not step.inputs.teachers or taught is None:
        return
    found = mentions(step, refines).as_negatives(taught, sure)
    for row, word in enumerate(step.words):
        for at, group in enumerate(step.groups.numbers):
            expected = int(taught[row, at])
            if step.targets[row][group] == slow.NOTHING and any(
                slow.sureness(word, type_, step.space) > sure
                and not slow.refined(step.words, type_, group, step.space, refines)
                for type_ in old_types(step)
            ):
                expected = 0
            assert int(found[row, at]) == expected


@given(seeds, st.sampled_from([0.0, 0.05, 0.5, 1.0]))
@quick
def test_exclusive(seed: int, refines: float) -> None:
    """A word of a new group is the Other of every old group none of whose types is refined by it."""
    step = random_step(seed, words=20)
    taught = step.inputs.group_targets
    if not step.inputs.teachers or taught is None:
        return
    found = mentions(step, refines).exclusive(taught)
    new = [g for g, is_new in zip(step.groups.numbers, step.groups.is_new.tolist(), strict=True) if is_new]
    for row, word in enumerate(step.words):
        mine = step.space.group_of[word.gold]
        for at, group in enumerate(step.groups.numbers):
            expected = int(taught[row, at])
            if word.gold != step.space.other and mine in new and step.targets[row][group] == slow.KEEP:
                types = {step.space.type_of[c] for c in step.space.labels(group)} & set(old_types(step))
                refines_one = any(
                    slow.refined(step.words, type_, mine, step.space, refines) for type_ in types if type_
                )
                expected = expected if refines_one else 0
            assert int(found[row, at]) == expected


def test_a_type_inside_a_type_inside_a_type() -> None:
    """CITY is inside PLACE, and to the old model a capital is a CITY more than a PLACE. It is still both, so
    neither is a negative of CAPITAL; PERSON is.
    """
    old = LabelSpace.start().grown(["PLACE", "CITY", "PERSON"], "type")
    labels = old.grown(["CAPITAL"], "type")
    ids = {type_: labels.ids_of([type_])[0] for type_ in labels.types}
    gold = torch.tensor([ids["CAPITAL"]] * 10 + [0] * 4)
    roles = roles_of(labels, ["CAPITAL"], len(old), own_others=True)
    groups = LabelGroups.of(labels.group_of, roles)
    columns = torch.full((14, len(labels)), -9.0)
    columns[:, 0] = 0.0
    columns[:10, ids["PLACE"]], columns[:10, ids["CITY"]] = 4.0, 6.0
    for row, type_ in ((10, "PLACE"), (11, "CITY"), (12, "PERSON")):
        columns[row, ids[type_]] = 6.0
    kept = columns[:, roles.kept]
    scores = WordScores(
        kept, kept.argmax(1) != 0, kept.softmax(1).amax(1), torch.arange(0), torch.empty(0, 1)
    )
    ctx: Any = SimpleNamespace(
        labels=labels, groups=groups, roles=roles, current=["CAPITAL"], data=SimpleNamespace(gold=gold)
    )
    found = OldMentions(ctx, scores, 0.05)
    taught = torch.full((14, 4), KEEP)
    taught[:, 3] = IGNORE
    assert found.as_negatives(taught, 0.8)[:, 3].tolist()[10:] == [IGNORE, IGNORE, 0, IGNORE]
    assert found.exclusive(taught)[0].tolist() == [KEEP, KEEP, 0, IGNORE]
