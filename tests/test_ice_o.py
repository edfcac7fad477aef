"""ICE-O: its loss beside a slow transcription, and what its paper claims: no classifier drifts."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from cfner.batches.loader import collate
from cfner.corpus.corpus import Corpus
from cfner.stream.stream import TaskStream
from cfner.tagger import ContinualTagger
from cfner.training.loop import BatchLosses
from check_method import Subject, columns_of, prepared_step


@pytest.fixture(scope="module")
def subject(tiny_encoder: Path, tiny_corpus: Corpus) -> Subject:
    stream = TaskStream.split(tiny_corpus, first=2, per_step=1, min_mentions=1)
    return Subject("ice-o", tiny_encoder, stream)


def learned(subject: Subject, steps: int) -> ContinualTagger:
    tagger = subject.tagger(epochs=2)
    for number in range(steps):
        tagger.learn(subject.step(number))
    return tagger


@pytest.mark.parametrize("steps", [1, 2])
def test_the_loss_is_over_the_steps_labels_and_a_constant(steps: int, subject: Subject) -> None:
    tagger = learned(subject, steps)
    data, new = prepared_step(tagger).data, prepared_step(tagger).roles.new
    columns = columns_of(tagger, data.sentences).tolist()
    expected = []
    for row, gold in zip(columns, data.gold.tolist(), strict=True):
        scores = {0: 0.0, **{label: row[label] for label in new}}  # O's is the constant 0
        expected.append(math.log(sum(math.exp(z) for z in scores.values())) - scores[gold])
        assert row[0] == 0.0
    network = tagger.model.network
    losses, _ = BatchLosses(network, network, prepared_step(tagger), tagger.config).losses(
        collate(data.text, range(data.text.windows)), 1
    )
    assert losses["classify"].item() == pytest.approx(np.mean(expected), rel=1e-4)


def test_nothing_that_was_learned_before_changes_by_a_bit(subject: Subject) -> None:
    tagger = learned(subject, 1)
    test = subject.stream.test[:5]
    for number in (1, 2):
        before = columns_of(tagger, test)
        body = {key: value.clone() for key, value in tagger.model.network.body.state_dict().items()}
        tagger.learn(subject.step(number))
        after = columns_of(tagger, test)
        assert torch.equal(after[:, : before.shape[1]], before)
        assert all(torch.equal(v, body[k]) for k, v in tagger.model.network.body.state_dict().items())
        assert after.shape[1] > before.shape[1] and bool((after[:, before.shape[1] :] != 0).any())


def test_more_data_for_a_type_trains_its_rows_alone(subject: Subject) -> None:
    tagger = learned(subject, 2)
    before = tagger.model.network.head.weight.detach().clone()
    ids = tagger.model.labels.ids_of(subject.stream[1].types)
    tagger.learn(subject.step(1))
    moved = (tagger.model.network.head.weight != before).any(1).nonzero()[:, 0]
    assert set(moved.tolist()) == set(ids)
