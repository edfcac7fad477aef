"""``cfner explain`` where types have Others of their own: every number is one group's."""

from __future__ import annotations

from pathlib import Path

import pytest

import oracle
from cfner.network.inference import outputs
from cfner.practice.explain.explain import explain_step
from cfner.practice.explain.explanation import Explanation
from cfner.practice.explain.page import page
from cfner.store.open import open_model
from cfner.stream.stream import TaskStream
from cfner.tagger import ContinualTagger

ALL = 100  # labels shown: more than there are


def explained(folder: Path, stream: TaskStream, method: str, sentence: int = 0) -> Explanation:
    teacher, student = (ContinualTagger.load(folder, n, method=method) for n in (1, 2))
    return explain_step(teacher, student, stream[1], sentence=sentence, top=ALL)


@pytest.mark.parametrize("method", ["own-other", "own-other+cf"])
@pytest.mark.parametrize("folder", ["own_others", "checkpoint_and_own"])
def test_probabilities_are_those_of_a_group(
    folder: str, method: str, request: pytest.FixtureRequest, tiny_stream: TaskStream
) -> None:
    path = request.getfixturevalue(folder)
    model = open_model(path)
    text = model.encode(tiny_stream[1].train[:1])
    ((batch, out),) = outputs(model.network, text)
    columns = {int(ref): row for ref, row in zip(batch.refs, out.logits.tolist(), strict=True)}
    e = explained(path, tiny_stream, method)
    together = "animal, city" if folder == "checkpoint_and_own" else None
    for token in e.tokens:
        # words of a new type are shown in its group, others in that of the teacher's claim
        group = token.student.group
        assert group == (token.label[2:] if token.label != "O" else token.teacher.group)
        assert group in {"animal", "city", "dish", "person", together}
        ids = [model.labels.other_id, *model.labels.ids_of((group or "").split(", "))]
        shares = oracle.softmax([columns[token.position][i] for i in ids])
        expected = {model.labels.labels[i]: p for i, p in zip(ids, shares, strict=True)}
        assert {share.label: share.p for share in token.student.top} == pytest.approx(expected, abs=1e-4)
        assert token.student.rest == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize("method", ["own-other", "own-other+cf"])
def test_a_word_has_a_loss_in_every_group_that_it_teaches(
    own_others: Path, tiny_stream: TaskStream, method: str
) -> None:
    e = explained(own_others, tiny_stream, method)
    for token in e.tokens:
        roles = {loss.group: loss.role for loss in token.losses}
        assert roles == {
            "animal": "keep_old",
            "city": "keep_old",
            "dish": "learn_new",
            "person": "learn_new",
        }
        for loss in token.losses:
            assert loss.value is not None and loss.value >= 0 and loss.title.endswith(f"({loss.group})")
        matched = {loss.group for loss in token.losses if loss.matched}
        assert matched == ({token.student.group} if token.selected else set())
        if token.averaged is not None:
            assert token.averaged.group == token.student.group
            assert all(match.student.group == token.student.group for match in token.matches)
    if method == "own-other+cf":
        assert any(token.selected for token in e.tokens)
    shown = page(e)
    assert "decided independently" in shown
    assert (", among " in shown) == (method == "own-other+cf")  # only anchors have cards


def test_a_model_with_one_o_says_nothing_of_groups(two_steps: Path, tiny_stream: TaskStream) -> None:
    e = explained(two_steps, tiny_stream, "cfner")
    assert {token.student.group for token in e.tokens} == {None}
    assert "decided independently" not in page(e)
