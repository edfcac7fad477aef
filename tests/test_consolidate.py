"""``cfner consolidate``: many experts become one network, as a step that can be undone."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import cfner
from cfner.cli.main import app
from cfner.corpus.corpus import Corpus
from cfner.corpus.writers import write_sentences
from cfner.errors import CorpusError, ModelError
from cfner.evaluation.metrics import score
from cfner.interop.export import export_model
from cfner.network.experts import ExpertNetwork
from cfner.network.network import Network
from cfner.practice.history.history import history, rollback, verify
from cfner.store.open import open_model
from cfner.stream.stream import TaskStream
from cfner.tagger import ContinualTagger


@pytest.fixture(scope="module")
def experts(tiny_encoder: Path, tiny_corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two steps, two experts."""
    folder = tmp_path_factory.mktemp("experts") / "model"
    stream = TaskStream.split(tiny_corpus, first=2, per_step=1, min_mentions=1)
    tagger = ContinualTagger.from_pretrained(
        str(tiny_encoder), method="experts", epochs=12, lr_encoder=5e-3, lr_head=1e-2, train_embeddings=True
    )
    for step in stream.steps[:2]:
        tagger.learn(replace(step, dev=()))
        tagger.save(folder)
    return folder


@pytest.fixture
def model(experts: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(experts, tmp_path / "model"))


@pytest.fixture
def text(tiny_corpus: Corpus, tmp_path: Path) -> Path:
    file = tmp_path / "text.txt"
    file.write_text("\n".join(" ".join(s.words) for s in tiny_corpus.train), encoding="utf-8")
    return file


def test_one_network_says_what_the_experts_say(model: Path, text: Path, tiny_corpus: Corpus) -> None:
    teacher = ContinualTagger.load(model)
    assert isinstance(teacher.model.network, ExpertNetwork)
    before = teacher.find(tiny_corpus.test)
    made = cfner.consolidate(model, text, in_place=True, epochs=25)
    assert made.accepted and (made.step, made.parent, made.experts) == (3, 2, 2)
    assert made.cost.disk > 0 and made.cost.after > 0 and made.sentences < len(tiny_corpus.train)
    student = ContinualTagger.load(model)
    assert type(student.model.network) is Network
    assert student.model.labels == teacher.model.labels
    assert score(before, student.find(tiny_corpus.test)).micro_f1 > 90
    assert [step.kind for step in verify(model)] == ["learn", "learn", "consolidate"]
    assert made.epochs[-1]["keep"] < made.epochs[0]["keep"]
    # a stock model can be made of it, and it learns on with any method for own Others
    export_model(model, model.parent / "hf", "hf")
    for method in ("own-other", "experts"):
        ContinualTagger.load(model, method=method, epochs=1).learn(
            cfner.Step(("person",), tuple(s.only(["person"]) for s in tiny_corpus.train), known=student.types)
        )


def test_it_is_undone_by_a_rollback(model: Path, text: Path, tiny_corpus: Corpus) -> None:
    before = {key: value.clone() for key, value in open_model(model).network.state_dict().items()}
    cfner.consolidate(model, text, in_place=True, epochs=1)
    rollback(model, 2)
    after = open_model(model).network
    assert isinstance(after, ExpertNetwork)
    for key, value in after.state_dict().items():
        assert torch.equal(value, before[key]), key


def test_a_network_that_forgot_is_refused_and_saved_separately(
    model: Path, text: Path, tiny_corpus: Corpus
) -> None:
    old = model.parent / "old.conll"
    write_sentences(tiny_corpus.train, old, format="conll")
    out = model.parent / "new"
    arguments = ["consolidate", str(model), str(text), "--out", str(out), "--guard", str(old), "--json"]
    # far too high a rate: nothing is left of what was known
    done = CliRunner().invoke(
        app, [*arguments, "--epochs", "1", "--lr-encoder", "0.5", "--max-forgetting", "1"]
    )
    assert done.exit_code == 3, done.output
    told = json.loads(done.stdout)
    assert not told["accepted"] and told["guard"]["refused"] and told["folder"].endswith(".refused")
    assert "lost" in {row["verdict"] for row in told["guard"]["types"]}
    assert not out.exists() and history(model)[-1].number == 2


def test_strict_refuses_a_network_of_which_too_little_is_shown(
    model: Path, text: Path, tiny_corpus: Corpus
) -> None:
    """Experts that cannot be outvoted are not kept by construction once they have become one network."""
    old = model.parent / "old.conll"
    write_sentences(tiny_corpus.test[:12], old, format="conll")
    arguments = [
        "consolidate",
        str(model),
        str(text),
        "--out",
        str(model.parent / "new"),
        "--guard",
        str(old),
    ]
    done = CliRunner().invoke(app, [*arguments, "--epochs", "1", "--strict", "--set", "old_wins=true"])
    assert done.exit_code == 3, done.output
    assert "--strict, and not shown to be kept" in " ".join(done.stdout.split())
    assert "unchanged" not in done.stdout


def test_the_command_says_what_it_costs(model: Path, text: Path) -> None:
    done = CliRunner().invoke(app, ["consolidate", str(model), str(text), "--in-place", "--epochs", "1"])
    assert done.exit_code == 0, done.output
    said = " ".join(done.stdout.split())
    assert "2 experts taught one network" in said and "ms before" in said and "MB on disk" in said
    table = CliRunner().invoke(app, ["history", str(model), "--json"])
    assert all(step["disk"] > 0 for step in json.loads(table.stdout))


def test_one_network_has_nothing_to_consolidate(model: Path, text: Path) -> None:
    rollback(model, 1)
    with pytest.raises(ModelError, match="already one network"):
        cfner.consolidate(model, text, in_place=True)
    assert len(history(model)) == 2
    assert not model.with_name("model.unfinished").exists()


def test_text_without_words_is_refused(model: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("\n\n", encoding="utf-8")
    with pytest.raises(CorpusError, match="contains no text"):
        cfner.consolidate(model, tmp_path / "empty.txt", in_place=True)


def test_an_interrupted_consolidation_goes_on(model: Path, text: Path) -> None:
    from cfner.training.progress import Silent

    class Stop(Exception):
        pass

    class Stopping(Silent):
        def epoch(self, number: int, figures: object) -> None:
            if number == 2:
                raise Stop

    settings = {"epochs": 4, "checkpoint_minutes": 0.0}
    whole = cfner.consolidate(model, text, out=model.parent / "whole", **settings)
    with pytest.raises(Stop):
        cfner.consolidate(model, text, out=model.parent / "again", **settings, progress=Stopping())
    again = cfner.consolidate(model, text, out=model.parent / "again", **settings)
    one, other = (open_model(made.folder).network.state_dict() for made in (whole, again))
    for key, value in one.items():
        assert torch.equal(value, other[key]), key
