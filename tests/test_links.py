"""Steps share the bytes that they have in common, where the file system allows it."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from cfner.errors import ModelError
from cfner.practice.history.history import verify
from cfner.practice.history.relabel import merge, rename
from cfner.store.link_steps import link_or_copy, link_steps
from cfner.store.model_folder import ModelFolder
from cfner.tagger import ContinualTagger

WEIGHTS = "model.safetensors"


@pytest.fixture
def folder(two_steps: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(two_steps, tmp_path / "model"))


def bytes_on_disk(folder: Path) -> int:
    """Of each file once, however many names it has."""
    files = {(stat.st_dev, stat.st_ino): stat.st_size for path in folder.rglob("*") if (stat := path.stat())}
    return sum(files.values())


def same_file(one: Path, other: Path) -> bool:
    return (one / WEIGHTS).samefile(other / WEIGHTS)


def no_links(monkeypatch: pytest.MonkeyPatch, reason: int) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(reason, os.strerror(reason))

    monkeypatch.setattr(os, "link", refuse)


def test_a_rename_and_a_merge_take_the_room_of_their_records_alone(folder: Path) -> None:
    steps, before = folder / "steps", bytes_on_disk(folder)
    sealed = {path: path.read_bytes() for path in steps.rglob("*") if path.is_file()}
    weights = (steps / "0002" / WEIGHTS).stat().st_size
    rename(folder, "animal", "creature")
    merge(folder, ["creature", "dish"], "thing")
    assert same_file(steps / "0002", steps / "0003") and same_file(steps / "0003", steps / "0004")
    assert not (steps / "0001" / WEIGHTS).samefile(steps / "0002" / WEIGHTS)
    assert bytes_on_disk(folder) - before < weights / 2
    verify(folder)
    assert {path: path.read_bytes() for path in sealed} == sealed


@pytest.mark.parametrize("reason", [errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP])
def test_where_nothing_can_be_linked_steps_are_copied(
    reason: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_links(monkeypatch, reason)
    rename(folder, "animal", "creature")
    steps = folder / "steps"
    assert not same_file(steps / "0002", steps / "0003")
    assert (steps / "0002" / WEIGHTS).read_bytes() == (steps / "0003" / WEIGHTS).read_bytes()
    verify(folder)


@pytest.mark.parametrize("linked", [True, False])
def test_steps_in_another_folder_do_not_need_the_first(
    linked: bool, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not linked:
        no_links(monkeypatch, errno.EXDEV)
    source, target = ModelFolder(folder), ModelFolder(tmp_path / "other")
    saved = [source.step(name).saved() for name in source.names()]
    link_steps(source, target)
    target.point_to(2)
    assert same_file(source.steps_path / "0001", target.steps_path / "0001") is linked
    shutil.rmtree(folder)
    assert [step.saved for step in verify(target.path)] == saved
    ContinualTagger.load(target.path)


def test_a_file_that_somebody_else_may_change_is_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "theirs").write_text("x")
    monkeypatch.setattr(os, "geteuid", lambda: (tmp_path / "theirs").stat().st_uid + 1)
    link_or_copy(tmp_path / "theirs", tmp_path / "mine")
    assert (tmp_path / "mine").read_text() == "x"
    assert not (tmp_path / "mine").samefile(tmp_path / "theirs")


def test_a_file_that_is_there_is_not_replaced(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(name)
    with pytest.raises(FileExistsError):
        link_or_copy(tmp_path / "one", tmp_path / "two")
    assert (tmp_path / "two").read_text() == "two"


def test_a_step_that_holds_a_symbolic_link_is_not_taken(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (folder / "steps" / "0001" / "notes.json").symlink_to(tmp_path / "secret")
    target = ModelFolder(tmp_path / "other")
    with pytest.raises(ModelError, match=r"notes\.json: This is not a plain file"):
        link_steps(ModelFolder(folder), target)
    assert list(target.steps_path.iterdir()) == []
