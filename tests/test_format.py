"""Model folders of other versions: those of 0.1 keep working as they are, newer ones are refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from cfner.errors import ModelError
from cfner.practice.explain.replay import replay_step
from cfner.practice.history.history import history, rollback, verify
from cfner.practice.history.relabel import rename
from cfner.store.model_folder import ModelFolder
from cfner.store.open import open_model
from cfner.store.save import as_stored
from cfner.stream.step import Step
from cfner.stream.stream import TaskStream
from cfner.tagger import ContinualTagger
from made_steps import seal

DATA = Path(__file__).parent / "data"
EXPECTED = json.loads((DATA / "model-0.1-predictions.json").read_text(encoding="utf-8"))


@pytest.fixture
def old_model(tmp_path: Path) -> Path:
    return Path(shutil.copytree(DATA / "model-0.1", tmp_path / "model"))


def steps_of(model: Path) -> dict[str, bytes]:
    return {
        f"{path.relative_to(model)}": path.read_bytes()
        for number in (1, 2, 3)
        for path in sorted((model / "steps" / f"{number:04d}").iterdir())
    }


def predicted_as_then(model: Path, step: int) -> None:
    found = ContinualTagger.load(model, step).predict(EXPECTED["texts"])
    for then, now in zip(EXPECTED["steps"][str(step)], found, strict=True):
        assert [tuple(entity[:3]) for entity in then] == [(e.start, e.end, e.type) for e in now.entities]
        assert [e.score for e in now.entities] == pytest.approx([entity[3] for entity in then], abs=1e-5)


@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_model_of_version_0_1_predicts_what_it_did(old_model: Path, step: int) -> None:
    predicted_as_then(old_model, step)


def test_a_model_of_version_0_1_goes_on_and_back(old_model: Path, tiny_stream: TaskStream) -> None:
    before = steps_of(old_model)
    assert [step.kind for step in verify(old_model)] == ["learn", "learn", "rename"]
    tagger = ContinualTagger.load(old_model, epochs=1)
    tagger.learn(Step(tiny_stream[1].types, tiny_stream[1].train, known=("creature", "city")))
    tagger.save(old_model)
    rename(old_model, "creature", "beast")
    assert [step.parent for step in verify(old_model)] == [None, 1, 2, 3, 4]
    assert ContinualTagger.load(old_model).types == ("beast", "city", "dish", "person")
    formats = [ModelFolder(old_model).step(n).read_json("step.json").get("format") for n in range(1, 6)]
    assert formats == [None, None, None, 6, 6]
    rollback(old_model, 3)
    assert ModelFolder(old_model).current_name() == "0003"
    predicted_as_then(old_model, 3)
    assert steps_of(old_model) == before


def test_a_step_of_version_0_1_can_be_explained(old_model: Path, tiny_stream: TaskStream) -> None:
    teacher, student = (ContinualTagger.load(old_model, number, method="cfner") for number in (1, 2))
    assert not student.model.labels.ordered and teacher.types != student.types
    new = student.types[len(teacher.types) :]
    data = tuple(sentence.only(new) for sentence in tiny_stream[1].train)
    step = Step(new, data, known=teacher.types, index=1)
    assert replay_step(teacher, student, step, None, 3).student is student


@pytest.mark.parametrize(
    ("wrote", "told"),
    [
        ("0.7.1", "Install cfner 0.7.1 or newer."),
        ("\x1b[31m", "Install a newer version of cfner."),
        (None, "Install a newer version of cfner."),
    ],
)
def test_a_newer_format_is_refused_with_the_version_to_install(
    old_model: Path, wrote: Any, told: str
) -> None:
    folder = old_model / "steps" / "0003"
    record = json.loads((folder / "step.json").read_text(encoding="utf-8"))
    # whatever a later version does with the rest
    newer = {"format": 99, "versions": {"cfner": wrote}, "types": {"changed": record["types"]}}
    (folder / "step.json").write_text(json.dumps(newer), encoding="utf-8")
    seal(folder)
    readers: list[Any] = [ContinualTagger.load, open_model, history, verify]
    for read in readers:
        with pytest.raises(ModelError, match="in format 99; this version reads formats up to 6") as caught:
            read(old_model)
        assert str(caught.value).endswith(told)
        assert "\x1b" not in str(caught.value)
    rollback(old_model, 2)  # earlier steps are as good as before
    predicted_as_then(old_model, 2)


@pytest.mark.parametrize(
    ("has", "number"),
    [
        ((), 2),
        (("experts",), 3),
        (("experts", "calibrated"), 4),
        (("parts",), 5),
        (("calibrated", "ordered"), 6),
    ],
)
def test_a_step_has_the_lowest_format_that_its_files_need(has: tuple[str, ...], number: int) -> None:
    assert as_stored({}, None, **dict.fromkeys(has, True))["format"] == number


def test_a_record_says_its_format_whatever_it_said_before() -> None:
    assert as_stored({"format": 1, "parent": "x", "name": "a"}, None) == {
        "format": 2,
        "parent": None,
        "name": "a",
    }
