"""Types of a model with experts are taken away as any other's."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from cfner.corpus.corpus import Corpus
from cfner.practice.history.history import rollback
from cfner.practice.history.relabel import forget
from cfner.store.open import open_model
from cfner.stream.step import Step
from cfner.stream.stream import TaskStream
from cfner.tagger import ContinualTagger


@pytest.fixture(scope="module")
def experts(
    tiny_settings: dict[str, Any], tiny_stream: TaskStream, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    folder = tmp_path_factory.mktemp("experts") / "model"
    tagger = ContinualTagger.from_pretrained(**{**tiny_settings, "method": "experts"})
    for step in tiny_stream:
        tagger.learn(step)
        tagger.save(folder)
    return folder


def found(model: Path, corpus: Corpus) -> list[set[tuple[int, int, str]]]:
    predictions = ContinualTagger.load(model).predict(list(corpus.test))
    return [{(e.first, e.last, e.type) for e in prediction.entities} for prediction in predictions]


@pytest.mark.parametrize("type_", ["animal", "person"])
def test_a_type_of_any_expert(experts: Path, tiny_corpus: Corpus, tmp_path: Path, type_: str) -> None:
    model = Path(shutil.copytree(experts, tmp_path / "model"))
    before = found(model, tiny_corpus)
    forget(model, type_)
    after = found(model, tiny_corpus)
    assert any(type_ in {entity[2] for entity in one} for one in before)
    for one, other in zip(before, after, strict=True):
        assert {entity for entity in one if entity[2] != type_} <= other
        assert type_ not in {entity[2] for entity in other}
    tagger = ContinualTagger.load(model)
    known = tuple(other for other in tagger.types if other != type_)
    train = tuple(sentence.only([type_]) for sentence in tiny_corpus.train)
    tagger.learn(Step(types=(type_,), train=train, known=known, index=2))
    assert tagger.evaluate(tiny_corpus.test).counts[type_].f1 > 30
    tagger.save(model)
    assert open_model(model).labels == tagger.model.labels
    rollback(model, 2)
    assert found(model, tiny_corpus) == before
