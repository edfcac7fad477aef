"""Model folders: read back bit for bit, whole or not at all, never overwritten, nothing unpickled."""

from __future__ import annotations

import json
import pickle
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import cfner
from cfner.batches.encoding import encode
from cfner.errors import ModelError
from cfner.files.atomic import temp_path
from cfner.files.json_files import read_json
from cfner.network.inference import outputs
from cfner.store.model_folder import CURRENT, SEAL, ModelFolder, step_name
from cfner.stream.stream import TaskStream
from cfner.tagger import ContinualTagger


@pytest.fixture
def folder(two_steps: Path, tmp_path: Path) -> Path:
    """A copy that may be damaged."""
    return Path(shutil.copytree(two_steps, tmp_path / "model"))


def logits(tagger: ContinualTagger, stream: TaskStream) -> torch.Tensor:
    model = tagger.model
    text = encode(stream.test, model.tokenizer, max_length=model.max_length, overlap=model.overlap)
    found = torch.empty(text.words, len(model.labels))
    for batch, out in outputs(model.network, text, batch_size=16):
        found[batch.refs] = out.logits
    return found


@pytest.mark.parametrize("head", ["cosine", "linear"])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_save_and_load_give_identical_logits(
    head: str, precision: str, tiny_settings: dict[str, Any], tiny_stream: TaskStream, tmp_path: Path
) -> None:
    tagger = ContinualTagger.from_pretrained(
        **{**tiny_settings, "epochs": 1, "head": head, "precision": precision}
    )
    for step in tiny_stream:
        tagger.learn(step)
        tagger.save(tmp_path / "model")
        loaded = ContinualTagger.load(tmp_path / "model")
        assert torch.equal(logits(loaded, tiny_stream), logits(tagger, tiny_stream))
        assert loaded.types == tagger.types
        assert loaded.config == tagger.config


def test_settings_that_are_none_come_back_as_none(
    tiny_settings: dict[str, Any], tiny_stream: TaskStream, tmp_path: Path
) -> None:
    tagger = ContinualTagger.from_pretrained(**{**tiny_settings, "epochs": 1, "clip": None})
    tagger.learn(tiny_stream[0])
    tagger.save(tmp_path)
    assert ContinualTagger.load(tmp_path).config.clip is None


def test_steps_name_their_parents_and_labels_only_grow(two_steps: Path) -> None:
    store = ModelFolder(two_steps)
    assert store.names() == ["0001", "0002"]
    first, second = store.step(1), store.step(2)
    assert first.read_json("step.json")["parent"] is None
    assert second.read_json("step.json")["parent"] == first.hash
    before, after = (step.read_json("labels.json")["labels"] for step in (first, second))
    assert after[: len(before)] == before
    for step in (first, second):
        store.verify(step)


def test_a_step_says_where_it_came_from(two_steps: Path, tiny_stream: TaskStream) -> None:
    facts = ModelFolder(two_steps).step(2).read_json("step.json")
    assert facts["types"] == list(tiny_stream[1].types)
    assert facts["known"] == list(tiny_stream[0].types)
    assert facts["data"]["train"]["sentences"] == len(tiny_stream[1].train)
    assert {"config", "seed", "versions", "history", "best_epoch", "method"} <= set(facts)
    assert {"cfner", "torch", "transformers", "python"} <= set(facts["versions"])


def test_an_earlier_step_can_be_loaded_and_made_current(folder: Path, tiny_stream: TaskStream) -> None:
    first = ContinualTagger.load(folder, step=1)
    assert first.types == tiny_stream[0].types
    ModelFolder(folder).point_to(1)
    assert torch.equal(logits(ContinualTagger.load(folder), tiny_stream), logits(first, tiny_stream))


def test_scores_are_saved_with_the_step(two_steps: Path, tiny_stream: TaskStream) -> None:
    saved = ModelFolder(two_steps).step().read_json("scores.json")
    assert saved.pop("set") == tiny_stream.test_set.to_json()
    assert ContinualTagger.load(two_steps).evaluate(tiny_stream.test_up_to(-1)).to_json() == saved


# -- immutable ---------------------------------------------------------------------------------------------


