"""What ``learn`` says a new type is worth, before anybody relies on it."""

from __future__ import annotations

import json
import math
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from cfner import learn
from cfner.cli.main import app
from cfner.corpus.corpus import Corpus
from cfner.corpus.sentence import Sentence, Span
from cfner.corpus.writers import write_sentences
from cfner.errors import ConfigError, ModelError
from cfner.evaluation.estimate import Estimate, found_by, from_json
from cfner.files.markdown import escaped
from cfner.interop.export import export_model
from cfner.practice.history.history import history
from cfner.practice.learn.cross_validation import ENOUGH_TO_HOLD_OUT, Plan, _without
from cfner.practice.learn.folds import divided
from cfner.serving.step_list import read_steps
from cfner.stream.step import Step
from cfner.tagger import ContinualTagger
from cfner.training.config import TrainingConfig
from cfner.training.progress import Silent

FAST: dict[str, Any] = {"epochs": 1}


@pytest.fixture
def new(tiny_corpus: Corpus, tmp_path: Path) -> str:
    path = tmp_path / "new.conll"
    write_sentences([s.only(["person"]) for s in tiny_corpus.train], path, format="conll")
    return str(path)


def sentence(words: str, *types: str, document: str | None = None) -> Sentence:
    """Its first words are mentions of one word each."""
    spans = tuple(Span(place, place + 1, type_) for place, type_ in enumerate(types))
    return Sentence(tuple(words.split()), spans, document=document)


# how sentences are divided


def test_folds_spread_each_type_evenly_and_miss_nothing() -> None:
    rare = [sentence(f"r{i} x", "rare") for i in range(10)]
    often = [sentence(f"o{i} x y", "often") for i in range(47)]
    nothing = [sentence(f"n{i}") for i in range(30)]
    text = [*often, *nothing, *rare]
    folds = divided(text, 5)
    assert sorted(i for fold in folds for i in fold) == list(range(len(text)))
    of_type = [Counter(t for i in fold for t in text[i].types) for fold in folds]
    assert {c["rare"] for c in of_type} == {2} and {c["often"] for c in of_type} <= {9, 10}
    assert max(map(len, folds)) - min(map(len, folds)) <= 2


def test_equal_sentences_are_in_one_fold() -> None:
    text = [sentence(f"w{i % 12} x", "t") for i in range(48)]
    for fold in divided(text, 3):
        keys = {text[i].key for i in fold}
        assert sum(s.key in keys for s in text) == len(fold)


def test_sentences_of_one_document_are_in_one_fold_if_there_are_enough_documents() -> None:
    def text(documents: int) -> list[Sentence]:
        return [sentence(f"w{i} x", "t", document=str(i % documents)) for i in range(60)]

    many = text(12)
    for fold in divided(many, 5):
        documents = {many[i].document for i in fold}
        assert sum(s.document in documents for s in many) == len(fold)
    few = divided(text(3), 5)  # three documents cannot fill five folds: sentences are divided
    assert all(few) and Plan.of(text(3), None, 0.15).documents is False  # type: ignore[union-attr]


def test_a_line_that_all_documents_share_does_not_chain_them(one_step: Path, tmp_path: Path) -> None:
    text = []
    for d in range(12):
        text.append(sentence("the river", document=str(d)))
        text += [sentence(f"{name}{d} ran", "person", document=str(d)) for name in ("ada", "emmy")]
    folds = divided(text, 5)
    assert len(folds) == 5 and max(map(len, folds)) <= 9
    lines = []
    for one in text:
        lines += ["-DOCSTART-\tO\n"] if one.words == ("the", "river") else []
        tags = ["B-person" if place < len(one.spans) else "O" for place in range(len(one))]
        lines.append("".join(f"{word}\t{tag}\n" for word, tag in zip(one.words, tags, strict=True)))
    (tmp_path / "docs.conll").write_text("\n".join(lines))
    watch = Watch()
    learned = learn(one_step, str(tmp_path / "docs.conll"), out=tmp_path / "m2", **FAST, progress=watch)
    assert learned.estimate is not None and learned.estimate.documents
    assert watch.names[:5] == [f"estimate {n} of 5" for n in range(1, 6)]


