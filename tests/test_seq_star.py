"""SEQ*: its loss beside a slow transcription, and what its paper claims: nothing old moves but O."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cfner.corpus.corpus import Corpus
from cfner.errors import ConfigError
from cfner.methods import create, register
from cfner.methods.seq_star import SeqStar
from cfner.stream.stream import TaskStream
from check_method import Subject, columns_of
from random_steps import Shape, random_step


@given(st.integers(0, 1000))
@settings(max_examples=30)
def test_its_loss_is_plain_cross_entropy_over_all_words_and_labels(seed: int) -> None:
    step = random_step(Shape(seed, old_types=2, new_types=2, tokens=9, in_batch=7))
    expected = []
    for row, gold in zip(step.inputs.logits.tolist(), step.inputs.gold.tolist(), strict=True):
        expected.append(math.log(sum(math.exp(z - row[gold]) for z in row)))
    (loss,) = step.losses("seq-star").values()
    assert loss.item() == pytest.approx(np.mean(expected), rel=1e-9)


@pytest.mark.parametrize("freeze_other", [False, True])
def test_after_the_first_step_no_score_of_an_old_type_changes_by_a_bit(
    freeze_other: bool, tiny_encoder: Path, tiny_corpus: Corpus
) -> None:
    stream = TaskStream.split(tiny_corpus, first=2, per_step=1, min_mentions=1)
    subject = Subject("seq-star", tiny_encoder, stream)
    tagger = subject.tagger(epochs=2, freeze_other=freeze_other)
    pretrained = {k: v.clone() for k, v in tagger.model.network.body.state_dict().items()}
    tagger.learn(subject.step(0))
    assert tagger.model.network.head.kind == "linear"  # whatever the setting is
    warmed_up = tagger.model.network.body.state_dict()
    assert any(not torch.equal(v, pretrained[k]) for k, v in warmed_up.items())
    before = columns_of(tagger, stream.test[:5])
    tagger.learn(subject.step(1))
    after = columns_of(tagger, stream.test[:5])
    assert torch.equal(after[:, 1 : before.shape[1]], before[:, 1:])
    assert torch.equal(after[:, 0], before[:, 0]) == freeze_other


def test_it_keeps_the_scores_of_a_model_with_a_cosine_head(tiny_encoder: Path, tiny_corpus: Corpus) -> None:
    """Another method began; up to the last bits, since the head's product has another shape."""
    stream = TaskStream.split(tiny_corpus, first=2, per_step=1, min_mentions=1)
    tagger = Subject("cfner", tiny_encoder, stream).tagger(epochs=2)
    tagger.learn(replace(stream[0], dev=()))
    assert tagger.model.network.head.kind == "cosine"
    before = columns_of(tagger, stream.test[:5])
    tagger.method = create("seq-star")
    tagger.learn(replace(stream[1], dev=()))
    after = columns_of(tagger, stream.test[:5])[:, 1 : before.shape[1]]
    torch.testing.assert_close(after, before[:, 1:], rtol=1e-6, atol=1e-5)


def test_a_head_of_ones_own_needs_a_first_step_of_ones_own(methods_as_before: None) -> None:
    class Shared(SeqStar):
        name = "seq-shared"
        plain_first_step = True

    with pytest.raises(ConfigError, match="shares"):
        register(Shared)
