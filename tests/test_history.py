"""Steps are kept, named after their parents, and can be gone back to; names of types can change."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cfner.cli.main import app
from cfner.corpus.corpus import Corpus
from cfner.errors import ModelError, StreamError
from cfner.practice.history.history import history, rollback, verify
from cfner.practice.history.prune import prune
from cfner.practice.history.relabel import forget, merge, rename
from cfner.store.model_folder import ModelFolder
from cfner.tagger import ContinualTagger

TEXTS = ["alan turing saw the red fox in cape town", "a curry with emmy and old kurt", "oslo"]


@pytest.fixture
def model(two_steps: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(two_steps, tmp_path / "model"))


def predicted(model: Path) -> str:
    found = ContinualTagger.load(model).predict(TEXTS)
    return json.dumps([prediction.to_json() for prediction in found])


def test_history_tells_steps_and_parents(model: Path) -> None:
    first, second = history(model)
    assert (first.number, first.parent, first.current) == (1, None, False)
    assert (second.number, second.parent, second.current) == (2, 1, True)
    assert first.types == ("animal", "city") and second.types == ("dish", "person")
    assert set(second.all_types) == {"animal", "city", "dish", "person"}
    assert second.method == "cfner" and second.sentences and second.micro_f1 is not None
    assert second.data is not None and set(second.data["train"]["mentions"]) == {"dish", "person"}


def test_rollback_gives_the_very_predictions_back(model: Path) -> None:
    second = predicted(model)
    rollback(model, 1)
    first = predicted(model)
    rollback(model, 2)
    assert predicted(model) == second != first


def test_rollback_to_a_damaged_or_missing_step_changes_nothing(model: Path) -> None:
    weights = model / "steps/0001/model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    for step in (1, 7):
        with pytest.raises(ModelError):
            rollback(model, step)
    assert ModelFolder(model).current_name() == "0002"
    with pytest.raises(ModelError, match="There is no model here"):
        rollback(model.with_name("gone"), 1)


def test_one_goes_back_from_a_step_of_which_nothing_can_be_read(model: Path) -> None:
    for file in ("seal.json", "step.json"):
        (model / "steps/0002" / file).write_text("[]")
    assert rollback(model, 1).number == 1
    assert ModelFolder(model).current_name() == "0001"


def test_a_renamed_type_is_the_same_type(model: Path) -> None:
    before = predicted(model)
    past = rename(model, "person", "PER")
    assert (past.number, past.kind, past.parent, past.types) == (3, "rename", 2, ("PER",))
    assert predicted(model) == before.replace('"person"', '"PER"')
    assert history(model)[-1].micro_f1 == history(model)[-2].micro_f1
    rollback(model, 2)
    assert predicted(model) == before


def test_merged_types_are_one(model: Path, tiny_corpus: Corpus) -> None:
    before = ContinualTagger.load(model).predict(list(tiny_corpus.test))
    past = merge(model, ["person", "animal"], "being")
    assert past.all_types == ("being", "city", "dish") or set(past.all_types) == {"being", "city", "dish"}
    after = ContinualTagger.load(model)
    found = after.predict(list(tiny_corpus.test))
    for old, new in zip(before, found, strict=True):
        words = lambda p: {(i, _m(e.type)) for e in p.entities for i in range(e.first, e.last)}  # noqa: E731
        assert words(old) == words(new)
    assert after.model.labels.ids_of(["being"])


def _m(type_: str) -> str:
    return "being" if type_ in {"person", "animal"} else type_


def test_a_merged_model_learns_on(model: Path, tiny_corpus: Corpus, tmp_path: Path) -> None:
    from cfner.stream.step import Step

    merge(model, ["person", "animal"], "person")
    rename(model, "dish", "food")
    tagger = ContinualTagger.load(model, epochs=2)
    train = tuple(s.only(["person"]) for s in tiny_corpus.train)
    tagger.learn(Step(types=("person",), train=train, known=("city", "food")))
    tagger.save(model)
    assert [past.parent for past in verify(model)] == [None, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("types", "into", "message"),
    [
        (["person"], "city", "already"),
        (["nobody"], "x", "no type 'nobody'"),
        (["person"], "person", "already called"),
        (["person"], "two words", "cannot be called"),
        (["person"], "", "cannot be called"),
        (["person"], "\x1b[31m", "cannot be called"),
    ],
)
def test_wrong_names_are_refused_and_nothing_is_added(
    model: Path, types: list[str], into: str, message: str
) -> None:
    with pytest.raises(StreamError, match=message):
        rename(model, types[0], into)
    assert len(history(model)) == 2


def test_verify_finds_any_changed_byte_of_the_pointer(model: Path) -> None:
    pointer = model / "CURRENT"
    honest = pointer.read_bytes()
    for at, byte in enumerate(honest):
        others = (b"0123456789abcdef").replace(bytes([byte]), b"")  # what a pointer may well have there
        pointer.write_bytes(honest[:at] + others[:1] + honest[at + 1 :])
        with pytest.raises(ModelError):
            verify(model)


def test_verify_finds_a_changed_byte_and_a_missing_parent(model: Path) -> None:
    rename(model, "city", "place")
    assert len(verify(model)) == 3
    shutil.rmtree(model / "steps/0002")
    with pytest.raises(ModelError, match="lineage"):
        verify(model)


def test_verify_finds_a_step_that_lost_its_seal(model: Path) -> None:
    rollback(model, 1)  # nothing names the second step now
    (model / "steps/0002/seal.json").unlink()
    assert len(history(model)) == 1
    with pytest.raises(ModelError, match="0002: This looks like a step, but it has no seal"):
        verify(model)


@pytest.mark.parametrize("change", [rename, merge])
def test_nothing_is_removed_where_linked_steps_lead_to(
    change: Callable[..., object], model: Path, tmp_path: Path
) -> None:
    theirs = tmp_path / "theirs"
    (model / "steps").rename(theirs)
    (theirs / ".partial-data").mkdir()
    (model / "steps").symlink_to(theirs)
    before = sorted(theirs.rglob("*"))
    with pytest.raises(ModelError, match="not a plain folder"):
        change(model, "animal" if change is rename else ["animal", "city"], "beast")
    assert sorted(theirs.rglob("*")) == before


def test_an_impossible_date_of_a_file_is_told(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Calendar:
        @staticmethod
        def fromtimestamp(*_: object) -> None:  # not every file system keeps a date that does this
            raise ValueError("year 33658 is out of range")

    monkeypatch.setattr("cfner.store.model_folder.datetime", Calendar)
    with pytest.raises(ModelError, match=r"seal\.json: The date"):
        history(model)


def test_random_histories_come_back_exactly(model: Path) -> None:
    draw = random.Random(1)
    known = {int(past.number): None for past in history(model)}
    outputs: dict[int, str] = {}
    for turn in range(12):
        types = list(ContinualTagger.load(model).types)
        kind = draw.choice(["rename", "merge", "forget", "rollback"])
        if kind == "rename":
            rename(model, draw.choice(types), f"t{turn}")
        elif kind == "merge" and len(types) > 1:
            merge(model, draw.sample(types, 2), f"t{turn}")
        elif kind == "forget" and len(types) > 1:
            forget(model, draw.choice(types))
        else:
            rollback(model, draw.choice(sorted(known)))
        number = int(ModelFolder(model).current_name())
        known[number] = None
        assert outputs.setdefault(number, predicted(model)) == predicted(model)
    verify(model)


def test_the_commands(model: Path) -> None:
    run = CliRunner()
    done = run.invoke(app, ["history", str(model), "--verify"])
    assert done.exit_code == 0 and "dish" in done.stdout and "All files are unchanged" in done.stdout
    assert run.invoke(app, ["rename", str(model), "dish", "food"]).exit_code == 0
    assert run.invoke(app, ["merge", str(model), "food", "animal", "--into", "thing"]).exit_code == 0
    assert "Step 1 of" in run.invoke(app, ["rollback", str(model), "1"]).stdout
    steps = json.loads(run.invoke(app, ["history", str(model), "--json"]).stdout)
    assert [step["kind"] for step in steps] == ["learn", "learn", "rename", "merge"]
    assert [step["current"] for step in steps] == [True, False, False, False]


def test_a_model_saved_to_a_new_folder_begins_there(model: Path, tiny_corpus: Corpus, tmp_path: Path) -> None:
    from cfner.stream.step import Step

    tagger = ContinualTagger.load(model, epochs=1)
    train = tuple(s.only(["person"]) for s in tiny_corpus.train)
    tagger.learn(Step(types=("person",), train=train, known=("animal", "city", "dish")))
    tagger.save(tmp_path / "new")
    (only,) = verify(tmp_path / "new")
    assert only.parent is None and only.origin == history(model)[-1].hash
    told = CliRunner().invoke(app, ["history", str(tmp_path / "new"), "--verify"])
    assert told.exit_code == 0 and "came from a step of another folder" in told.stdout


def weights(model: Path) -> list[str]:
    return sorted(file.parent.name for file in model.glob("steps/*/*.safetensors"))


def test_pruned_steps_keep_their_record_alone(model: Path, tmp_path: Path) -> None:
    before = history(model)
    size = (model / "steps/0001/model.safetensors").stat().st_size
    run = CliRunner()
    dry = json.loads(run.invoke(app, ["prune", str(model), "--keep", "1", "--dry-run", "--json"]).stdout)
    assert dry == {"steps": [1], "freed": size, "shared": 0} and weights(model) == ["0001", "0002"]
    done = run.invoke(app, ["prune", str(model), "--keep", "1"])
    assert done.exit_code == 0 and "the weights of step 1 of" in done.stdout
    assert weights(model) == ["0002"]
    after = verify(model)
    assert [step.pruned for step in after] == [True, False]
    assert [step.hash for step in after] == [step.hash for step in before]
    assert [step.figures for step in after] == [step.figures for step in before]
    told = run.invoke(app, ["history", str(model), "--verify"], env={"COLUMNS": "200"}).stdout
    assert "learn (pruned)" in told and "The weights of step 1 were removed" in told
    for refused in (lambda: rollback(model, 1), lambda: ContinualTagger.load(model, 1)):
        with pytest.raises(ModelError, match=r"removed to free the disk.*With weights: 2"):
            refused()
    assert ModelFolder(model).current_name() == "0002"
    assert "nothing to remove" in run.invoke(app, ["prune", str(model), "--keep", "1"]).stdout
    assert rename(model, "city", "place").number == 3


def test_pruning_spares_the_current_step_and_what_it_shares(model: Path) -> None:
    rename(model, "city", "place")  # step 3 has the weights of step 2
    assert prune(model, 1).steps == (1,)
    rollback(model, 2)
    assert len(verify(model)) == 3 and predicted(model)


def test_pruning_spares_a_step_that_was_gone_back_to(model: Path) -> None:
    rollback(model, 1)
    assert prune(model, 1).steps == () and weights(model) == ["0001", "0002"]


def test_pruning_one_folder_leaves_the_other_its_files(model: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(model, copy, copy_function=os.link)
    done = prune(model, 1)
    assert done.freed == 0 and done.shared > 0
    assert not any(step.pruned for step in verify(copy))


def test_a_pruning_that_was_stopped_goes_on(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", _stop)
        with pytest.raises(KeyboardInterrupt):
            prune(model, 1)
    assert verify(model)[0].pruned and weights(model) == ["0001", "0002"]
    assert prune(model, 1).steps == (1,) and weights(model) == ["0002"]


def _stop(path: Path, missing_ok: bool = False) -> None:
    if path.suffix == ".safetensors":
        raise KeyboardInterrupt
    os.remove(path) if path.exists() else None  # noqa: PTH107 - unlink is what was exchanged


def test_a_pruned_step_hides_no_other_damage(model: Path) -> None:
    prune(model, 1)
    (model / "steps/0001/labels.json").unlink()
    with pytest.raises(ModelError, match="missing"):
        verify(model)


def test_a_step_shows_itself_in_a_line(model: Path) -> None:
    last = history(model)[-1]
    assert repr(last).startswith(f"PastStep({last.number}, ") and "current" in repr(last)
    assert len(repr(last)) < 120