def test_copies_of_what_is_scored_are_not_trained_on() -> None:
    own = [sentence(f"w{d} {n} x", "t", document=str(d)) for d in range(12) for n in range(3)]
    shared = [sentence("the same line", document=str(d)) for d in range(12)]
    text = (*own, *shared)
    step = Step(("t",), text)
    for part in divided(text, 3):
        left = _without(step, part, 1, 3, TrainingConfig(encoder="minilm"), 0.15).train
        assert len(left) >= 24 and not {s.key for s in left} & {text[i].key for i in part}
    copies = [sentence(f"w{i % 6} x", "t", document=str(i)) for i in range(24)]
    # documents that are copies of each other are not kept together
    assert all(len({copies[i].key for i in part}) == 2 for part in divided(copies, 3))


def test_fewer_different_sentences_than_folds_are_as_many_folds(one_step: Path, tmp_path: Path) -> None:
    few = [sentence(f"ada{i % 3} ran", "person") for i in range(24)]
    plan = Plan.of(few, None, 0.15)
    assert plan is not None and len(plan.parts) == 3
    assert Plan.of(few[::3], 5, 0.15) is None and Plan.of([few[0]] * 30, None, 0.15) is None
    write_sentences(few, tmp_path / "few.conll", format="conll")
    for out in ("m2", "m3"):
        done = learn(one_step, str(tmp_path / "few.conll"), out=tmp_path / out, unchecked=True, **FAST)
        assert done.estimate is not None and done.estimate.folds == 3


def test_the_order_of_the_file_does_not_matter() -> None:
    text = [sentence(f"w{i} x", "t") for i in range(40)]
    back = text[::-1]
    one = {frozenset(text[i].key for i in fold) for fold in divided(text, 5)}
    assert one == {frozenset(back[i].key for i in fold) for fold in divided(back, 5)}


def test_how_many_folds() -> None:
    few = [sentence(f"w{i} x", "t") for i in range(40)]
    many = [sentence(f"w{i} x", "t") for i in range(ENOUGH_TO_HOLD_OUT)]
    parts = {n: Plan.of(few, n, 0.15) for n in (None, 0, 2, 7)}
    assert parts[0] is None
    assert [len(p.parts) for p in (parts[None], parts[2], parts[7]) if p] == [5, 2, 7]
    held_out = Plan.of(many, None, 0.15)
    assert held_out is not None and len(held_out.parts) == 1
    assert 0.13 < len(held_out.parts[0]) / len(many) < 0.16
    assert len(Plan.of(many, 5, 0.15).parts) == 5  # type: ignore[union-attr]
    assert Plan.of(few[:10], None, 0.15) is None
    for wrong in (1, -2):
        with pytest.raises(ConfigError, match="folds"):
            Plan.of(few, wrong, 0.15)


# what is computed from the counts


def test_counts_are_added_up_before_f1_and_the_interval_is_widened() -> None:
    """Against a slow computation of the same bootstrap by hand."""
    random = np.random.default_rng(3)
    counts = np.zeros((80, 1, 3))
    counts[:, 0, 1] = random.integers(0, 3, 80)
    counts[:, 0, 0] = np.minimum(counts[:, 0, 1], random.integers(0, 3, 80))
    counts[:, 0, 2] = counts[:, 0, 0] + random.integers(0, 2, 80)
    plain = Estimate.of("test", counts, ["t"]).types[0].f1
    folds = Estimate.of("folds", counts, ["t"], folds=5, share=0.8).types[0].f1
    found, gold, predicted = counts.sum((0, 1))
    assert plain.value == folds.value == pytest.approx(200 * found / (gold + predicted))
    drawn = []
    for _ in range(4000):
        f, g, p = counts[random.integers(0, 80, 80), 0].sum(0)
        drawn.append(200 * f / (g + p))
    low, high = np.percentile(drawn, [2.5, 97.5])
    assert plain.low == pytest.approx(low, abs=0.8) and plain.high == pytest.approx(high, abs=0.8)
    factor = math.sqrt(1 + 5 / 4)
    assert folds.low == pytest.approx(plain.value - factor * (plain.value - plain.low))
    assert folds.high == pytest.approx(plain.value + factor * (plain.high - plain.value))


def test_an_unbroken_series_is_not_taken_for_certainty() -> None:
    text = [sentence(f"w{i}", "t") for i in range(20)]
    right = Estimate.of("test", found_by(text, [s.spans for s in text], ["t"]), ["t"]).types[0]
    assert right.f1.value == 100 and right.f1.low == pytest.approx(100 - 370 / 20)
    wrong = Estimate.of("test", found_by(text, [()] * 20, ["t"]), ["t"]).types[0]
    assert wrong.f1.high == pytest.approx(370 / 20) and wrong.precision is None


