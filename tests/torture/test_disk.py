"""A disk that is full, a folder that may not be written, two runs in one folder."""

from __future__ import annotations

import ctypes
import errno
import os
import random
import resource
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cfner.corpus.corpus import Corpus
from cfner.store.model_folder import ModelFolder
from cfner.tagger import ContinualTagger
from cfner.training.progress import Silent
from children import Child, Tell, Work, command, fork, weights_of
from counts import tell, times

EVERY = times(1, quick=4, short=25)  # every n-th write fails
SIZES = times(40, quick=8, short=2)
PAIRS = times(200, quick=6, short=2)

# a write as Python's audit events see it: a file opened to be written, a folder made, a name given
_WRITES = {"os.mkdir", "os.rename"}


def _is_write(event: str, arguments: tuple[Any, ...], inside: str) -> bool:
    if event == "open":
        path, _, flags = arguments
        writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        return bool(writes) and str(path).startswith(inside)
    return event in _WRITES and str(arguments[0]).startswith(inside)


def _failing(inside: Path, nth: int, number: int, told: Tell) -> None:
    """In a child, for good: the nth write below ``inside`` and all after it fail."""
    count = 0

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal count
        if not _is_write(event, arguments, str(inside)):
            return
        count += 1
        if count >= nth:
            if count == nth:
                told(f"failed {event}")
            raise OSError(number, os.strerror(number), str(arguments[0]))

    sys.addaudithook(hook)


def _train(data: Path, out: Path, encoder: Path) -> list[object]:
    stream = ["--first", "2", "--per-step", "2", "--min-mentions", "1", "--encoder", str(encoder)]
    settings = ["--set", "checkpoint_minutes=0", "--set", "max_length=32", "--epochs", "2"]
    return ["train", data, "--out", out, "--resume", *stream, *settings]


@pytest.fixture
def small_data(tiny_corpus: Corpus, tmp_path: Path) -> Path:
    from cfner.corpus.writers import write_sentences

    folder = tmp_path / "data"
    for split, sentences in (("train", tiny_corpus.train[:16]), ("test", tiny_corpus.test[:6])):
        write_sentences(sentences, folder / f"{split}.conll")
    return folder


