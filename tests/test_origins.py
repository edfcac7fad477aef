"""Old types are kept as the model predicted them that learned them."""

from __future__ import annotations

import random
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from cfner.corpus.corpus import Corpus
from cfner.practice.history.prune import prune
from cfner.practice.history.relabel import rename
from cfner.store.model_files import LoadedModel
from cfner.store.open import open_model
from cfner.store.origins import Origin, later, origins_of
from cfner.stream.labels import LabelSpace
from cfner.stream.step import Step
from cfner.stream.stream import TaskStream
from cfner.tagger import ContinualTagger
from cfner.training.step import prepared_step


@pytest.fixture(scope="module")
def stream(tiny_corpus: Corpus) -> TaskStream:
    """Four steps of one type."""
    return TaskStream.split(tiny_corpus, first=1, per_step=1, min_mentions=1)


def settings_of(tiny_settings: dict[str, Any]) -> dict[str, Any]:
    return {**tiny_settings, "method": "own-other", "epochs": 2}


@pytest.fixture(scope="module")
def three_steps(
    tiny_settings: dict[str, Any], stream: TaskStream, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The first three, saved. Copy it before you change anything in it."""
    folder = tmp_path_factory.mktemp("three-steps") / "model"
    tagger = ContinualTagger.from_pretrained(**settings_of(tiny_settings))
    for step in stream.steps[:3]:
        tagger.learn(step)
        tagger.save(folder)
    return folder


def numbers(origins: tuple[Origin, ...], folder: Path) -> dict[int, int]:
    """Which step of the folder learned each group, found by its weights."""
    stored = {n: open_model(folder, n).network.state_dict() for n in range(1, 4)}
    found = {}
    for origin in origins:
        weights = origin.network().state_dict()
        same = [n for n, other in stored.items() if equal(weights, other)]
        found.update(dict.fromkeys(origin.groups, same[0]))
    return found


def equal(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[key], other[key]) for key in one)


@pytest.mark.parametrize("seed", range(20))
def test_the_origin_of_a_group_is_the_last_step_that_trained_it(seed: int) -> None:
    """Compared with a plain table, over random histories of new types, more data and lost weights."""
    draw = random.Random(seed)
    origins: tuple[Origin, ...] = ()
    labels = LabelSpace.start().grown(["type 0"], "type")
    networks: list[Any] = [object()]
    learned_by = {labels.group_of_type("type 0"): 0}  # group -> the number of the network
    for number in range(1, 8):
        types = [*draw.sample(labels.types, draw.randrange(len(labels.types))), f"type {number}"]
        grown = labels.grown(types, "type")
        pruned = draw.random() < 0.3
        origins = later(origins, labels, None if pruned else networks[-1], grown, types)
        for type_ in grown.types:
            group = grown.group_of_type(type_)
            if type_ in types or (pruned and learned_by[group] == number - 1):
                learned_by[group] = number
        networks.append(object())
        labels = grown
        told = {group: networks.index(origin.source) for origin in origins for group in origin.groups}
        assert told == {group: step for group, step in learned_by.items() if step != number}


def test_a_group_that_gets_a_label_is_trained_and_a_merged_part_is_not() -> None:
    start = LabelSpace.start().grown(["a", "b", "c"], "type")
    group = {type_: start.group_of_type(type_) for type_ in start.types}
    network: Any = object()
    merged = start.renamed(["a", "b"], "both")
    (origin,) = later((), merged, network, merged.grown(["both"], "type"), ["both"])
    assert origin.groups == {group["b"], group["c"]}
    foreign = LabelSpace(("O", "I-animal", "B-person", "I-person"))  # as of a checkpoint that lacks a label
    grown = foreign.grown(["city", "animal"], "type")  # animal is replayed
    assert len(grown) > len(foreign) + 2  # it got the label that it lacked, in the group that it is in
    assert later((), foreign, network, grown, ["city"]) == ()


def test_origins_are_the_same_in_memory_and_in_the_folder(
    three_steps: Path, tiny_settings: dict[str, Any], stream: TaskStream
) -> None:
    tagger = ContinualTagger.from_pretrained(**settings_of(tiny_settings))
    for step in stream.steps[:3]:
        tagger.learn(step)
    loaded = ContinualTagger.load(three_steps)
    labels = loaded.model.labels
    expected = {labels.group_of_type(step.types[0]): n for n, step in enumerate(stream.steps[:2], start=1)}
    for origins in (tagger.origins(), loaded.origins(), loaded.fork(loaded.config).origins()):
        assert {group: n for group, n in numbers(origins, three_steps).items() if group} == expected


def test_a_fourth_step_is_the_same_from_memory_and_from_the_folder(
    three_steps: Path, tiny_settings: dict[str, Any], stream: TaskStream
) -> None:
    """Bit for bit: what is kept does not depend on where the earlier networks are."""
    tagger = ContinualTagger.from_pretrained(**settings_of(tiny_settings))
    for step in stream.steps[:3]:
        tagger.learn(step)
    for one in (tagger, loaded := ContinualTagger.load(three_steps)):
        one.learn(stream[3])
    assert equal(tagger.model.network.state_dict(), loaded.model.network.state_dict())


def test_saving_elsewhere_changes_nothing(
    three_steps: Path, tiny_settings: dict[str, Any], stream: TaskStream, tmp_path: Path
) -> None:
    """A folder that does not have the earlier steps does not make the tagger forget them."""
    tagger = ContinualTagger.load(three_steps)
    before = numbers(tagger.origins(), three_steps)
    tagger.save(tmp_path / "copy")
    assert numbers(tagger.origins(), three_steps) == before
    unsaved = ContinualTagger.from_pretrained(**settings_of(tiny_settings))
    for number, step in enumerate(stream.steps[:3]):
        unsaved.learn(step)
        if number:
            unsaved.save(tmp_path / "late")  # which never gets the first step
    assert numbers(unsaved.origins(), three_steps) == before


def test_an_origin_that_is_gone_is_told_and_the_step_is_learned(
    three_steps: Path, stream: TaskStream, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(three_steps, folder)
    tagger = ContinualTagger.load(folder)
    tagger.save(tmp_path / "copy")
    shutil.rmtree(folder)
    with caplog.at_level("WARNING", logger="cfner"):
        tagger.learn(stream[3])
    assert "is gone" in caplog.text and stream[0].types[0] in caplog.text
    assert set(stream[3].types) <= set(tagger.types)


def test_only_a_method_that_asks_for_origins_has_them(
    three_steps: Path, tiny_settings: dict[str, Any], stream: TaskStream
) -> None:
    """Others hold no earlier network in memory, and read no earlier step."""
    assert ContinualTagger.load(three_steps).origins()
    assert not ContinualTagger.load(three_steps, without=("origins",)).origins()
    tagger = ContinualTagger.from_pretrained(**{**settings_of(tiny_settings), "without": ("origins",)})
    for step in stream.steps[:2]:
        tagger.learn(step)
    assert not tagger._origins


def test_a_step_from_scratch_has_no_origins(
    tiny_settings: dict[str, Any], stream: TaskStream, tmp_path: Path
) -> None:
    tagger = ContinualTagger.from_pretrained(**{**settings_of(tiny_settings), "method": "joint-own"})
    for step in stream.steps[:3]:
        tagger.learn(step)
        tagger.save(tmp_path / "model")
    assert ContinualTagger.load(tmp_path / "model", method="own-other").origins() == ()


def kept_odds(folder: Path, step: Step, without: tuple[str, ...] = ()) -> tuple[Tensor, LoadedModel, Any]:
    """[N, C_kept] the log-odds against O that the next step keeps."""
    tagger = ContinualTagger.load(folder, without=without)
    labels = tagger.model.labels.grown(step.types, tagger.method.grouping)
    prepared = prepared_step(tagger.model, step, labels, tagger.method, tagger.config, tagger.origins())
    assert prepared.teacher is not None
    logits = prepared.teacher.logits
    return logits - logits[:, :1], tagger.model, prepared


def own_odds(model: LoadedModel, step: Step, labels: list[int]) -> Tensor:
    """The same of one model, sentence by sentence."""
    rows = []
    for sentence in step.train:
        from cfner.network.inference import outputs

        text = model.encode([sentence])
        for batch, out in outputs(model.network, text):
            rows.append((out.logits[:, labels] - out.logits[:, :1])[batch.refs.argsort()])
    return torch.cat(rows)


def test_a_type_is_kept_as_the_model_that_learned_it_predicts_it(
    three_steps: Path, stream: TaskStream
) -> None:
    step = stream[3]
    odds, model, prepared = kept_odds(three_steps, step)
    for number, earlier in enumerate(stream.steps[:3], start=1):
        labels = list(model.labels.ids_of(earlier.types))
        columns = torch.isin(prepared.roles.kept, torch.tensor(labels)).nonzero()[:, 0]
        expected = own_odds(open_model(three_steps, number), step, labels)
        torch.testing.assert_close(odds[:, columns], expected, atol=2e-4, rtol=1e-4)
    # what the causal effects and the choice of negatives read is decided by the same scores
    teacher = prepared.teacher
    assert torch.equal(teacher.defined_other.cpu(), (prepared.data.gold == 0) & (odds.argmax(1) != 0).cpu())


def test_without_origins_it_is_the_last_model(three_steps: Path, stream: TaskStream) -> None:
    step = stream[3]
    odds, model, prepared = kept_odds(three_steps, step, ("origins",))
    expected = own_odds(model, step, prepared.roles.kept.tolist())
    torch.testing.assert_close(odds, expected, atol=2e-4, rtol=1e-4)


def test_more_data_for_a_type_makes_a_new_origin_and_a_new_name_does_not(
    three_steps: Path, stream: TaskStream, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(three_steps, folder)
    first, second = (step.types[0] for step in stream.steps[:2])
    rename(folder, second, "renamed")
    tagger = ContinualTagger.load(folder)
    labels = tagger.model.labels
    known = tuple(type_ for type_ in labels.types if type_ != first)
    again = replace(stream[0], known=known, index=4)
    tagger.learn(again)
    tagger.save(folder)
    origins = origins_of(tagger.saved_step)  # type: ignore[arg-type]
    groups = {group for origin in origins for group in origin.groups}
    assert labels.group_of_type(first) not in groups
    assert labels.group_of_type("renamed") in groups


def test_a_pruned_step_is_replaced_by_the_one_after_it(
    three_steps: Path, stream: TaskStream, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(three_steps, folder)
    prune(folder, 2)
    labels = ContinualTagger.load(folder).model.labels
    first, second = (labels.group_of_type(step.types[0]) for step in stream.steps[:2])
    (origin,) = origins_of(ContinualTagger.load(folder).saved_step)  # type: ignore[arg-type]
    assert {first, second} <= origin.groups
    assert equal(origin.network().state_dict(), open_model(folder, 2).network.state_dict())