def test_too_few_mentions_are_said_to_be() -> None:
    text = [sentence(f"w{i}", "t") for i in range(9)]
    types = ["t", "unseen"]
    few = Estimate.of("test", found_by(text, [s.spans for s in text], types), types)
    assert [row.type for row in few.types] == ["t"] and not few.types[0].is_enough
    assert few.below(50, ["t", "unseen"]) == ()  # nothing is known against them
    assert few.below(50, ["t", "unseen"], strict=True) == ("t", "unseen")


def test_what_is_written_is_read_back() -> None:
    text = [sentence(f"w{i}", "t") for i in range(20)]
    one = Estimate.of("folds", found_by(text, [()] * 20, ["t"]), ["t"], folds=5, share=0.8, epoch=3)
    assert from_json(json.loads(json.dumps(one.to_json()))) == one


# as people meet it


class Watch(Silent):
    """Counts what is learned, and stops in the middle of one of it."""

    def __init__(self, stop_in: int | None = None) -> None:
        self.names: list[str] = []
        self.stop_in = stop_in

    def start(self, name: str, epochs: int, batches: int) -> None:
        self.names.append(name)

    def batch(self, loss: float, sentences: int) -> None:
        if self.stop_in == len(self.names):
            raise KeyboardInterrupt


def test_five_models_estimate_and_the_model_itself_learns_from_all(
    one_step: Path, new: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    watch = Watch()
    caplog.set_level("INFO", "cfner")
    learned = learn(one_step, new, out=tmp_path / "m2", **FAST, progress=watch)
    assert watch.names == [*(f"estimate {n} of 5" for n in range(1, 6)), "learn person"]
    assert any(note.startswith("Estimate 1 of 5: F1 person") for note in caplog.messages)
    estimate, data = learned.estimate, Corpus.read(new)
    assert estimate is not None and (estimate.how, estimate.folds) == ("folds", 5)
    mentions = sum(len(s.spans) for s in data.train)
    assert estimate.sentences == len(data.train) and estimate.types[0].mentions == mentions
    tagger = ContinualTagger.load(tmp_path / "m2")
    assert tagger.record is not None and tagger.record.facts["data"]["train"]["sentences"] == len(data.train)
    plain = learn(one_step, new, out=tmp_path / "m3", folds=0, **FAST)
    assert plain.estimate is None  # and the model is the same, byte for byte
    weights = [(tmp_path / m / "steps/0002/model.safetensors").read_bytes() for m in ("m2", "m3")]
    assert weights[0] == weights[1]


def test_a_test_split_scores_the_model_itself(one_step: Path, tiny_corpus: Corpus, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    test = [s.only(["person"]) for s in tiny_corpus.test]
    write_sentences([s.only(["person"]) for s in tiny_corpus.train], data / "train.conll", format="conll")
    write_sentences(test, data / "test.conll", format="conll")
    learned = learn(one_step, str(data), out=tmp_path / "m2", epochs=3)
    estimate = learned.estimate
    assert estimate is not None and (estimate.how, estimate.sentences) == ("test", len(test))
    found = ContinualTagger.load(tmp_path / "m2").find(test)
    right = sum(
        span.type == "person" and span in s.spans for s, f in zip(test, found, strict=True) for span in f
    )
    said = sum(span.type == "person" for spans in found for span in spans)
    truth = 200 * right / (said + sum(len(s.spans) for s in test))
    assert estimate.types[0].f1.value == pytest.approx(truth)


def test_an_interrupted_estimate_goes_on_with_the_next_fold(one_step: Path, new: str, tmp_path: Path) -> None:
    whole = learn(one_step, new, out=tmp_path / "whole", **FAST)
    with pytest.raises(KeyboardInterrupt):
        learn(one_step, new, out=tmp_path / "m2", **FAST, progress=Watch(stop_in=4))
    watch = Watch()
    again = learn(one_step, new, out=tmp_path / "m2", **FAST, progress=watch)
    assert watch.names == ["estimate 4 of 5", "estimate 5 of 5", "learn person"]
    assert again.estimate == whole.estimate
    assert not (tmp_path / "m2/estimate.json").exists()


def test_folds_of_another_model_do_not_count(one_step: Path, new: str, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        learn(one_step, new, out=tmp_path / "m2", **FAST, progress=Watch(stop_in=3))
    other = Path(shutil.copytree(one_step, tmp_path / "other"))
    learn(other, new, in_place=True, types=["person"], folds=0, **FAST)
    watch = Watch()
    learn(other, new, out=tmp_path / "m2", **FAST, progress=watch)
    assert len(watch.names) == 6


def test_without_a_share_to_choose_on_no_epoch_is_chosen(one_step: Path, new: str, tmp_path: Path) -> None:
    learned = learn(
        one_step, new, out=tmp_path / "m2", folds=2, dev_share=0.0,
        epochs=2, select_on="new",
    )  # fmt: skip
    assert learned.estimate is not None and learned.estimate.epoch is None and len(learned.epochs) == 2


def test_the_folds_choose_the_epoch_and_the_model_stops_after_it(
    one_step: Path, new: str, tmp_path: Path
) -> None:
    settings = {"epochs": 3, "select_on": "new"}
    learned = learn(one_step, new, out=tmp_path / "m2", **settings, folds=3)
    assert learned.estimate is not None and learned.estimate.epoch in {1, 2, 3}
    assert len(learned.epochs) == learned.estimate.epoch == learned.best_epoch


@pytest.mark.parametrize("strict", [False, True])
def test_a_type_that_is_not_found_well_enough_is_refused(
    strict: bool, one_step: Path, new: str, tmp_path: Path
) -> None:
    nothing = {"epochs": 1, "lr_head": 0, "lr_encoder": 0}
    refused = learn(one_step, new, out=tmp_path / "m2", min_new_f1=50, strict=strict, **nothing, folds=2)
    assert not refused.accepted and refused.below == ("person",)
    assert refused.folder.name == "m2.refused" and not (tmp_path / "m2").exists()


def test_the_command_tells_what_the_figure_is(one_step: Path, new: str, tmp_path: Path) -> None:
    words = ["learn", str(one_step), new, "--out", str(tmp_path / "m2"), "--epochs", "2", "--folds", "2"]
    done = CliRunner().invoke(app, [*words, "--min-new-f1", "100"])
    said = " ".join(done.stdout.split())
    assert done.exit_code == 3, done.output
    assert "2 models that each saw 1 in 2 of your sentences" in said and "slightly pessimistic" in said
    assert "person not found well enough (--min-new-f1)" in said
    report = json.loads((tmp_path / "m2.refused/steps/0002/report.json").read_bytes())
    assert from_json(report["new_types"]).folds == 2 and report["accepted"] is False


def test_history_card_and_page_show_the_same_figure(one_step: Path, new: str, tmp_path: Path) -> None:
    learned = learn(one_step, new, out=tmp_path / "m2", epochs=2, folds=2)
    assert learned.estimate is not None
    figures = learned.estimate.figures()
    said = " ".join(CliRunner().invoke(app, ["history", str(tmp_path / "m2")]).stdout.split())
    assert figures in said and "2 models that each saw 1 in 2" in said
    told = json.loads(CliRunner().invoke(app, ["history", str(tmp_path / "m2"), "--json"]).stdout)
    assert from_json(told[-1]["estimate"]) == learned.estimate and told[0]["estimate"] is None
    export_model(tmp_path / "m2", tmp_path / "export", "hf")
    card = (tmp_path / "export/README.md").read_text()
    assert escaped(figures) in card and "slightly pessimistic" in card
    steps = read_steps(tmp_path / "m2")
    shown = steps.steps[-1].estimate
    assert shown is not None and shown.types[0].f1 == learned.estimate.types[0].f1.value


def test_a_damaged_estimate_is_an_error_that_names_the_file(one_step: Path, new: str, tmp_path: Path) -> None:
    learn(one_step, new, out=tmp_path / "m2", **FAST, folds=2)
    path = tmp_path / "m2/steps/0002/report.json"
    report = json.loads(path.read_bytes())
    for value in (101, float("nan"), "many", None):
        report["new_types"]["types"][0]["f1"]["low"] = value
        path.write_text(json.dumps(report))
        with pytest.raises(ModelError, match=r"report\.json"):
            history(tmp_path / "m2")
