"""IS3: its terms beside slow transcriptions, prototypes saved with the model, and what its paper claims."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from cfner.corpus.corpus import Corpus
from cfner.errors import ModelError
from cfner.methods.is3 import PROTOTYPES, ClassifyDebiased, ClassifyPrototypes, prototypes
from cfner.network.head import CosineHead, Head, LinearHead
from cfner.objective.terms import LabelRoles, TermInputs
from cfner.practice.history.relabel import rename
from cfner.stream.stream import TaskStream
from cfner.tagger import ContinualTagger
from check_method import Subject
from made_steps import seal

OLD, NEW, LABELS = (1, 2), (3, 4), 5


def inputs_of(head: Head, features: Tensor, gold: list[int]) -> TermInputs:
    roles = LabelRoles(0, OLD, NEW, LABELS)
    return TermInputs(head(features), features, torch.tensor(gold), torch.arange(len(gold)), roles, head=head)


def gradients(
    head: Head, features: Tensor, gold: list[int], grad_weight: float
) -> tuple[float, list[Tensor]]:
    loss = ClassifyDebiased(grad_weight=grad_weight)(inputs_of(head, features, gold))
    return loss.item(), list(torch.autograd.grad(loss, [*head.parameters(), features]))


@pytest.mark.parametrize("kind", [CosineHead, LinearHead])
def test_the_gradient_of_old_rows_is_scaled_and_nothing_else(kind: type[Head]) -> None:
    torch.manual_seed(0)
    head = kind(6, LABELS).double()
    torch.nn.init.normal_(head.weight)
    features = torch.randn(7, 6, dtype=torch.float64, requires_grad=True)
    gold = [0, 3, 4, 3, 0, 4, 3]
    expected = []
    for row, label in zip(head(features).tolist(), gold, strict=True):
        if label:
            expected.append(math.log(sum(math.exp(z - row[label]) for z in row)))
    value, ours = gradients(head, features, gold, 0.6)
    assert value == pytest.approx(np.mean(expected))
    entities = [1, 2, 3, 5, 6]
    plain = torch.nn.functional.cross_entropy(head(features)[entities], torch.tensor(gold)[entities])
    wanted = list(torch.autograd.grad(plain, [*head.parameters(), features]))
    for name, one, reference in zip([*dict(head.named_parameters()), "features"], ours, wanted, strict=True):
        if name in {"weight", "bias"}:
            reference[list(OLD)] *= 0.6
        torch.testing.assert_close(one, reference)


def test_a_new_entity_moves_old_rows_less() -> None:
    """What the paper claims of its loss: old types are pushed away less by what is new."""
    torch.manual_seed(1)
    head = LinearHead(6, LABELS)
    features = torch.randn(5, 6, requires_grad=True)
    pushed = [
        gradients(head, features, [3, 3, 4, 4, 3], w)[1][0][list(OLD)].norm().item() for w in (0, 0.5, 1)
    ]
    assert pushed[0] == 0 and pushed[1] == pytest.approx(pushed[2] / 2, rel=1e-5)


def test_prototypes_are_means_of_normalised_features_and_the_old_ones_stay() -> None:
    draw = np.random.default_rng(0)
    features, gold = draw.normal(size=(9, 3)), [0, 1, 3, 3, 4, 1, 0, 4, 4]
    before = torch.tensor([[0.0] * 3, [1.0, 2, 3], [4.0, 5, 6]], dtype=torch.float64)
    found = prototypes(before, torch.tensor(features), torch.tensor(gold), (3, 4), 6)
    for label in range(3):
        assert found[label].tolist() == before[label].tolist()
    for label in (3, 4):
        words = [features[i] / math.sqrt(sum(features[i] ** 2)) for i in range(9) if gold[i] == label]
        assert found[label].tolist() == pytest.approx(list(np.mean(words, axis=0)))
    assert found[5].tolist() == [0.0] * 3


@pytest.mark.parametrize("kept", [None, [1], [1, 2]])
def test_the_head_is_asked_for_the_prototypes_of_old_labels(kept: list[int] | None) -> None:
    torch.manual_seed(2)
    head = LinearHead(6, LABELS)
    inputs = inputs_of(head, torch.randn(2, 6), [0, 3])
    rows = torch.zeros(4, 6)
    rows[[1, 2, 3]] = torch.randn(3, 6)
    if kept is not None:
        rows[[label for label in (1, 2) if label not in kept]] = 0
        inputs = replace(inputs, parts={PROTOTYPES: rows})
    losses = []
    for label in kept or []:
        z = [
            sum(w * x for w, x in zip(row, rows[label].tolist(), strict=True)) for row in head.weight.tolist()
        ]
        losses.append(math.log(sum(math.exp(value) for value in z)) - z[label])
    loss = ClassifyPrototypes()(inputs)
    assert loss.requires_grad
    assert loss.item() == pytest.approx(np.mean(losses) if losses else 0.0, rel=1e-5)


@pytest.fixture(scope="module")
def subject(tiny_encoder: Path, tiny_corpus: Corpus) -> Subject:
    stream = TaskStream.split(tiny_corpus, first=2, per_step=1, min_mentions=1)
    return Subject("is3", tiny_encoder, stream)


def test_prototypes_are_saved_with_the_model_and_the_next_step_goes_on_from_them(
    subject: Subject, tmp_path: Path
) -> None:
    tagger = subject.tagger(epochs=1)
    tagger.learn(subject.step(0))
    first = tagger.model.network.parts[PROTOTYPES].clone()
    assert bool(first[1:].any(1).all()) and not bool(first[0].any())  # none for O
    tagger.save(tmp_path / "model")
    assert json.loads((tmp_path / "model/steps/0001/step.json").read_text())["format"] == 6
    rename(tmp_path / "model", tagger.types[0], "renamed")
    loaded = ContinualTagger.load(tmp_path / "model")
    assert torch.equal(loaded.model.network.parts[PROTOTYPES], first)
    for one in (tagger, loaded):
        step = subject.step(1)
        if one is loaded:
            step = replace(step, known=("renamed", *step.known[1:]))
        one.learn(step)
        assert torch.equal(one.model.network.parts[PROTOTYPES][: len(first)], first)
    assert torch.equal(tagger.model.network.head.weight, loaded.model.network.head.weight)


@pytest.mark.parametrize("parts", [{"a.b": [2, 2]}, {PROTOTYPES: [10**9, 10**9]}, {PROTOTYPES: "many"}])
def test_a_folder_that_says_something_else_of_its_parts_is_refused(
    parts: object, subject: Subject, tmp_path: Path
) -> None:
    tagger = subject.tagger(epochs=1)
    tagger.learn(subject.step(0))
    tagger.save(tmp_path / "model")
    folder = tmp_path / "model/steps/0001"
    facts = json.loads((folder / "labels.json").read_text())
    (folder / "labels.json").write_text(json.dumps(facts | {"parts": parts}))
    seal(folder)
    with pytest.raises(ModelError):
        ContinualTagger.load(tmp_path / "model")
