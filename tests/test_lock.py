"""One writer at a time, and no lock that outlives its holder."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cfner.errors import ModelError
from cfner.files.json_files import refuse_unusual
from cfner.files.lock import locked
from cfner.practice.history.history import rollback
from cfner.runs.stream_run import run_stream
from cfner.stream.stream import TaskStream
from cfner.training.config import TrainingConfig

HOLD = """
import sys, time
from pathlib import Path
from cfner.files.lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@contextmanager
def held(folder: Path) -> Iterator[subprocess.Popen[str]]:
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    try:
        yield holder
    finally:
        holder.kill()
        holder.wait()


def test_the_second_is_told(tmp_path: Path) -> None:
    with held(tmp_path), pytest.raises(ModelError, match="Another process is writing here"), locked(tmp_path):
        pass


def test_a_killed_holder_leaves_no_lock(tmp_path: Path) -> None:
    with held(tmp_path) as holder:
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
        with locked(tmp_path):
            pass


def test_a_lock_that_is_freed_in_a_moment_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So is one that a child has inherited in the moment in which its parent was killed."""
    with held(tmp_path) as holder:

        def freed_meanwhile(_: float) -> None:
            holder.kill()
            holder.wait()

        clock = SimpleNamespace(monotonic=lambda: 0.0, sleep=freed_meanwhile)  # of no machine, however busy
        monkeypatch.setattr("cfner.files.lock.time", clock)
        with locked(tmp_path):
            assert holder.returncode == -signal.SIGKILL


@pytest.mark.parametrize("leaves", ["removed", "renamed"])
def test_a_lock_on_a_folder_that_is_gone_is_none(
    leaves: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waits has the file open that the holder takes away with the folder."""
    folder = tmp_path / "work"
    honest = fcntl.flock

    def too_late(handle: int, operation: int) -> None:
        monkeypatch.setattr("fcntl.flock", honest)
        shutil.rmtree(folder) if leaves == "removed" else folder.rename(tmp_path / "done")
        honest(handle, operation)

    monkeypatch.setattr("fcntl.flock", too_late)
    with locked(folder), (folder / ".lock").open() as newcomer, pytest.raises(BlockingIOError):
        honest(newcomer, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK])
def test_a_file_system_without_locks_is_told(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", fails)
    with pytest.raises(ModelError, match=f"cannot be locked: {os.strerror(number)}"), locked(tmp_path):
        pass


def test_somebody_who_waits_gets_it_when_it_is_free(tmp_path: Path) -> None:
    with held(tmp_path) as holder:
        started = time.monotonic()
        holder.terminate()
        with locked(tmp_path, wait=30):
            assert time.monotonic() - started < 20


@pytest.mark.parametrize("what", ["link", "folder", "pipe"])
def test_a_lock_is_a_plain_file(what: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    {
        "link": lambda path: path.symlink_to(tmp_path / "outside"),
        "folder": Path.mkdir,
        "pipe": os.mkfifo,
    }[what](folder / ".lock")
    with pytest.raises(ModelError, match=r"\.lock: This is not a plain file. Remove it"), locked(folder):
        pass
    assert not (tmp_path / "outside").exists()


def test_a_lock_that_somebody_makes_in_this_moment_is_plain(tmp_path: Path) -> None:
    """Two who come at the same time: one makes the file while the other looks whether it is one."""
    lock, done = tmp_path / ".lock", threading.Event()

    def come_and_go() -> None:
        while not done.is_set():
            lock.touch()
            lock.unlink()

    other = threading.Thread(target=come_and_go)
    other.start()
    try:
        for _ in range(3000):
            refuse_unusual(lock)
    finally:
        done.set()
        other.join()


def test_a_process_may_enter_its_own_lock_again(tmp_path: Path) -> None:
    with locked(tmp_path), locked(tmp_path / "."):
        pass
    with held(tmp_path):  # and has left it altogether
        pass


def test_two_runs_in_one_folder(
    tiny_stream: TaskStream, tiny_settings: dict[str, Any], tmp_path: Path
) -> None:
    with held(tmp_path / "run"), pytest.raises(ModelError, match="Another process"):
        run_stream(tiny_stream, TrainingConfig(**tiny_settings), tmp_path / "run")


def test_a_rollback_waits_for_a_step_that_is_being_saved(
    two_steps: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cfner.practice.history.history.PATIENCE", 0.2)
    model = Path(shutil.copytree(two_steps, tmp_path / "model"))
    with held(model), pytest.raises(ModelError, match="Another process"):
        rollback(model, 1)


FORK = """
import os, signal, sys, time
from pathlib import Path
from cfner.files.lock import locked
with locked(Path(sys.argv[1])):
    if not os.fork():
        print("forked", flush=True)  # it has run, so it has let go
        os.close(1)
    time.sleep(60)
"""


def test_a_child_of_a_killed_holder_does_not_keep_the_lock(tmp_path: Path) -> None:
    """A loader's worker outlives the process that forked it by some seconds."""
    holder = subprocess.Popen(
        [sys.executable, "-c", FORK, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert holder.stdout is not None and holder.stdout.readline() == "forked\n"
        with pytest.raises(ModelError), locked(tmp_path, wait=0):
            pass
        holder.kill()
        holder.wait()
        with locked(tmp_path, wait=0):
            pass
    finally:
        os.killpg(holder.pid, signal.SIGKILL)  # the child that was left behind
        holder.wait()