class Trial:
    """A run that fails, what must be true then, and that it goes on when there is room again."""

    def __init__(self, data: Path, encoder: Path, folder: Path) -> None:
        self.data, self.encoder, self.folder = data, encoder, folder
        self.whole = folder / "whole"
        assert self.run(self.whole).end() == 0, (folder / "said").read_text()

    def run(self, out: Path, prepare: Callable[[Tell], None] | None = None) -> Child:
        def work(told: Tell) -> None:
            if prepare is not None:
                prepare(told)
            command(_train(self.data, out, self.encoder), self.folder / "said")

        return fork(work)

    def check(self, name: str, prepare: Callable[[Path, Tell], None], reason: str) -> bool:
        """Whether it failed at all: beyond the last write there is nothing to fail."""
        out = self.folder / name
        child = self.run(out, lambda told: prepare(out, told))
        code, said = child.end(), (self.folder / "said").read_text()
        if code == 0:
            shutil.rmtree(out)
            return False
        assert code == 2, f"{name}: exit code {code}: {said} {child.lines}"
        assert "Error: " in said and reason in said and "Traceback" not in said, f"{name}: {said}"
        assert str(self.folder) in said.replace("\n", ""), said
        if out.exists() and ModelFolder(out).names():
            for step in ModelFolder(out).names():
                ModelFolder(out).verify(ModelFolder(out).step(step))
        if out.exists() and ModelFolder(out).exists():
            assert ContinualTagger.load(out).types
        again = self.run(out)
        assert again.end() == 0, (self.folder / "said").read_text()
        assert weights_of(out) == weights_of(self.whole)
        assert not [p for p in out.rglob("*") if "partial" in p.name]
        shutil.rmtree(out)
        return True


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS], ids=["full", "read-only"])
def test_every_write_that_fails_is_told_and_the_run_goes_on_later(
    number: int, small_data: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    trial = Trial(small_data, tiny_encoder, tmp_path)
    failed, nth = 0, 1
    while trial.check(
        f"write-{nth}", lambda out, told, n=nth: _failing(out, n, number, told), os.strerror(number)
    ):
        failed += 1
        nth += EVERY
    assert failed >= 2
    tell(f"{failed} writes failed with '{os.strerror(number)}' (every {EVERY}.), each told, each resumed")


def test_a_file_that_does_not_fit_is_told_whoever_writes_it(
    small_data: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    """The kernel itself cuts files off at a size, so writes outside Python (weights, tokenizer) fail too."""
    trial = Trial(small_data, tiny_encoder, tmp_path)
    # the unfinished step is the largest file of all; it is gone when a run is whole
    sizes = sorted({path.stat().st_size for path in trial.whole.rglob("*") if path.is_file()} - {0})
    weights = max(sizes)
    limits = [size - 1 for size in sizes] + [weights + 1000, 2 * weights]
    draw = random.Random(0)
    chosen = limits if len(limits) <= SIZES else draw.sample(limits, SIZES)

    failed = sum(
        trial.check(f"size-{size}", lambda out, told, s=size: _limit(s), "File too large") for size in chosen
    )
    assert failed
    tell(f"{failed} of {len(chosen)} sizes did not hold a run; each was told, each run resumed")


def _limit(size: int) -> None:
    """In a child, for good: no file may grow beyond this size."""
    # what the command says goes to a file too, so leave room for one sentence
    resource.setrlimit(resource.RLIMIT_FSIZE, (max(size, 2000),) * 2)


def _outputs(model: Path, texts: Path, out: Path) -> dict[str, list[object]]:
    """Commands that write a file or a folder for the user."""
    return {
        "export": ["export", model, "--out", out],
        "predict": ["predict", model, "--file", texts, "--out", out, "--as", "jsonl"],
        "convert": ["data", "convert", texts, out, "--to", "jsonl", "--format", "conll"],
        "page": ["diff", model, texts, "--plain", "--html", out],
    }


def _content(place: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}


@pytest.mark.parametrize("output", _outputs(Path(), Path(), Path()))
def test_an_output_that_does_not_fit_is_told_and_the_old_one_stays(
    output: str, two_steps: Path, tiny_corpus: Corpus, tmp_path: Path
) -> None:
    texts, folder, said = tmp_path / "texts", tmp_path / "out", tmp_path / "said"
    texts.write_text("".join(f"{word}\tO\n" for s in tiny_corpus.train[:20] for word in s.words))
    folder.mkdir()
    words = _outputs(two_steps, texts, folder / "new")[output]

    def run(size: int | None, *more: str) -> tuple[int, str]:
        def work(told: Tell) -> None:
            if size is not None:
                _limit(size)
            command([*words, *more], said)

        child = fork(work)
        return child.end(), said.read_text() + "".join(child.lines)

    assert run(None) == (0, said.read_text())
    whole = _content(folder)
    largest = max(map(len, whole.values()))
    assert largest > 2001, "too small to be cut off"
    sizes = [largest - 1, *(random.Random(0).randrange(2000, largest) for _ in range(SIZES - 1))]
    for size in sizes:
        code, told = run(size, "--overwrite")
        assert code == 2, f"{size}: {told}"
        assert told.startswith("Error: ") and "File too large" in told and "Traceback" not in told, told
        assert str(folder) in told
        assert _content(folder) == whole, "the old one is not as it was, or something else is left"
    shutil.rmtree(folder)
    folder.mkdir()
    assert run(sizes[0])[0] == 2
    assert not list(folder.iterdir())
    tell(f"{output}: {len(sizes) + 1} sizes did not hold it; each was told, and the old one stayed")


def _without_privileges() -> None:
    """In a child, for good: root may write anywhere, unless it gives that up."""
    if os.getuid() != 0:
        return
    header, none = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    if ctypes.CDLL(None, use_errno=True).capset(header, none) != 0:
        raise OSError(ctypes.get_errno(), "capset")


def test_a_folder_that_may_not_be_written_is_left_as_it_is(two_steps: Path, tmp_path: Path) -> None:
    from cfner.errors import ModelError
    from cfner.practice.history.history import rollback
    from cfner.practice.history.relabel import rename

    model = Path(shutil.copytree(two_steps, tmp_path / "model"))
    before = {path: path.read_bytes() for path in model.rglob("*") if path.is_file()}

    def work(told: Tell) -> None:
        _without_privileges()
        for attempt in (lambda: rename(model, "city", "place"), lambda: rollback(model, 1)):
            try:
                attempt()
            except ModelError as error:
                told(f"refused {error}")

    for folder in (model, model / "steps"):
        folder.chmod(0o555)
    try:
        child = fork(work)
        assert child.end() == 0, child.lines
    finally:
        for folder in (model, model / "steps"):
            folder.chmod(0o755)
    refused = [line for line in child.lines if line.startswith("refused")]
    assert len(refused) == 2, child.lines
    assert all("Permission denied" in line and str(model) in line for line in refused), refused
    assert {path: path.read_bytes() for path in model.rglob("*") if path.is_file()} == before


# -- two runs in one folder ---------------------------------------------------------------------------------


class Holds(Silent):
    """Stops in the first step until it is let go."""

    def __init__(self, told: Tell, gate: int) -> None:
        self.told, self.gate = told, gate
        self.first = True

    def batch(self, loss: float, sentences: int) -> None:
        if self.first:
            self.first = False
            self.told("holding")
            os.read(self.gate, 1)


def _contender(work: Work, out: Path, start: int, gate: int) -> Child:
    from cfner.errors import ModelError

    def run(told: Tell) -> None:
        told("ready")
        os.read(start, 1)
        try:
            work.run(out, told, Holds(told, gate))
        except ModelError as error:
            told(f"refused {error}")

    return fork(run)


def test_of_two_runs_in_one_folder_exactly_one_wins(
    tiny_corpus: Corpus, tiny_encoder: Path, tmp_path: Path
) -> None:
    # loader workers are children of the holder: when it is killed, they must not keep its lock
    works = [Work.of(tiny_corpus, tiny_encoder, epochs=1, workers=workers) for workers in (0, 1)]
    killed = 0
    for pair in range(PAIRS):
        work, out = works[pair % 4 == 3], tmp_path / f"pair-{pair}"
        start_read, start_write = os.pipe()
        gate_read, gate_write = os.pipe()
        two = [_contender(work, out, start_read, gate_read) for _ in range(2)]
        for child in two:
            child.wait_for("ready")
        os.write(start_write, b"xx")
        holding = [child.wait_for("holding") for child in two]
        assert sorted(holding) == [False, True], [child.lines for child in two]
        winner, loser = two[holding.index(True)], two[holding.index(False)]
        assert loser.end() == 0
        assert any("Another process is writing here" in line for line in loser.lines), loser.lines
        if pair % 2:
            winner.kill()
            assert winner.code == -signal.SIGKILL
            killed += 1
            winner = _contender(work, out, start_read, gate_read)
            os.write(start_write, b"x")
            assert winner.wait_for("holding"), f"the lock outlived its holder: {winner.lines}"
        os.write(gate_write, b"x")
        assert winner.end() == 0, winner.lines
        assert len(ModelFolder(out).names()) == len(work.stream)
        shutil.rmtree(out)
        for end in (start_read, start_write, gate_read, gate_write):
            os.close(end)
    tell(f"{PAIRS} paired starts, {killed} with a killed holder: one winner each, no stale lock")
