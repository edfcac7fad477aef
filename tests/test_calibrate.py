"""Scores that can be relied on: how they are fitted, stored and undone, and that everybody uses them."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import cfner
import oracle_groups as slow
from cfner.cli.main import app
from cfner.corpus.corpus import Corpus
from cfner.corpus.sentence import Sentence, Span
from cfner.errors import ConfigError, CorpusError, ModelError
from cfner.interop.export import export_model
from cfner.interop.onnx import OnnxTagger
from cfner.network.calibration import Calibration, TypeCalibration
from cfner.network.decoder import Decoder
from cfner.network.prediction import Prediction, tag
from cfner.practice.calibrate.calibrate import CalibrationReport, calibrate
from cfner.practice.calibrate.fit import FEWEST, fit, is_certain
from cfner.practice.calibrate.held_out import Found, HeldOut
from cfner.practice.calibrate.measure import measure
from cfner.practice.calibrate.page import page
from cfner.practice.evaluate.evaluate import evaluate, evaluate_steps
from cfner.practice.history.history import history, rollback
from cfner.practice.history.relabel import add_step, forget, merge, rename, write_same_weights
from cfner.serving.pipeline import Pipeline
from cfner.store.open import open_model
from cfner.store.step_files import read_facts, read_labels
from cfner.stream.labels import LabelSpace
from cfner.stream.stream import TaskStream
from cfner.tagger import ContinualTagger
from made_steps import seal
from random_groups import plain, random_space
from reading import word_by_word

FIGURES = {
    "animal": TypeCalibration(2.0, -0.5, -1.5, 0.9),
    "dish": TypeCalibration(0.5, 1.0, -0.7),
    "person": TypeCalibration(3.0, 0.2, 0.0),
}


@pytest.fixture(params=["two_steps", "own_others", "checkpoint_and_own"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return Path(shutil.copytree(request.getfixturevalue(request.param), tmp_path / "model"))


@pytest.fixture
def linear(checkpoint_and_own: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(checkpoint_and_own, tmp_path / "model"))


@pytest.fixture
def cosine(own_others: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(own_others, tmp_path / "model"))


def store(model: Path, figures: dict[str, TypeCalibration]) -> None:
    """Figures as a step, without measuring anything."""

    def write(path: Path, source: Any) -> None:
        record = {**read_facts(source), "kind": "calibrate", "name": "calibrate"}
        write_same_weights(path, source, read_labels(source), Calibration(figures), record)

    add_step(model, write)


def everything(corpus: Corpus) -> list[Sentence]:
    return [*corpus.train, *corpus.dev, *corpus.test]


def told(found: Sequence[Prediction]) -> str:
    return json.dumps([prediction.to_json() for prediction in found])


def triples(found: Sequence[Prediction]) -> list[list[tuple[str, int, int]]]:
    return [[(e.type, e.first, e.last) for e in prediction.entities] for prediction in found]


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)


# -- the decoder -----------------------------------------------------------------------------------------


def slow_decision(
    z: Sequence[float], others: Sequence[float], space: slow.Space, figures: Calibration
) -> tuple[int, float | None]:
    """(label, score) of a word, from the definitions: shifted to decide, biased and tempered to be shown."""
    shifted = [value + figures.of(type_).shift for value, type_ in zip(z, space.type_of, strict=True)]
    label = slow.decided(shifted, list(others), space)
    if label == space.other:
        return label, None
    own, scores = figures.of(space.type_of[label]), []
    for group in space.groups:
        labels = space.labels(group)
        mine = [c for c in labels if space.type_of[c] == space.type_of[label]]
        loudest = max(labels, key=lambda c: shifted[c])
        if not mine or loudest in space.silent:
            continue
        heat = {c: math.exp((z[c] + own.bias * (c in mine)) / own.temperature) for c in labels}
        rest = math.exp(others[group] / own.temperature)
        scores.append(sum(heat[c] for c in mine) / (rest + sum(heat.values())))
    return label, max(scores)


def random_words(draw: np.random.Generator) -> tuple[LabelSpace, list[Any], torch.Tensor]:
    labels, _, _ = random_space(draw, int(draw.integers(1, 4)))
    z = draw.normal(0, 2, (30, len(labels)))
    others = draw.normal(0, 2, (30, 1 + max(labels.group_of)))
    others[:, 0] = z[:, labels.other_id]
    pairs = list(zip(z.tolist(), others.tolist(), strict=True))
    return labels, pairs, torch.tensor([slow.columns(*pair, plain(labels)) for pair in pairs])


def random_figures(draw: np.random.Generator, types: Sequence[str]) -> dict[str, TypeCalibration]:
    return {
        type_: TypeCalibration(float(draw.uniform(0.3, 4)), float(draw.normal()), float(draw.normal()))
        for type_ in types
        if draw.random() < 0.7
    }


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_decisions_and_scores_are_those_of_the_definitions(seed: int) -> None:
    draw = np.random.default_rng(seed)
    labels, pairs, columns = random_words(draw)
    figures = Calibration(random_figures(draw, labels.types))
    decoder = Decoder(labels, figures)
    best = decoder.words_alone(columns)
    scores = decoder.scores_of(columns, best)
    for pair, label, score in zip(pairs, best.tolist(), scores.tolist(), strict=True):
        expected, shown = slow_decision(*pair, plain(labels), figures)
        assert label == expected
        if shown is not None:
            assert score == pytest.approx(shown, rel=1e-4, abs=1e-5)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_the_figures_of_a_type_change_no_other_type(seed: int) -> None:
    draw = np.random.default_rng(seed)
    labels, _, columns = random_words(draw)
    figures = random_figures(draw, labels.types)
    changed = {**figures, labels.types[0]: TypeCalibration(2.5, -1.0, -2.0)}
    one, two = Decoder(labels, Calibration(figures)), Decoder(labels, Calibration(changed))
    mine = list(labels.ids_of(labels.types[:1]))
    rest = [number for number in range(len(labels)) if number not in mine]
    assert torch.equal(one.columns(columns)[:, rest], two.columns(columns)[:, rest])
    before, after = one.words_alone(columns), two.words_alone(columns)
    scores, new_scores = one.scores_of(columns, before), two.scores_of(columns, after)
    same = (before == after) & ~torch.isin(before, torch.tensor([*mine, labels.other_id]))
    if not labels.merged and not labels.silent:  # a silenced group may speak again when a rival steps back
        assert torch.equal(scores[same], new_scores[same])


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_no_figures_change_nothing_bit_for_bit(seed: int) -> None:
    labels, _, columns = random_words(np.random.default_rng(seed))
    plain_decoder, calibrated = Decoder(labels), Decoder(labels, Calibration())
    best = plain_decoder.labels_of(columns, [len(columns)])
    assert torch.equal(best, calibrated.labels_of(columns, [len(columns)]))
    assert torch.equal(plain_decoder.scores_of(columns, best), calibrated.scores_of(columns, best))
    assert torch.equal(plain_decoder.margin(columns), calibrated.margin(columns))


# -- fitting ---------------------------------------------------------------------------------------------


def made_up(words: int, seed: int, too_sure: float = 3.0) -> HeldOut:
    """Words of one label each: the log-odds that a word is an A are its column over ``too_sure``, minus 1."""
    draw = np.random.default_rng(seed)
    labels = LabelSpace.of(["O", "I-A", "I-B"])
    odds = draw.normal(1, 1.5, words)
    is_a = draw.random(words) < 1 / (1 + np.exp(1 - odds))
    columns = torch.tensor(np.stack([np.zeros(words), odds * too_sure, np.full(words, -9.0)], 1)).float()
    gold = tuple(frozenset([Span(0, 1, "A")] if right else []) for right in is_a)
    return HeldOut(Decoder(labels), columns, (1,) * words, gold, tuple(range(words)))


def test_scores_that_are_too_sure_become_the_share_that_is_right() -> None:
    fitted = fit(made_up(4000, seed=1), ["A"], None)
    assert fitted.types["A"].temperature == pytest.approx(3, rel=0.2)
    assert fitted.types["A"].bias == pytest.approx(-3, rel=0.25)
    assert fitted.types["A"].shift == 0
    unseen = made_up(4000, seed=2)
    before, after = (measure(unseen, unseen.found(one), "A").error for one in (None, fitted))
    assert before is not None and after is not None
    assert before.low > 0.15 and after.value < 0.03


def test_a_promised_precision_is_kept_on_unseen_text() -> None:
    held_out, unseen = made_up(3000, seed=1), made_up(3000, seed=2)
    before = measure(unseen, unseen.found(None), "A")
    for wanted in (0.7, 0.8):
        figures = fit(held_out, ["A"], wanted)
        assert figures.types["A"].precision == wanted and figures.types["A"].shift < 0
        after = measure(unseen, unseen.found(figures), "A")
        assert before.precision is not None and after.precision is not None and after.recall is not None
        assert before.precision.value < wanted <= after.precision.value < wanted + 0.06
        assert after.recall.value > 0.2  # no stricter than it needs to be


def test_what_is_precise_enough_stays_and_what_cannot_be_is_left_alone() -> None:
    held_out = made_up(2000, seed=1)
    assert fit(held_out, ["A"], 0.4).types["A"].shift == 0
    impossible = fit(held_out, ["A"], 0.999).types["A"]
    assert (impossible.shift, impossible.precision) == (0, None)


@pytest.mark.parametrize(("right", "found"), [(59, 59), (58, 58), (93, 93), (92, 93), (180, 200), (181, 200)])
def test_certain_is_the_exact_binomial_test(right: int, found: int) -> None:
    for precision in (0.85, 0.95):
        chances = [
            math.comb(found, k) * precision**k * (1 - precision) ** (found - k) for k in range(found + 1)
        ]
        assert is_certain(right, found, precision) == (math.fsum(chances[right:]) <= 0.05)


def test_the_error_is_that_of_the_textbook() -> None:
    held_out = replace(made_up(4, seed=0), gold=(frozenset([Span(0, 1, "A")]),) * 4)
    found = [
        Found(n, "A", score, right)
        for n, (score, right) in enumerate([(0.95, True), (0.92, False), (0.61, True)])
    ]
    measured = measure(held_out, found, "A")
    assert measured.error is not None and measured.precision is not None
    expected = (2 * abs((0.95 + 0.92) / 2 - 0.5) + abs(0.61 - 1)) / 3
    assert measured.error.value == pytest.approx(expected)
    assert measured.error.low <= measured.error.value <= measured.error.high
    assert measured.precision.value == pytest.approx(2 / 3)
    assert [(one.mentions, round(one.score, 3), one.right) for one in measured.bins] == [
        (1, 0.61, 1.0),
        (2, 0.935, 0.5),
    ]


# -- a step of the model ---------------------------------------------------------------------------------


def test_it_is_a_step_that_a_rollback_undoes_bit_for_bit(model: Path, tiny_corpus: Corpus) -> None:
    texts = list(tiny_corpus.test)
    before, labels = told(ContinualTagger.load(model).predict(texts)), open_model(model).labels
    report = cfner.calibrate(model, everything(tiny_corpus))
    assert isinstance(report, CalibrationReport) and (report.step, report.parent) == (3, 2)
    assert "calibration error" in repr(report) and len(repr(report)) < 2000
    past = history(model)[-1]
    assert (past.kind, past.name, past.parent, past.current) == ("calibrate", "calibrate", 2, True)
    assert past.disk < 20_000  # the weights are shared
    after = ContinualTagger.load(model).predict(texts)
    assert triples(after) == triples(ContinualTagger.load(model, 2).predict(texts))  # decisions stay
    assert told(after) != before
    assert past.micro_f1 == history(model)[1].micro_f1  # and so do their scores
    rollback(model, 2)
    assert told(ContinualTagger.load(model).predict(texts)) == before
    assert open_model(model).calibration is None and open_model(model).labels == labels


def test_everybody_decides_and_scores_alike(cosine: Path, tiny_corpus: Corpus) -> None:
    store(cosine, FIGURES)
    loaded, texts = open_model(cosine), [" ".join(s.words) for s in tiny_corpus.test]
    found = tag(loaded, list(tiny_corpus.test))
    raw = tag(open_model(cosine, 2), list(tiny_corpus.test))
    assert triples(found) != triples(raw)  # the shifts leave mentions out
    tagger = ContinualTagger.load(cosine)
    assert told(tagger.predict(list(tiny_corpus.test))) == told(found)
    assert [list(spans) for spans in tagger.find(tiny_corpus.test)] == [list(p.spans) for p in found]
    served = Pipeline(loaded).tag(texts)
    for prediction, entities in zip(found, served, strict=True):
        assert [(e.type, e.first, e.last) for e in entities] == triples([prediction])[0]
        assert [e.score for e in entities] == pytest.approx([e.score for e in prediction.entities], abs=6e-4)


def test_spacy_evaluate_and_diff_use_it(cosine: Path, tiny_corpus: Corpus, tiny_data: Path) -> None:
    import spacy

    store(cosine, FIGURES)
    nlp = spacy.blank("en")
    nlp.add_pipe("cfner", config={"model": str(cosine)})
    found = tag(open_model(cosine), list(tiny_corpus.test))
    for prediction in found:
        doc = nlp(" ".join(prediction.sentence.words))
        assert [(span.label_, span.start, span.end) for span in doc.spans["cfner"]] == triples([prediction])[
            0
        ]
        shown = [entity.score for entity in prediction.entities]
        assert doc.spans["cfner"].attrs["scores"] == pytest.approx(shown, abs=1e-5)
    scored = json.loads(run("evaluate", cosine, tiny_data, "--json").stdout)
    expected = ContinualTagger.load(cosine).evaluate(tiny_corpus.test).to_json()
    assert scored["per_type"] == expected["per_type"]
    assert scored != json.loads(run("evaluate", cosine, tiny_data, "--json", "--step", 2).stdout)
    text = " ".join(found[0].sentence.words)
    assert run("diff", f"{cosine}@2", f"{cosine}@3", "--text", text).exit_code == 0


def test_a_precision_that_the_labels_deny_is_not_promised(cosine: Path, tiny_corpus: Corpus) -> None:
    sentences = everything(tiny_corpus)
    wrong = [  # a quarter of the sentences deny what the model finds
        sentence if number % 4 else sentence.with_spans([]) for number, sentence in enumerate(sentences)
    ]
    report = calibrate(cosine, wrong, precision=0.99)
    assert all(one.verdict in {"aimed at", "not reached", "too few mentions"} for one in report.types)
    calibration = open_model(cosine).calibration
    assert calibration is not None and not any(one.precision for one in calibration.types.values())


def test_too_few_mentions_get_no_promise(cosine: Path, tiny_corpus: Corpus) -> None:
    with pytest.raises(CorpusError, match=f"fewer than {FEWEST} mentions of every type"):
        calibrate(cosine, list(tiny_corpus.dev)[:10], precision=0.5)
    rare = [s for s in everything(tiny_corpus) if "dish" in s.types][:10]
    often = [s for s in everything(tiny_corpus) if "dish" not in s.types]
    by_type = {one.type: one for one in calibrate(cosine, rare + often * 2, precision=0.5).types}
    few = by_type["dish"]
    assert few.verdict == "too few mentions" and few.figures is None and 0 < few.before.found < FEWEST
    assert few.before == few.after
    calibration = open_model(cosine).calibration
    assert calibration is not None and "dish" not in calibration.types
    assert calibration.of("animal").precision == 0.5 and by_type["animal"].verdict == "promised"
    assert len(history(cosine)) == 3


def test_bad_calls_are_refused_and_add_nothing(cosine: Path, tiny_corpus: Corpus, tmp_path: Path) -> None:
    for precision in (0.0, 1.0, 95.0, float("nan")):
        with pytest.raises(ConfigError, match="must be between 0 and 1"):
            calibrate(cosine, everything(tiny_corpus), precision=precision)
    with pytest.raises(CorpusError, match="no sentence to use"):
        calibrate(cosine, [])
    with pytest.raises(ModelError):
        calibrate(tmp_path, everything(tiny_corpus))
    assert len(history(cosine)) == 2


def test_types_that_the_data_does_not_label_keep_their_figures(cosine: Path, tiny_corpus: Corpus) -> None:
    store(cosine, FIGURES)
    report = calibrate(cosine, [s.only(["animal", "city"]) for s in everything(tiny_corpus)])
    assert set(report.unlabelled) == {"dish", "person"}
    calibration = open_model(cosine).calibration
    assert calibration is not None
    assert {name: calibration.types[name] for name in ("dish", "person")} == {
        name: FIGURES[name] for name in ("dish", "person")
    }
    assert calibration.of("animal") != FIGURES["animal"]


def test_scores_alone_are_fitted_again_where_no_precision_is_asked_for(
    cosine: Path, tiny_corpus: Corpus
) -> None:
    store(cosine, {"animal": TypeCalibration(shift=-0.4, precision=0.6)})
    before = open_model(cosine).calibration
    calibrate(cosine, everything(tiny_corpus))
    after = open_model(cosine).calibration
    assert before is not None and after is not None
    assert (after.of("animal").shift, after.of("animal").precision) == (-0.4, 0.6)


def test_all_steps_are_scored_as_they_decide(cosine: Path, tiny_corpus: Corpus) -> None:
    store(cosine, {"animal": TypeCalibration(shift=-50.0)})
    test = [s.only(open_model(cosine).labels.types) for s in tiny_corpus.test]
    every = evaluate_steps(cosine, test)
    assert every.scores[3].counts["animal"].n_predicted == 0 < every.scores[2].counts["animal"].n_predicted
    assert every.scores[3].micro_f1 == evaluate(cosine, test).scores.micro_f1


def test_rename_carries_figures_along_and_merge_and_forget_drop_them(model: Path) -> None:
    store(model, FIGURES)
    assert rename(model, "animal", "beast").calibrated == ("beast", "dish", "person")
    renamed = open_model(model).calibration
    assert renamed is not None and renamed.of("beast") == FIGURES["animal"]
    merged = merge(model, ["beast", "city"], "beast")
    assert (merged.calibrated, merged.uncalibrated) == (("dish", "person"), ("beast",))
    gone = forget(model, ["dish"])
    assert (gone.calibrated, gone.uncalibrated) == (("person",), ("dish",))
    output = run("forget", model, "person").output
    assert "The calibration of person is no longer valid" in " ".join(output.split())
    assert open_model(model).calibration is None


def test_learning_on_keeps_the_figures_of_types_that_were_not_trained(
    own_others: Path, tiny_stream: TaskStream, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(own_others, tmp_path / "model"))
    rollback(folder, 1)
    figures = {"animal": FIGURES["animal"], "city": FIGURES["dish"]}
    store(folder, figures)
    tagger = ContinualTagger.load(folder, epochs=1)
    tagger.learn(tiny_stream[1])
    tagger.save(folder)
    learned = open_model(folder)
    assert learned.calibration == Calibration(figures)
    assert set(learned.labels.types) == {"animal", "city", "dish", "person"}
    assert history(folder)[-1].calibrated == ("animal", "city")
    again = ContinualTagger.load(folder, epochs=1)
    again.learn(tiny_stream[0])
    assert again.model.calibration is None  # both were trained again


# -- untrusted files -------------------------------------------------------------------------------------

GOOD = {"temperature": 1.5, "bias": 0.1, "shift": -0.5}


@pytest.mark.parametrize(
    "calibration",
    [
        None,
        [],
        {},
        {"animal": None},
        {"animal": {}},
        {"animal": {"temperature": 1.5}},
        {"animal": {**GOOD, "more": 1}},
        {"unicorn": GOOD},
        *({"animal": {**GOOD, "temperature": bad}} for bad in (0, -1, 1e-9, 1e9, "1", True, None, [1])),
        *(
            {"animal": {**GOOD, "shift": bad}}
            for bad in (1e300, -1e300, 10**400, "x", float("nan"), float("inf"))
        ),
        {"animal": {**GOOD, "bias": float("-inf")}},
        {"animal": {**GOOD, "precision": 2}},
    ],
)
def test_a_damaged_calibration_is_one_error(cosine: Path, tmp_path: Path, calibration: Any) -> None:
    step = cosine / "steps" / "0002"
    facts = json.loads((step / "labels.json").read_text())
    (step / "labels.json").write_text(json.dumps({**facts, "calibration": calibration}))
    seal(step)
    with pytest.raises(ModelError, match=r"labels\.json"):
        open_model(cosine)


# -- a threshold of one's own ------------------------------------------------------------------------------


def test_min_score_decides_in_place_of_the_shift(cosine: Path, tiny_corpus: Corpus, tmp_path: Path) -> None:
    store(cosine, FIGURES)
    loaded, sentences = open_model(cosine), list(tiny_corpus.test)
    everyone = tag(loaded, sentences, min_score=0.0)
    assert triples(everyone) == triples(tag(open_model(cosine, 2), sentences))  # shifts do not count
    scores = sorted(e.score for p in everyone for e in p.entities)
    limit = scores[len(scores) // 2]
    kept = tag(loaded, sentences, min_score=limit)
    assert [[e for e in p.entities if e.score >= limit] for p in everyone] == [list(p.entities) for p in kept]
    texts = [" ".join(sentence.words) for sentence in sentences]
    served = Pipeline(loaded, round(limit, 2)).tag(texts)
    assert all(e.score >= round(limit, 2) for entities in served for e in entities)
    assert sum(map(len, served)) < sum(len(p.entities) for p in everyone)
    words = " ".join(sentences[0].words)
    by_command = [
        len(json.loads(run("predict", cosine, words, "--json", "--min-score", score).stdout)["entities"])
        for score in (0, 1)
    ]
    assert by_command == [len(everyone[0].entities), 0] and by_command[0]
    assert run("predict", cosine, words, "--min-score", "1.5").exit_code == 2


# -- in the hands of others --------------------------------------------------------------------------------


def test_a_stock_pipeline_decides_as_calibrated(linear: Path, tiny_corpus: Corpus, tmp_path: Path) -> None:
    from transformers import pipeline

    store(linear, FIGURES)
    report = export_model(linear, tmp_path / "hf", "hf")
    assert report.agreement.same_label == report.agreement.words and not report.shifts_are_inexact
    find: Any = pipeline("token-classification", str(tmp_path / "hf"), aggregation_strategy="first")
    texts = [" ".join(sentence.words) for sentence in tiny_corpus.test]
    found = [{(e["entity_group"], e["start"], e["end"]) for e in entities} for entities in find(texts)]
    sentences = list(tiny_corpus.test)
    expected, uncalibrated = (
        [{(e.type, e.start, e.end) for e in p.entities} for p in tag(word_by_word(model), sentences)]
        for model in (open_model(linear), open_model(linear, 2))
    )
    assert found == expected != uncalibrated
    card = (tmp_path / "hf" / "README.md").read_text()
    assert "its scores are its own softmax" in card and "## Calibration" in card


def test_words_that_a_cosine_head_decides_otherwise_are_counted(
    cosine: Path, tiny_corpus: Corpus, tmp_path: Path
) -> None:
    store(cosine, FIGURES)
    lines = [" ".join(sentence.words) for sentence in everything(tiny_corpus)]
    (tmp_path / "text.txt").write_text("\n".join(lines), encoding="utf-8")
    report = export_model(cosine, tmp_path / "hf", "hf", check_text=tmp_path / "text.txt")
    otherwise = report.agreement.words - report.agreement.same_label
    assert report.shifts_are_inexact
    stock = tag(open_model(tmp_path / "hf"), everything(tiny_corpus))
    different = triples(stock) != triples(tag(open_model(cosine), everything(tiny_corpus)))
    assert different == (otherwise > 0)
    card = (tmp_path / "hf" / "README.md").read_text()
    assert f"{otherwise} of {report.agreement.words} words are decided otherwise" in card
    output = run("export", cosine, "--out", tmp_path / "again", "--check-text", tmp_path / "text.txt").output
    assert f"Different label: {otherwise} of {report.agreement.words} words" in output


def test_onnx_decides_and_scores_as_calibrated(cosine: Path, tiny_corpus: Corpus, tmp_path: Path) -> None:
    store(cosine, FIGURES)
    sentences = list(tiny_corpus.test)
    export_model(cosine, tmp_path / "onnx", "onnx")
    found, expected = (
        OnnxTagger.read(tmp_path / "onnx").predict(sentences),
        tag(open_model(cosine), sentences),
    )
    assert triples(found) == triples(expected)
    for one, two in zip(found, expected, strict=True):
        assert [e.score for e in one.entities] == pytest.approx([e.score for e in two.entities], abs=1e-4)
    assert "Scores of single mentions are calibrated" in (tmp_path / "onnx" / "README.md").read_text()
    facts = json.loads((tmp_path / "onnx" / "labels.json").read_text())
    facts["calibration"]["animal"]["temperature"] = -1
    (tmp_path / "onnx" / "labels.json").write_text(json.dumps(facts))
    with pytest.raises(ModelError, match="temperature"):
        OnnxTagger.read(tmp_path / "onnx")


# -- the command and its page ------------------------------------------------------------------------------


def test_the_command_tells_writes_a_page_and_adds_a_step(
    cosine: Path, tiny_data: Path, tmp_path: Path
) -> None:
    held_out = next(tiny_data.glob("train*"))
    target = tmp_path / "page.html"
    done = run("calibrate", cosine, held_out, "--precision", "0.8", "--html", target)
    shown = " ".join(done.output.split())
    assert done.exit_code == 0 and "Step 3 of" in shown and "cfner rollback" in shown
    html = target.read_text(encoding="utf-8")
    assert html.count("<svg") == 4 and "script" not in html.split("</head>")[1]
    with pytest.raises(CorpusError, match="the file exists"):
        run("calibrate", cosine, held_out, "--html", target)
    assert "calibrate, precision 0.8" in " ".join(step.name for step in history(cosine))
    as_json = json.loads(run("calibrate", cosine, held_out, "--json").stdout)
    assert as_json["step"] == 4 and {one["type"] for one in as_json["types"]} == {
        "animal",
        "city",
        "dish",
        "person",
    }
    assert json.loads((cosine / "steps" / "0004" / "report.json").read_text())["types"] == as_json["types"]


def test_hostile_names_stay_text_on_the_page(cosine: Path, tiny_corpus: Corpus) -> None:
    evil = "<script>alert(1)</script>"
    rename(cosine, "animal", evil)
    renamed = [
        s.with_spans([Span(p.start, p.end, evil if p.type == "animal" else p.type) for p in s.spans])
        for s in everything(tiny_corpus)
    ]
    assert evil not in page(calibrate(cosine, renamed))
