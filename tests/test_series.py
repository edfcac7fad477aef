"""Figures are compared only if they were measured on the same sentences; others are shown apart."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from cfner import evaluate
from cfner.cli.main import app
from cfner.corpus.corpus import Corpus
from cfner.corpus.writers import write_sentences
from cfner.errors import ConfigError, ModelError
from cfner.interop.export import export_model
from cfner.practice.history.history import history, verify
from cfner.practice.history.prune import prune
from cfner.practice.history.relabel import rename
from cfner.serving.app import create_app
from cfner.serving.step_list import read_steps
from cfner.store.model_folder import ModelFolder
from cfner.stream.sentence_set import SentenceSet
from cfner.stream.stream import TaskStream
from made_steps import seal


@pytest.fixture
def model(two_steps: Path, tmp_path: Path) -> Path:
    """Two steps, both sealed with their scores on the test data of the stream."""
    return Path(shutil.copytree(two_steps, tmp_path / "model"))


@pytest.fixture
def dev(tiny_corpus: Corpus, tmp_path: Path) -> Path:
    path = tmp_path / "dev.conll"
    write_sentences(tiny_corpus.dev, path, format="conll")
    return path


@pytest.fixture
def cities(tiny_corpus: Corpus, tmp_path: Path) -> Path:
    path = tmp_path / "cities.conll"
    write_sentences([s.only(["city"]) for s in tiny_corpus.dev], path, format="conll")
    return path


def cfner(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "200"})


def score_files(model: Path) -> list[Path]:
    return sorted((model / "scores").glob("*"))


def test_the_same_sentences_are_the_same_set_wherever_they_are_from(
    tiny_corpus: Corpus, tiny_data: Path, tiny_stream: TaskStream
) -> None:
    test = tiny_corpus.test
    assert SentenceSet.of(test, "a") == SentenceSet.of(Corpus.read(tiny_data).test, "b")
    assert SentenceSet.of(test, "a") == tiny_stream.test_set
    assert SentenceSet.of(test, "a") != SentenceSet.of(test[:-1], "a")
    assert SentenceSet.of(test, "a") != SentenceSet.of([s.only(["city"]) for s in test], "a")


def test_a_stream_that_drops_types_is_scored_on_the_same_file(tiny_corpus: Corpus) -> None:
    fewer = TaskStream.split(tiny_corpus, first=1, per_step=1, order=["city", "dish"], min_mentions=1)
    assert fewer.test_set == SentenceSet.of(tiny_corpus.test, "")


def test_steps_that_are_scored_on_these_sentences_are_not_scored_again(
    model: Path, tiny_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cfner.practice.evaluate.steps._scored", None)
    done = evaluate(model, tiny_data, save=True, all_steps=True)
    assert list(done.scores) == [1, 2] and not score_files(model)


def test_all_steps_are_scored_kept_and_shown_apart(model: Path, dev: Path) -> None:
    before = {p: p.read_bytes() for p in (model / "steps").rglob("*") if p.is_file()}
    done = cfner("evaluate", model, dev, "--all-steps", "--save", "--json")
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert [step["step"] for step in said["steps"]] == [1, 2]
    for step in said["steps"]:  # what one step is scored with by itself
        alone = evaluate(model, dev, step=step["step"]).scores
        assert {t: c["f1"] for t, c in step["per_type"].items()} == alone.f1_of
    assert {p: p.read_bytes() for p in before} == before
    (file,) = score_files(model)
    assert file.stem == said["set"]["hash"][:16] and said["set"]["name"] == "dev.conll"
    first, second = verify(model)
    for step in (first, second):  # both series have two steps and as many sentences: one is the main one
        assert step.figures is not None and len(step.elsewhere) == 1
        assert step.figures.on != step.elsewhere[0].on
    assert first.figures is not None and second.figures is not None
    assert first.figures.on == second.figures.on
    told = cfner("history", model).stdout
    assert "Micro F1 of all steps is on the same sentences" in told
    assert "On other sentences, not comparable" in told and "dev.conll, 20 sentences" in told


def test_the_series_that_covers_most_steps_is_the_main_one(model: Path, dev: Path, tiny_data: Path) -> None:
    evaluate(model, dev, step=1, save=True)
    first, second = history(model)
    assert first.figures is not None and first.figures.label.startswith("tiny (test), 20 sentences")
    assert [each.label[:8] for each in first.elsewhere] == ["dev.conl"] and second.elsewhere == ()


def test_a_mean_over_some_types_says_so(model: Path, cities: Path) -> None:
    done = cfner("evaluate", model, cities, "--all-steps", "--save")
    assert done.exit_code == 0 and "No mean for step 1, 2" in done.stdout
    assert "animal" not in done.stdout
    for step in (1, 2):
        (model / f"steps/{step:04d}/scores.json").unlink()
        seal(model / f"steps/{step:04d}")
    evaluate(model, cities, save=True, all_steps=True)  # the hashes are different ones now
    for past in history(model):
        assert past.figures is not None and past.figures.types == ("city",)
        assert past.figures.micro_f1 is not None and past.micro_f1 is None
    told = cfner("history", model).stdout
    assert "(1/2)" in told and "(1/4)" in told


def test_scores_of_an_earlier_version_stand_alone(model: Path, tmp_path: Path) -> None:
    for step in (1, 2):
        file = model / f"steps/{step:04d}/scores.json"
        old = {key: value for key, value in json.loads(file.read_text()).items() if key != "set"}
        file.write_text(json.dumps(old | {"scored_on": "old types on the guard's sentences; new ones not"}))
        seal(file.parent)
    for past in history(model):
        assert past.figures is None and past.micro_f1 is None and len(past.elsewhere) == 1
        assert past.elsewhere[0].micro_f1 is None and past.elsewhere[0].per_type
    told = cfner("history", model).stdout
    assert "Not comparable" in told and "the sentences are not recorded" in told
    export_model(model, tmp_path / "out")
    card = (tmp_path / "out/README.md").read_text()
    assert "model-index" not in yaml.safe_load(card.split("---\n")[1])
    assert "the sentences are not recorded" in card and "micro" not in card
    series = read_steps(model).series
    assert [one.recorded for one in series] == [False, False]
    assert all(scores.micro_f1 is None for one in series for scores in one.steps.values())


def test_the_card_publishes_one_set(model: Path, cities: Path, tmp_path: Path) -> None:
    evaluate(model, cities, save=True)
    export_model(model, tmp_path / "out")
    card = (tmp_path / "out/README.md").read_text()
    (result,) = yaml.safe_load(card.split("---\n")[1])["model-index"][0]["results"]
    assert result["dataset"]["name"].startswith("tiny (test), 20 sentences, SHA-256 ")
    scores = json.loads((model / "steps/0002/scores.json").read_text())
    assert result["metrics"][0]["value"] == pytest.approx(scores["micro_f1"] / 100, abs=1e-4)
    assert "Also measured on other sentences, not comparable: cities.conll, 20 sentences" in card


def test_the_card_says_over_which_types_a_mean_is(model: Path, cities: Path, tmp_path: Path) -> None:
    (model / "steps/0002/scores.json").unlink()
    seal(model / "steps/0002")
    evaluate(model, cities, save=True)
    export_model(model, tmp_path / "out")
    facts = yaml.safe_load((tmp_path / "out/README.md").read_text().split("---\n")[1])
    names = [m["name"] for m in facts["model-index"][0]["results"][0]["metrics"]]
    assert names == ["F1 (micro, entity level over city)", "F1 (macro over city)"]


def test_a_renamed_type_goes_on_in_its_series(model: Path) -> None:
    rename(model, "person", "PER")
    _, second, third = history(model)
    assert second.figures is not None and third.figures is not None
    assert third.figures.on == second.figures.on
    assert third.figures.per_type["PER"] == second.figures.per_type["person"]


def test_what_has_no_steps_keeps_no_scores(model: Path, dev: Path, tmp_path: Path) -> None:
    export_model(model, tmp_path / "out")
    for wrong in (["--save"], ["--all-steps"]):
        assert cfner("evaluate", tmp_path / "out", dev, *wrong).exit_code != 0
    with pytest.raises(ConfigError, match="does not label"):
        evaluate(model, dev, save=True, all_types=True)


Change = Callable[[dict[str, Any]], object]


def broken_scores(content: dict[str, Any]) -> None:
    step = next(iter(content["steps"]))
    content["steps"][step]["per_type"]["city"]["tp"] = -1


def unknown_type(content: dict[str, Any]) -> None:
    for scores in content["steps"].values():
        scores["per_type"]["<img>"] = scores["per_type"]["city"]


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.clear(),
        lambda content: content["set"].update(hash="../../etc/passwd"),
        lambda content: content["set"].update(hash="0" * 64),
        lambda content: content["set"].update(sentences=-1),
        lambda content: content["set"].update(name=["x"]),
        lambda content: content.update(steps=[1]),
        broken_scores,
        unknown_type,
    ],
)
def test_damaged_scores_are_refused_and_a_server_goes_on(
    model: Path, dev: Path, change: Change, caplog: pytest.LogCaptureFixture
) -> None:
    evaluate(model, dev, save=True, all_steps=True)
    (file,) = score_files(model)
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))
    with pytest.raises(ModelError, match="scores is damaged") as error:
        verify(model)
    assert file.name in str(error.value)
    found = read_steps(model)
    assert found.series == [] and "the scores cannot be read" in caplog.text
    assert [facts.problem for facts in found.steps] == [None, None]


def test_a_link_is_not_followed(model: Path, dev: Path, tmp_path: Path) -> None:
    evaluate(model, dev, save=True, all_steps=True)
    (model / "scores").rename(tmp_path / "elsewhere")
    (model / "scores").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ModelError, match="not a plain folder"):
        history(model)


def test_scores_of_steps_that_are_not_there_are_passed_over(model: Path, dev: Path) -> None:
    evaluate(model, dev, save=True, all_steps=True)
    (file,) = score_files(model)
    content = json.loads(file.read_text())
    content["steps"]["f" * 64] = next(iter(content["steps"].values()))
    file.write_text(json.dumps(content))
    (model / "scores/notes.txt").write_text("mine")
    assert [len(past.elsewhere) for past in verify(model)] == [1, 1]


def test_the_server_lists_series_and_sees_a_new_one(model: Path, dev: Path) -> None:
    before = read_steps(model)
    assert [sorted(one.steps) for one in before.series] == [[1, 2]]
    assert read_steps(model, before).series is before.series  # nothing was read again
    evaluate(model, dev, save=True, all_steps=True)
    after = read_steps(model, before)
    assert [sorted(one.steps) for one in after.series] == [[1, 2], [1, 2]]
    facts = TestClient(create_app(model), "http://localhost").get("/model").json()
    assert {one["label"][:8] for one in facts["series"]} == {"dev.conl", "tiny (te"}
    assert all("scores" not in step for step in facts["steps"])


def test_what_a_killed_process_left_is_swept(model: Path, dev: Path) -> None:
    evaluate(model, dev, save=True, all_steps=True)
    left = model / "scores/.0123456789abcdef.json.77.partial"
    left.write_text("{")
    ModelFolder(model).sweep()
    assert not left.exists() and len(score_files(model)) == 1


def test_a_pruned_step_is_told_and_keeps_its_figures(model: Path) -> None:
    before = read_steps(model)
    prune(model, 1)
    after = read_steps(model, before)
    assert [facts.pruned for facts in after.steps] == [True, False] and after.series == before.series
    with TestClient(create_app(model), "http://localhost") as client:
        refused = client.post("/predict", json={"text": "ada saw the fox", "step": 1})
        assert refused.status_code == 404 and "removed to free the disk" in refused.text
        assert client.post("/predict", json={"text": "ada saw the fox"}).status_code == 200
