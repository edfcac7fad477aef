"""Steps learned with own Others: what stays, what moves, and that other methods are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from cfner.corpus.corpus import Corpus
from cfner.errors import ConfigError
from cfner.methods import create
from cfner.network.inference import outputs
from cfner.network.network import Network
from cfner.practice.history.relabel import merge
from cfner.store.model_files import LoadedModel
from cfner.store.open import open_model
from cfner.stream.step import Step
from cfner.stream.stream import TaskStream
from cfner.tagger import ContinualTagger
from cfner.training import step as training_step
from cfner.training.preparation import prepare


def columns(model: LoadedModel, corpus: Corpus) -> Tensor:
    """[N, C] of all words of the test data."""
    text = model.encode(corpus.test)
    found = torch.empty(text.words, model.network.head.labels)
    for batch, out in outputs(model.network, text):
        found[batch.refs] = out.logits
    return found


def grown_network(model: LoadedModel, step: Step, method: str = "own-other") -> Network:
    """The network of a step before its first batch."""
    tagger = ContinualTagger(model, ContinualTagger.from_pretrained(model.encoder, method).config)
    labels = model.labels.grown(step.types, tagger.method.grouping)
    network = model.network.frozen_copy()
    ctx = training_step.step_context(
        replace(model, network=network), step, labels, tagger.method, tagger.config
    )
    prepare(network, ctx, tagger.method)
    return network.eval()


@pytest.mark.parametrize("source", ["checkpoint", "two_steps", "own_others"])
def test_before_training_old_columns_are_what_they_were(
    source: str, request: pytest.FixtureRequest, tiny_corpus: Corpus, tiny_encoder: Path
) -> None:
    """Of a stock checkpoint, of a folder that was learned with one O, and of one with own Others."""
    folder = request.getfixturevalue(source)
    model = replace(open_model(folder, None if source == "checkpoint" else 1), encoder=str(tiny_encoder))
    step = TaskStream.split(tiny_corpus, first=2, per_step=2, min_mentions=1)[1]
    before = columns(model, tiny_corpus)
    network = grown_network(model, step)
    assert network.head.own_groups == (4 if source == "own_others" else 2)
    after = columns(replace(model, network=network), tiny_corpus)
    assert torch.equal(after[:, : len(model.labels)], before)


@pytest.mark.parametrize("folder", ["own_others", "checkpoint_and_own"])
def test_old_rows_and_scales_do_not_move_by_a_bit(folder: str, request: pytest.FixtureRequest) -> None:
    path = request.getfixturevalue(folder)
    old, new = (open_model(path, step).network.head.state_dict() for step in (1, 2))
    known = len(old["weight"])
    assert torch.equal(new["weight"][:known], old["weight"])
    if "bias" in old:
        assert torch.equal(new["bias"][:known], old["bias"])
    if "sigma" in old:
        assert torch.equal(new["sigma"], old["sigma"])
        assert torch.equal(new["sigmas"][:2], old["sigmas"])
        assert torch.equal(new["others"][:2], old["others"])
        assert (new["sigmas"][2:] != old["sigmas"]).all()


def learned(folder: Path, step: Step, **settings: Any) -> tuple[LoadedModel, LoadedModel]:
    """The model before and after a step with own-other."""
    before = open_model(folder)
    tagger = ContinualTagger.load(folder, method="own-other", epochs=2, **settings)
    tagger.learn(step)
    return before, tagger.model


def moved(before: LoadedModel, after: LoadedModel, name: str) -> list[int]:
    old, new = before.network.head.state_dict()[name], after.network.head.state_dict()[name]
    return (new != old).reshape(len(old), -1).any(1).nonzero()[:, 0].tolist()


def test_more_data_for_a_part_of_group_0(checkpoint_and_own: Path, tiny_corpus: Corpus) -> None:
    """One of the checkpoint's two types is labelled: its rows move, and nothing else does."""
    train = tuple(sentence.only(["city"]) for sentence in tiny_corpus.train)
    step = Step(types=("city",), train=train, known=("animal", "dish", "person"), index=2)
    before, after = learned(checkpoint_and_own, step)
    assert after.labels == before.labels
    assert moved(before, after, "weight") == list(before.labels.ids_of(["city"]))
    assert set(moved(before, after, "bias")) <= set(before.labels.ids_of(["city"]))


def test_more_data_for_all_of_group_0(checkpoint_and_own: Path, tiny_corpus: Corpus) -> None:
    train = tuple(sentence.only(["city", "animal"]) for sentence in tiny_corpus.train)
    step = Step(types=("city", "animal"), train=train, known=("dish", "person"), index=2)
    before, after = learned(checkpoint_and_own, step)
    wanted = sorted([before.labels.other_id, *before.labels.ids_of(["city", "animal"])])
    assert moved(before, after, "weight") == wanted


def test_more_data_for_a_merged_type_trains_its_first_group(
    own_others: Path, tiny_corpus: Corpus, tmp_path: Path
) -> None:
    import shutil

    folder = Path(shutil.copytree(own_others, tmp_path / "model"))
    first = list(open_model(folder).labels.ids_of(["animal"]))
    merge(folder, ["person", "animal"], "being")
    train = tuple(sentence.only(["person", "animal"]) for sentence in tiny_corpus.train)
    named = tuple(replace(s, spans=tuple(replace(span, type="being") for span in s.spans)) for s in train)
    step = Step(types=("being",), train=named, known=("city", "dish"), index=3)
    before, after = learned(folder, step)
    assert moved(before, after, "weight") == first
    assert moved(before, after, "others") == moved(before, after, "sigmas") == [0]


def test_effects_with_no_match_are_own_other(
    tiny_encoder: Path, tiny_stream: TaskStream, tiny_settings: dict[str, Any]
) -> None:
    """K = 0, or without both effects: the same weights to the last bit."""
    found = []
    variants: list[dict[str, Any]] = [
        {"method": "own-other"},
        {"method": "own-other+cf", "parameters": {"k": 0}},
        {"method": "own-other+cf", "without": ("effect_e", "effect_o")},
        {"method": "own-other+cf"},
    ]
    for variant in variants:
        tagger = ContinualTagger.from_pretrained(**{**tiny_settings, "epochs": 2, **variant})
        for step in tiny_stream:
            tagger.learn(step)
        found.append(tagger.model.network.head.weight.detach())
    assert torch.equal(found[0], found[1]) and torch.equal(found[0], found[2])
    assert not torch.equal(found[0], found[3])


@pytest.mark.parametrize("method", ["cfner", "finetune", "extendner"])
def test_methods_with_one_other_are_refused(own_others: Path, tiny_stream: TaskStream, method: str) -> None:
    tagger = ContinualTagger.load(own_others, 1, method=method)
    with pytest.raises(ConfigError, match=r"one Other class.*method own-other"):
        tagger.learn(tiny_stream[1])


def test_unlabelled_text_and_replay_are_finite(own_others: Path, tiny_corpus: Corpus) -> None:
    train = tuple(sentence.only(["city"]) for sentence in tiny_corpus.train[:10])
    old = tuple(sentence.only(["dish"]) for sentence in tiny_corpus.train[10:20])
    text = tuple(sentence.only([]) for sentence in tiny_corpus.train[20:])
    step = Step(
        types=("city",),
        train=train,
        known=("animal", "dish", "person"),
        index=2,
        replay=old,
        unlabelled=text,
    )
    _, after = learned(own_others, step)
    assert all(torch.isfinite(value).all() for value in after.network.state_dict().values())
    assert create("own-other").grouping == "type"