def test_a_step_that_was_not_learned_from_the_current_one_is_refused(
    folder: Path, tiny_settings: dict[str, Any], tiny_stream: TaskStream
) -> None:
    before = {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    stranger = ContinualTagger.from_pretrained(**{**tiny_settings, "epochs": 1})
    stranger.learn(tiny_stream[0])
    with pytest.raises(ModelError, match="not the one that this model was learned from") as caught:
        stranger.save(folder)
    assert str(folder) in str(caught.value)
    assert {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()} == before


def test_after_a_rollback_the_next_step_gets_a_new_name(folder: Path, tiny_stream: TaskStream) -> None:
    store = ModelFolder(folder)
    abandoned = (store.step(2).folder / SEAL).read_bytes()
    store.point_to(1)
    tagger = ContinualTagger.load(folder, epochs=1)
    tagger.learn(tiny_stream[1])
    saved = tagger.save(folder)
    assert saved.name == "0003"
    assert saved.read_json("step.json")["parent"] == store.step(1).hash
    assert (store.step(2).folder / SEAL).read_bytes() == abandoned


def test_saving_twice_writes_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tiny_stream: TaskStream
) -> None:
    tagger = ContinualTagger.load(folder)
    assert tagger.save(folder).name == "0002"
    monkeypatch.chdir(folder.parent)
    assert tagger.save("model").name == "0002"  # the same folder under another name
    assert ModelFolder(folder).names() == ["0001", "0002"]


