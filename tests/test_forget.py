"""A type that was taken away is found no more; everything else stays what it was, and it can come back."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from torch import Tensor
from typer.testing import CliRunner

import cfner
import oracle_groups as slow
from cfner.cli.main import app
from cfner.corpus.corpus import Corpus
from cfner.errors import StreamError
from cfner.network.decoder import Decoder
from cfner.network.inference import outputs
from cfner.practice.history.history import history, rollback, verify
from cfner.practice.history.relabel import forget, merge
from cfner.serving.pipeline import Pipeline
from cfner.store.open import open_model
from cfner.stream.labels import LabelSpace
from cfner.stream.step import Step
from cfner.tagger import ContinualTagger
from random_groups import plain

FOLDERS = ["two_steps", "own_others", "checkpoint_and_own"]


@pytest.fixture(params=FOLDERS)
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return Path(shutil.copytree(request.getfixturevalue(request.param), tmp_path / "model"))


def columns(model: Path, corpus: Corpus, step: int | None = None) -> Tensor:
    loaded = open_model(model, step)
    text = loaded.encode(corpus.test)
    found = torch.empty(text.words, len(loaded.labels))
    for batch, out in outputs(loaded.network, text):
        found[batch.refs] = out.logits
    return found


def predicted(model: Path, corpus: Corpus) -> str:
    found = ContinualTagger.load(model).predict(list(corpus.test))
    return json.dumps([prediction.to_json() for prediction in found])


def test_a_mention_that_a_removed_type_nearly_claimed_is_not_cut() -> None:
    """Types with one Other: the first word was closer to a person, the whole mention to a city."""
    labels = LabelSpace(("O", "B-person", "I-person", "B-city", "I-city"))
    columns = torch.tensor([[0.0, 2.0, -3.0, 1.5, -3.0], [0.0, -3.0, 0.0, -3.0, 3.0]])
    for space in (labels, labels.without(["person"])):
        assert Decoder(space).labels_of(columns, [2]).tolist() == [3, 4]
    gone = torch.tensor([[0.0, 4.0, -3.0, 0.5, -3.0], [0.0, -3.0, 2.0, -3.0, 0.5]])
    assert Decoder(labels).labels_of(gone, [2]).tolist() == [1, 2]
    assert Decoder(labels.without(["person"])).labels_of(gone, [2]).tolist() == [0, 0]


@pytest.mark.parametrize("types", [["animal"], ["person"], ["city", "dish"]])
def test_it_is_found_no_more_and_all_else_stays(model: Path, tiny_corpus: Corpus, types: list[str]) -> None:
    before, space = columns(model, tiny_corpus), plain(open_model(model).labels)
    old_ids = Decoder(open_model(model).labels).words_alone(before).tolist()
    past = forget(model, types)
    assert (past.number, past.parent, past.kind, past.types) == (3, 2, "forget", tuple(types))
    assert past.name == f"forget {', '.join(types)}" and past.current and past.micro_f1 is None
    after, loaded = columns(model, tiny_corpus), open_model(model)
    assert torch.equal(after, before)  # every log-odds, bit for bit
    assert (
        set(loaded.labels.types) == {"animal", "city", "dish", "person"} - set(types) == set(past.all_types)
    )
    ids, gone = Decoder(loaded.labels).words_alone(after).tolist(), plain(loaded.labels)
    changed = 0
    for row, old, new in zip(before.tolist(), old_ids, ids, strict=True):
        others = [row[space.other]] * (1 + max(space.group_of))  # columns are compared with O's
        assert old == slow.decided(row, others, space) and new == slow.decided(row, others, gone)
        changed += old != new
        if old in gone.silent:  # its group claims nothing now: O, or a type of another group
            group = space.group_of[old]
            assert new == space.other or space.group_of[new] != group
        else:  # nobody took the word from its type
            assert new == old
    assert changed
    found = {
        entity.type
        for p in ContinualTagger.load(model).predict(list(tiny_corpus.test))
        for entity in p.entities
    }
    assert found and found.isdisjoint(types)
    texts = [" ".join(sentence.words) for sentence in tiny_corpus.test]
    served = {entity.type for entities in Pipeline(loaded).tag(texts) for entity in entities}
    assert served and served.isdisjoint(types)


def test_rollback_brings_it_back(model: Path, tiny_corpus: Corpus) -> None:
    before = predicted(model, tiny_corpus)
    cfner.forget(model, "person")
    without = predicted(model, tiny_corpus)
    assert [step.kind for step in verify(model)][2:] == ["forget"]
    rollback(model, 2)
    assert predicted(model, tiny_corpus) == before != without
    rollback(model, 3)
    assert predicted(model, tiny_corpus) == without


def test_it_can_be_learned_again(model: Path, tiny_corpus: Corpus) -> None:
    forget(model, ["person"])
    known = ("animal", "city", "dish")
    tagger = ContinualTagger.load(model)
    gone = tagger.model.labels.silent
    train = tuple(sentence.only(["person"]) for sentence in tiny_corpus.train)
    tagger.learn(Step(types=("person",), train=train, known=known, index=2))
    labels = tagger.model.labels
    assert labels.silent == gone and set(labels.ids_of(["person"])).isdisjoint(gone)
    scores = tagger.evaluate(tiny_corpus.test)
    assert scores.counts["person"].f1 > 50
    tagger.save(model)
    assert [step.kind for step in verify(model)][2:] == ["forget", "learn"]
    assert set(history(model)[-1].all_types) == {*known, "person"}


def test_merged_types_go_together(model: Path, tiny_corpus: Corpus) -> None:
    merge(model, ["person", "animal"], "being")
    forget(model, ["being"])
    loaded = open_model(model)
    assert loaded.labels.types == ("city", "dish") and len(loaded.labels.silent) == 4
    assert not loaded.labels.merged
    assert "being" not in predicted(model, tiny_corpus)


@pytest.mark.parametrize(
    ("types", "message"),
    [
        (["persn"], r"no type 'persn'\. Did you mean 'person'"),
        ("persn", r"no type 'persn'\. Did you mean 'person'"),
        (["person", "robot"], "no type 'robot'"),
        (["animal", "city", "dish", "person"], "all types that the model knows"),
        ([], "No type to forget"),
    ],
)
def test_refused_and_nothing_is_added(
    own_others: Path, tmp_path: Path, types: list[str], message: str
) -> None:
    model = Path(shutil.copytree(own_others, tmp_path / "model"))
    with pytest.raises(StreamError, match=message):
        forget(model, types)
    assert len(history(model)) == 2 and len(list((model / "steps").iterdir())) == 2


def test_on_the_command_line(own_others: Path, tmp_path: Path) -> None:
    model = Path(shutil.copytree(own_others, tmp_path / "model"))
    said = CliRunner().invoke(app, ["forget", str(model), "person", "city"])
    assert said.exit_code == 0 and "It knows: animal, dish." in said.output
    told = CliRunner().invoke(app, ["forget", str(model), "dish", "--json"])
    assert json.loads(told.output)["types"] == ["dish"]
    table = CliRunner().invoke(app, ["history", str(model)], env={"COLUMNS": "200"})
    assert "forget person, city" in table.output
    wrong = CliRunner().invoke(app, ["forget", str(model), "dish"])
    assert "no type 'dish'" in str(wrong.exception)
