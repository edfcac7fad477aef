"""Kill a training run at random moments, again and again: nothing it had told is lost, and it goes on."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cfner import learn
from cfner.corpus.corpus import Corpus
from cfner.corpus.writers import write_sentences
from cfner.errors import ModelError
from cfner.practice.history.history import verify
from cfner.store.model_folder import ModelFolder
from cfner.training.progress import Silent
from cfner.training.unfinished_step import FILE
from children import Child, Tell, Work, command, fork, tell_of_saving, weights_of
from counts import tell, times

KILLS = times(1000, quick=40, short=2)
COMMANDS = times(20, quick=1, short=0)
LEARNS = times(300, quick=20, short=1)


class Starts(Silent):
    """Tells where a step goes on."""

    def __init__(self, told: Any) -> None:
        self.told = told

    def start(self, name: str, epochs: int, batches: int) -> None:
        self.told(f"start {epochs}")


@pytest.fixture
def work(tiny_corpus: Corpus, tiny_encoder: Path) -> Work:
    return Work.of(tiny_corpus, tiny_encoder)


def _begin(work: Work, out: Path) -> Child:
    def run(told: Tell) -> None:
        work.run(out, told, Starts(told))

    return fork(run)


def _results(out: Path) -> dict[str, Any]:
    found = json.loads((out / "results.json").read_text())["runs"][0]
    return {key: value for key, value in found.items() if key != "measured"}


class Acknowledged:
    """What the children of one run have told, and whether it still holds."""

    def __init__(self, epochs: int) -> None:
        self.epochs = epochs
        self.steps: dict[str, str] = {}
        self.kept = 0  # epochs of the unfinished step

    def listen(self, lines: list[str]) -> None:
        for line in lines:
            match line.split():
                case ["saved", name, seal]:
                    self.steps[name], self.kept = seal, 0
                case ["kept", _, epoch]:
                    self.kept = int(epoch)

    def check(self, out: Path) -> None:
        """Every step that was told of is there, whole, and not behind the current one."""
        folder = ModelFolder(out)
        for name, seal in self.steps.items():
            step = folder.step(name)
            assert step.hash == seal
            folder.verify(step)
        if self.steps:
            assert folder.current_name() >= max(self.steps)

    def check_start(self, lines: list[str], saved_before: int) -> None:
        """A resumed child begins after the last epoch that was told of (or with the next step)."""
        started = [int(line.split()[1]) for line in lines if line.startswith("start ")]
        if started and self.kept and saved_before == len(self.steps):
            assert started[0] <= self.epochs - self.kept, f"{self.kept} epochs were kept, {started[0]} redone"


def test_nothing_that_was_told_is_lost_and_every_run_goes_on(work: Work, tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    started = time.monotonic()
    child = _begin(work, whole)
    assert child.end() == 0, child.lines
    duration = time.monotonic() - started
    draw, kills, runs, while_saving = random.Random(0), 0, 0, 0
    while kills < KILLS:
        runs += 1
        out = tmp_path / f"run-{runs}"
        told = Acknowledged(work.config.epochs)
        while True:
            child = _begin(work, out)
            saving = _strike(child, draw, duration, saved=len(told.steps)) if kills < KILLS else False
            code = child.end()
            told.check_start(child.lines, len(ModelFolder(out).names()))
            told.listen(child.lines)
            told.check(out)
            if code == 0:
                break
            assert code == -signal.SIGKILL, child.lines
            kills += 1
            while_saving += saving
        assert weights_of(out) == weights_of(whole)
        assert _results(out) == _results(whole)
        # the lock stays, which means nothing; what was half written when it was killed does not
        hidden = {p.name for p in out.rglob(".*")} - {".lock"}
        assert not hidden and not (out / FILE).exists()
        shutil.rmtree(out)
    tell(f"{kills} kills ({while_saving} of them while something was written), {runs} runs, all ended alike")


@pytest.mark.parametrize("in_place", [False, True])
def test_a_killed_learn_goes_on_and_its_step_is_learned_once(
    in_place: bool, two_steps: Path, tiny_corpus: Corpus, tmp_path: Path
) -> None:
    data, kills, while_saving, runs, draw = tmp_path / "new.conll", 0, 0, 0, random.Random(0)
    new = [s.with_spans([replace(span, type="new") for span in s.spans[:1]]) for s in tiny_corpus.train]
    write_sentences(new, data)

    def begin(place: Path) -> Child:
        def work(told: Tell) -> None:
            tell_of_saving(told)
            out = None if in_place else place / "out"
            settings = {"epochs": 3, "checkpoint_minutes": 0}
            try:
                learn(place / "model", str(data), out=out, in_place=in_place, **settings)
            except ModelError as error:  # it was complete when its call was killed
                assert re.search("already learned|already exists", error.what), error

        return fork(work)

    def result(place: Path) -> Path:
        return place / ("model" if in_place else "out")

    started = time.monotonic()
    shutil.copytree(two_steps, tmp_path / "whole/model")
    whole = begin(tmp_path / "whole")
    assert whole.end() == 0, whole.lines
    duration = time.monotonic() - started
    while kills < LEARNS:
        runs += 1
        place = tmp_path / f"run-{runs}"
        shutil.copytree(two_steps, place / "model")
        child = begin(place)
        while True:
            saving = kills < LEARNS and _strike(child, draw, duration, saved=0)
            code = child.end()
            assert code in {0, -signal.SIGKILL}, child.lines
            assert len(verify(place / "model")) in ({2, 3} if in_place else {2})
            assert in_place or not (place / "out").exists() or len(verify(place / "out")) == 3
            if code == 0:
                break
            kills, while_saving = kills + 1, while_saving + saving
            child = begin(place)
        assert weights_of(result(place)) == weights_of(result(tmp_path / "whole"))
        assert not list(place.glob("*.unfinished"))
        shutil.rmtree(place)
    tell(
        f"{kills} kills of learn ({while_saving} while something was written), {runs} calls, all ended alike"
    )


def _strike(child: Child, draw: random.Random, duration: float, saved: int) -> bool:
    """Kill at a random moment of the run, or (every second time) a moment after it began to write something.

    Whether it was writing. The child may be done before.
    """
    writing = False
    if draw.random() < 0.5:
        event = draw.choice(["saving", "keeping"])
        if not child.wait_for(event, nth=draw.randint(1, 2)):
            return False
        moment, writing = draw.uniform(0, 0.03), True
    else:
        moment = draw.uniform(0, duration)
    until = time.monotonic() + moment
    while time.monotonic() < until:
        if not child.read(until):
            return False
    os.kill(child.pid, signal.SIGKILL)
    before = child.lines[-1:] in (["saving"], ["keeping"])
    return writing and before


@pytest.mark.skipif(not COMMANDS, reason="a minute of imports: make torture")
def test_the_command_goes_on_after_a_kill(tiny_data: Path, tiny_encoder: Path, tmp_path: Path) -> None:
    """The same from outside, as somebody would do it: a process of its own, killed, and --resume."""

    def command(out: Path) -> list[str]:
        settings = ["--set", "checkpoint_minutes=0", "--set", "max_length=32", "--epochs", "4"]
        stream = ["--first", "2", "--per-step", "1", "--min-mentions", "1", "--encoder", str(tiny_encoder)]
        what = ["train", str(tiny_data), "--out", str(out), "--resume", "--json"]
        return [sys.executable, "-m", "cfner", *what, *stream, *settings]

    kills, wanted, draw = 0, COMMANDS, random.Random(0)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    whole, out = tmp_path / "whole", tmp_path / "killed"
    started = time.monotonic()
    subprocess.run(command(whole), check=True, capture_output=True, env=environment)
    duration = time.monotonic() - started
    while True:
        run = subprocess.Popen(command(out), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
        try:
            # most of a run is imports; aim at what comes after them
            timeout = duration * draw.uniform(0.4, 1.0) if kills < wanted else None
            _, errors = run.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            run.kill()
            run.communicate()
            kills += 1
            continue
        assert run.returncode == 0, errors.decode()
        if weights_of(out) == weights_of(whole) and _results(out) == _results(whole):
            shutil.rmtree(out)
            if kills >= wanted:
                break
            continue
        raise AssertionError("the resumed run ended otherwise")


# -- flushed before it gets its name ------------------------------------------------------------------------


def _in_order(calls: list[tuple[str, str, str]]) -> list[str]:
    """What got its name without having been flushed since it was last opened to be written.

    A name with a dot is none: such files are swept away. What is renamed to one is as dirty as it was.
    """
    dirty: set[str] = set()
    wrong = []
    for call, path, target in calls:
        if call == "write":
            dirty.add(path)
        elif call == "fsync":
            dirty.discard(path)
        elif call == "rename":
            moved = {item for item in dirty if item == path or item.startswith(f"{path}/")}
            dirty -= moved
            if any(part.startswith(".") for part in Path(target).parts):
                dirty |= {target + item.removeprefix(path) for item in moved}
            else:
                wrong += sorted(moved)
    return wrong


def test_an_interrupted_command_says_how_to_go_on(
    two_steps: Path, tiny_corpus: Corpus, tmp_path: Path
) -> None:
    data, out, said = tmp_path / "new.conll", tmp_path / "out", tmp_path / "said"
    new = [s.with_spans([replace(span, type="new") for span in s.spans[:1]]) for s in tiny_corpus.train]
    write_sentences(new, data)
    settings = ["--epochs", 3000, "--set", "checkpoint_minutes=0"]

    def learn(told: Tell) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        tell_of_saving(told)
        command(["learn", two_steps, data, "--out", out, *settings], said)

    child = fork(learn)
    assert child.wait_for("kept", nth=2), said.read_text()
    os.kill(child.pid, signal.SIGINT)
    assert child.end() == 130, child.lines
    assert "the next call resumes exactly there" in " ".join(said.read_text().split())
    assert "Stopped. Run the same command again to resume." in said.read_text()
    assert (tmp_path / "out.unfinished" / FILE).is_file() and not out.exists()


@pytest.mark.parametrize("name", ["learn", "train"])
def test_ctrl_c_in_a_short_command_goes_on_exactly(
    name: str, two_steps: Path, tiny_encoder: Path, tiny_data: Path, tiny_corpus: Corpus, tmp_path: Path
) -> None:
    """A run far shorter than checkpoint_minutes, stopped by a signal from outside in its first epoch."""
    data, said = tmp_path / "new.conll", tmp_path / "said"
    new = [s.with_spans([replace(span, type="new") for span in s.spans[:1]]) for s in tiny_corpus.train]
    write_sentences(new, data)

    def words(out: Path) -> list[object]:
        if name == "learn":
            return ["learn", two_steps, data, "--out", out, "--epochs", 2]
        streamed = [
            "--first",
            2,
            "--per-step",
            2,
            "--min-mentions",
            1,
            "--epochs",
            2,
            "--set",
            "max_length=32",
        ]
        return ["train", tiny_data, "--encoder", tiny_encoder, "--out", out, *streamed]

    def slowly(told: Tell) -> None:
        from cfner.training.bars import LogLines

        def batch(self: LogLines, loss: float, sentences: int) -> None:
            told("batch")
            time.sleep(0.2)

        LogLines.batch = batch  # type: ignore[method-assign]
        signal.signal(signal.SIGINT, signal.default_int_handler)
        command(words(tmp_path / "out"), said)

    child = fork(slowly)
    assert child.wait_for("batch", nth=2), said.read_text()
    os.kill(child.pid, signal.SIGINT)
    assert child.end() == 130, child.lines
    kept = " ".join(said.read_text().split())
    assert "was stopped in epoch 1 of 2, after batch" in kept and "Run the same command" in kept
    again: list[object] = ["--resume"] if name == "train" else []
    for more in (words(tmp_path / "out") + again, words(tmp_path / "whole")):
        assert fork(lambda _, more=more: command(more, said)).end() == 0, said.read_text()
    assert weights_of(tmp_path / "out") == weights_of(tmp_path / "whole")


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_what_is_renamed_was_flushed_before(work: Work, tmp_path: Path) -> None:
    """The system calls of a whole run, as strace saw them."""
    log, out = tmp_path / "calls", tmp_path / "run"
    ready, go = os.pipe()

    def traced(told: Any) -> None:
        told("ready")
        os.read(ready, 1)
        work.run(out, told)

    child = fork(traced)
    child.wait_for("ready")
    what = "trace=openat,fsync,fdatasync,rename,renameat,renameat2"
    tracer = subprocess.Popen(
        ["strace", "-f", "-y", "-s", "300", "-e", what, "-o", str(log), "-p", str(child.pid)],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert tracer.stderr is not None
    if "attached" not in (line := tracer.stderr.readline()):
        os.write(go, b"x")
        child.end()
        tracer.wait()
        pytest.skip(f"strace may not look into processes here: {line.strip()}")
    os.write(go, b"x")
    assert child.end() == 0, child.lines
    tracer.wait()
    calls = _calls(log.read_text(), tmp_path)
    renamed = [Path(target).name for call, _, target in calls if call == "rename"]
    assert {"CURRENT", "0001", "0002", FILE, "run.json", "results.json"} <= set(renamed)
    assert _in_order(calls) == []
    # and the name itself: the folder is flushed after the last rename in it
    for folder in (out, out / "steps"):
        last = max(
            i for i, (call, _, to) in enumerate(calls) if call == "rename" and Path(to).parent == folder
        )
        assert ("fsync", str(folder), "") in calls[last:]
    tell(f"{len(renamed)} renames in a run, each after the fsync of all that it names")


def _calls(log: str, inside: Path) -> list[tuple[str, str, str]]:
    """(write | fsync | rename, path, target) for files under ``inside``, in order."""
    found = []
    for line in log.splitlines():
        if opened := re.search(r'openat\(.*?"([^"]+)", (\S+?)[,)].* = \d+<([^>]+)>', line):
            if "O_WRONLY" in opened[2] or "O_RDWR" in opened[2]:
                found.append(("write", opened[3], ""))
        elif flushed := re.search(r"f(?:data)?sync\(\d+<([^>]+)>\) += 0", line):
            found.append(("fsync", flushed[1], ""))
        elif renamed := re.search(r'rename(?:at2?)?\((?:[^"]*)"([^"]+)", (?:[^"]*)"([^"]+)".* = 0', line):
            found.append(("rename", renamed[1], renamed[2]))
    return [call for call in found if call[1].startswith(str(inside)) and not call[1].endswith(".lock")]