def test_nothing_learned_is_nothing_to_save(tiny_settings: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="learned nothing"):
        ContinualTagger.from_pretrained(**tiny_settings).save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_an_interrupted_write_leaves_no_step_and_the_old_one_current(folder: Path) -> None:
    store = ModelFolder(folder)

    def write(partial: Path) -> None:
        (partial / "model.safetensors").write_bytes(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.add(write)
    assert sorted(path.name for path in store.steps_path.iterdir()) == ["0001", "0002"]
    assert store.current_name() == "0002"
    ContinualTagger.load(folder)


def test_what_a_killed_process_left_behind_is_no_step(folder: Path) -> None:
    """Killed while writing: a folder under its partial name, and perhaps one without its seal."""
    for leftover in (".partial-abc", "0003"):
        (folder / "steps" / leftover).mkdir()
        (folder / "steps" / leftover / "model.safetensors").write_bytes(b"half")
    assert ModelFolder(folder).names() == ["0001", "0002"]
    ContinualTagger.load(folder)


# -- damaged -----------------------------------------------------------------------------------------------


def test_without_a_model_the_error_names_the_place(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="There is no model here") as caught:
        ContinualTagger.load(tmp_path / "nothing")
    assert str(tmp_path / "nothing") in str(caught.value)


def test_a_missing_pointer_is_an_error(folder: Path) -> None:
    (folder / CURRENT).unlink()
    with pytest.raises(ModelError, match="There is no model here"):
        ContinualTagger.load(folder)
    assert ContinualTagger.load(folder, step=2).types  # the steps are still there


@pytest.mark.parametrize("pointer", ["0009", "../../etc", "", "\u00e9", "1\n2"])
def test_a_pointer_to_nowhere_is_an_error(folder: Path, pointer: str) -> None:
    (folder / CURRENT).write_text(pointer, encoding="utf-8")
    with pytest.raises(ModelError) as caught:
        ContinualTagger.load(folder)
    assert str(folder) in str(caught.value)


def test_a_step_that_is_not_there_is_an_error_that_lists_those_that_are(folder: Path) -> None:
    with pytest.raises(ModelError, match=r"no step '0007'.*Steps here: 0001, 0002"):
        ContinualTagger.load(folder, step=7)


def test_a_pickle_in_place_of_the_weights_is_not_read(folder: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return Path.touch, (folder / "sprung",)

    (folder / "steps" / "0002" / "model.safetensors").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(ModelError) as caught:
        ContinualTagger.load(folder)
    assert str(folder / "steps" / "0002") in str(caught.value)
    assert not (folder / "sprung").exists()


DAMAGES = {
    "missing": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "cut short": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "another table": lambda path: path.write_text("{}"),
    "no table": lambda path: path.write_text("[1]"),
    "noise": lambda path: path.write_bytes(bytes(range(256)) * 20),
}
FILES = [
    "config.json",
    "labels.json",
    "model.safetensors",
    "scores.json",
    "seal.json",
    "step.json",
    "tokenizer.json",
    "tokenizer_config.json",
]


def test_these_are_the_files_of_a_step(two_steps: Path) -> None:
    assert sorted(path.name for path in (two_steps / "steps" / "0002").iterdir()) == FILES


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_step_is_an_error_or_the_very_same_model(
    file: str, damage: str, folder: Path, two_steps: Path, tiny_stream: TaskStream
) -> None:
    DAMAGES[damage](folder / "steps" / "0002" / file)
    try:
        damaged = ContinualTagger.load(folder)
    except ModelError as error:
        assert str(folder) in str(error)
        assert len(str(error).splitlines()) == 1
    else:
        whole = ContinualTagger.load(two_steps)
        assert torch.equal(logits(damaged, tiny_stream), logits(whole, tiny_stream))


@pytest.mark.parametrize("file", FILES)
def test_verify_finds_a_changed_byte_in_any_file(file: str, folder: Path) -> None:
    store = ModelFolder(folder)
    step = store.step()
    path = step.folder / file
    content = bytearray(path.read_bytes())
    at = content.rindex(b"a") if file.endswith(".json") else len(content) - 3
    content[at] ^= 1
    path.write_bytes(content)
    with pytest.raises(ModelError) as caught:
        store.verify(step)
    assert str(step.folder) in str(caught.value)


@pytest.mark.parametrize("hash_", ["<img src=x onerror=alert(1)>", "", "A" * 64, "a" * 63, "a" * 65, 10**63])
def test_the_hash_of_a_seal_is_a_hash(hash_: str | int, folder: Path) -> None:
    """Also of a step that is not the current one, which nobody verifies."""
    path = folder / "steps" / "0001" / SEAL
    path.write_text(json.dumps({**read_json(path), "hash": hash_}))
    with pytest.raises(ModelError, match=r"0001/seal\.json: The seal of step '0001' is damaged"):
        ModelFolder(folder).step(1)


def test_verify_finds_a_changed_byte_anywhere_in_the_seal(folder: Path) -> None:
    store = ModelFolder(folder)
    step = store.step()
    path = step.folder / "seal.json"
    sealed = path.read_bytes()
    for changed in changes(sealed):
        path.write_bytes(changed)
        with pytest.raises(ModelError):
            store.verify(step)
    path.write_bytes(sealed)
    store.verify(step)


def test_a_changed_byte_anywhere_in_the_pointer_is_found(folder: Path) -> None:
    path = folder / CURRENT
    pointer = path.read_bytes()
    for changed in changes(pointer):
        path.write_bytes(changed)
        with pytest.raises(ModelError):
            ModelFolder(folder).step()


def changes(content: bytes) -> Iterator[bytes]:
    """One byte changed at each place, and each line end to another that readers of text take for the same."""
    for at, byte in enumerate(content):
        for other in {byte ^ 1} | ({ord("\r")} if byte == ord("\n") else set()):
            yield content[:at] + bytes([other]) + content[at + 1 :]


def test_verify_finds_missing_and_added_files(folder: Path) -> None:
    store = ModelFolder(folder)
    step = store.step()
    (step.folder / "extra.txt").write_text("")
    with pytest.raises(ModelError, match="not part of the step"):
        store.verify(step)
    (step.folder / "extra.txt").unlink()
    (step.folder / "scores.json").unlink()
    with pytest.raises(ModelError, match="missing"):
        store.verify(step)


def test_weights_of_other_names_or_shapes_are_refused(folder: Path) -> None:
    from safetensors.torch import save_file

    path = folder / "steps" / "0002" / "model.safetensors"
    weights = load_file(path)
    save_file({**weights, "head.weight": weights["head.weight"][:-1].contiguous()}, path)
    with pytest.raises(ModelError):
        ContinualTagger.load(folder)


def test_labels_that_do_not_fit_the_weights_are_refused(folder: Path) -> None:
    path = folder / "steps" / "0002" / "labels.json"
    facts = json.loads(path.read_text())
    facts["labels"] = facts["labels"][:-2]
    path.write_text(json.dumps(facts))
    with pytest.raises(ModelError):
        ContinualTagger.load(folder)


def test_a_pointer_with_another_hash_is_an_error_and_a_rollback_repairs_it(folder: Path) -> None:
    store = ModelFolder(folder)
    pointer = folder / CURRENT
    pointer.write_text(pointer.read_text().replace("0002", "0001"))
    with pytest.raises(ModelError, match="with a different hash"):
        ContinualTagger.load(folder)
    store.point_to(2)
    ContinualTagger.load(folder)


def test_half_written_leftovers_are_swept_before_the_next_step(folder: Path, tiny_stream: TaskStream) -> None:
    (folder / "steps" / ".partial-abc").mkdir()
    (folder / "steps" / ".partial-abc" / "model.safetensors").write_bytes(b"half")
    (folder / ".CURRENT.77.partial").write_text("00")
    ModelFolder(folder).point_to(1)
    tagger = ContinualTagger.load(folder, epochs=1)
    tagger.learn(tiny_stream[1])
    tagger.save(folder)
    assert not list(folder.rglob("*.partial*")) and not list(folder.rglob(".partial*"))


@pytest.mark.parametrize("what", ["sweep", "add"])
def test_nothing_is_touched_where_a_linked_folder_of_steps_leads_to(
    what: str, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "theirs" / ".partial-data").mkdir(parents=True)
    (folder / "steps").rename(folder / "moved")
    (folder / "steps").symlink_to(tmp_path / "theirs")
    store = ModelFolder(folder)
    with pytest.raises(ModelError, match="not a plain folder"):
        store.sweep() if what == "sweep" else store.add(lambda path: (path / "x").touch())
    assert [path.name for path in (tmp_path / "theirs").iterdir()] == [".partial-data"]


def test_links_and_folders_are_not_swept(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "file").touch()
    (folder / "steps" / ".partial-link").symlink_to(tmp_path / "theirs")
    (folder / ".link.partial").symlink_to(tmp_path / "theirs" / "file")
    (folder / ".folder.partial").mkdir()
    ModelFolder(folder).sweep()
    assert (tmp_path / "theirs" / "file").exists() and (folder / ".folder.partial").exists()
    assert (folder / "steps" / ".partial-link").is_symlink() and (folder / ".link.partial").is_symlink()


def test_the_pointer_is_not_written_through_a_link(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "theirs").write_text("theirs")
    temp_path(folder / CURRENT).symlink_to(tmp_path / "theirs")
    ModelFolder(folder).point_to(1)
    assert (tmp_path / "theirs").read_text() == "theirs"
    assert ModelFolder(folder).current_name() == "0001" and not (folder / CURRENT).is_symlink()


@pytest.mark.parametrize("name", ["one", "-1", "", "1.5", "../1", "²", "٣", "1234567890", "9" * 5000])
def test_steps_are_numbers(name: str) -> None:
    with pytest.raises(ModelError, match="is not a step"):
        step_name(name)


def test_a_folder_of_another_name_is_no_step(folder: Path) -> None:
    for name in ("²", "٣٣٣٣", "3", "00003", "1234567890", "10000", "9999"):
        shutil.copytree(folder / "steps" / "0002", folder / "steps" / name)
    store = ModelFolder(folder)
    assert store.names() == ["0001", "0002", "9999", "10000"]
    with pytest.raises(ModelError, match="its name is not a step name"):
        store.refuse_unsealed()


def test_half_a_pair_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('["\\ud83d\\ude00"]')
    assert read_json(tmp_path / "x.json") == ["😀"]
    (tmp_path / "x.json").write_text('["\\ud83d"]')
    with pytest.raises(ModelError, match="cannot be read"):
        read_json(tmp_path / "x.json")


def test_the_package_never_unpickles_but_in_one_place() -> None:
    """The way in would be one of these. Old repositories on the hub have nothing but pickled weights: of
    those, and of nothing that lies in a folder, tensors are read.
    """
    ways = re.compile(
        r"torch\.load\(|\bimport pickle|\bfrom pickle|\bcloudpickle|\bjoblib|\bdill\b|allow_pickle=True"
    )
    root = Path(cfner.__file__).parent
    found = [
        (path.relative_to(root).as_posix(), line.strip())
        for path in sorted(root.rglob("*.py"))
        for line in path.read_text().splitlines()
        if ways.search(line)
    ]
    restricted = 'found = torch.load(file, map_location="cpu", weights_only=True)'
    assert found == [("store/hf_checkpoint.py", restricted)]
