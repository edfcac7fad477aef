"""Hostile models, checkpoints and corpora: no code of theirs runs, nothing elsewhere is opened, one error."""

from __future__ import annotations

import importlib
import json
import os
import random
import resource
import shutil
import site
import sys
import sysconfig
import time
from pathlib import Path
from typing import Any

import pytest

from cfner.corpus.corpus import Corpus
from cfner.errors import CfnerError, ConfigError, CorpusError, ModelError
from cfner.interop.model_card import Provenance
from cfner.practice.diff.sources import two_models
from cfner.practice.history.history import history, rollback, verify
from cfner.practice.history.relabel import forget, merge, rename
from cfner.store.open import open_model
from cfner.store.pretrained import load_encoder
from cfner.store.step_files import FACTS, LABELS
from cfner.tagger import ContinualTagger
from cfner.training.config import RUNTIME_ONLY, TrainingConfig
from counts import tell, times
from hostile_corpora import CORPORA
from hostile_folders import (
    CHECKPOINTS,
    MARK,
    MODELS,
    NOT_READ,
    RECORDS,
    SEALED_BY_THEMSELVES,
    broken_json,
    false_facts,
    false_settings,
    odd_value,
)
from made_steps import seal
from strangers import ORDERS, make_checkpoint

FOLDERS = times(400, quick=3 * len(MODELS), short=len(MODELS))
STRANGERS = times(360, quick=3 * len(CHECKPOINTS), short=len(CHECKPOINTS))
VALUES = times(2000, quick=100, short=8)
FILES = times(104, quick=24, short=len(CORPORA))
SECONDS = 1.0  # of the processor: other work on the machine does not count
ABOUT_LEARNING = (false_facts, broken_json)  # what only learning on needs: a server does not read it

_OURS = tuple(
    {
        *(
            str(Path(path))
            for path in [sys.prefix, sys.base_prefix, sys.exec_prefix, *site.getsitepackages()]
        ),
        *sysconfig.get_paths().values(),
        str(Path(__file__).parents[2] / "src"),
        "/proc",
        "/sys",
        "/dev",
        "/usr",
        "/lib",
    }
)
_RUNNING = {
    "pickle.find_class",
    "subprocess.Popen",
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.spawn",
    "socket.connect",
    "socket.getaddrinfo",
    "ctypes.dlopen",
}


class Watch:
    """An audit hook, which cannot be taken off again: on while something hostile is loaded."""

    def __init__(self) -> None:
        self.folder: str | None = None
        self.ran: list[str] = []
        self.opened: list[str] = []
        sys.addaudithook(self._hook)

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.folder is None:
            return
        if event in _RUNNING:
            self.ran.append(f"{event} {arguments!r:.200}")
        elif event == "exec":
            file = getattr(arguments[0], "co_filename", "")
            if file.startswith(("/", ".")) and not file.startswith(_OURS):
                self.ran.append(f"exec {file}")
        elif event == "open":
            self._open(arguments[0])

    def _open(self, path: object) -> None:
        if isinstance(path, int) or path is None:
            return
        real = os.path.realpath(os.fsdecode(path))  # type: ignore[arg-type]
        if not real.startswith((f"{self.folder}/", *_OURS)):
            self.opened.append(real)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_checkpoint(tmp_path_factory.mktemp("stranger") / "model", "bert", ORDERS["BIO"])


@pytest.fixture(scope="module")
def watch(two_steps: Path, checkpoint: Path, tiny_data: Path) -> Watch:
    """What is imported on the first loading is imported before it looks."""
    ContinualTagger.load(two_steps)
    open_model(checkpoint)
    Corpus.read(tiny_data)
    for extra in ("datasets", "spacy"):
        importlib.import_module(extra)
    return Watch()


def _tried(watch: Watch, folder: Path, load: Any) -> tuple[CfnerError | None, float]:
    watch.ran, watch.opened = [], []
    watch.folder = os.path.realpath(folder)
    started = time.process_time()
    try:
        load()
        error = None
    except CfnerError as caught:
        error = caught
    finally:
        watch.folder = None
    return error, time.process_time() - started


def test_a_hostile_model_folder_is_one_error(watch: Watch, two_steps: Path, tmp_path: Path) -> None:
    slowest, memory = 0.0, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range(FOLDERS):
        make, draw = MODELS[number % len(MODELS)], random.Random(number)
        place = tmp_path / f"{number}"
        outside = place / "outside"
        outside.mkdir(parents=True)
        model = Path(shutil.copytree(two_steps, place / "model"))
        step = model / "steps" / "0002"
        make(step, draw, outside)
        if make not in SEALED_BY_THEMSELVES:
            seal(step)
        name = f"{make.__name__}, number {number}"
        ways = [lambda m=model: ContinualTagger.load(m), lambda m=model: open_model(m)]
        for load in ways[:1] if make in ABOUT_LEARNING else ways:
            error, seconds = _tried(watch, model, load)
            assert watch.ran == [] and not (outside / MARK).exists(), f"{name}: ran {watch.ran}"
            assert watch.opened == [], f"{name}: opened {watch.opened}"
            assert seconds < SECONDS, f"{name}: {seconds:.1f} s"
            slowest = max(slowest, seconds)
            assert error is not None, f"{name}: was loaded"
            assert str(model) in str(error) or isinstance(error, ConfigError), f"{name}: {error}"
            assert len(str(error).splitlines()) == 1, f"{name}: {error}"
        shutil.rmtree(place)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) / 1024
    assert grown < 500, f"{grown:.0f} MB more memory"
    tell(f"{FOLDERS} hostile model folders, each an error; slowest {slowest:.2f} s, {grown:.0f} MB at most")


def test_a_hostile_checkpoint_is_one_error_or_harmless(
    watch: Watch, checkpoint: Path, tmp_path: Path
) -> None:
    text = "ada saw the heron in oslo"
    good = ContinualTagger.open(checkpoint).predict(text).spans
    slowest, memory, loaded = 0.0, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, 0
    for number in range(STRANGERS):
        make, draw = CHECKPOINTS[number % len(CHECKPOINTS)], random.Random(number)
        place = tmp_path / f"{number}"
        outside = place / "outside"
        outside.mkdir(parents=True)
        model = Path(shutil.copytree(checkpoint, place / "model"))
        make(model, draw, outside)
        name = f"{make.__name__}, number {number}"
        ways = [lambda m=model: open_model(m), lambda m=model: load_encoder(str(m))]
        only_a_tagger = make in NOT_READ | {false_settings}  # an encoder has no labels to be wrong
        for load in ways[:1] if only_a_tagger else ways:
            error, seconds = _tried(watch, model, load)
            assert watch.ran == [] and not (outside / MARK).exists(), f"{name}: ran {watch.ran}"
            assert watch.opened == [], f"{name}: opened {watch.opened}"
            assert seconds < SECONDS, f"{name}: {seconds:.1f} s"
            slowest = max(slowest, seconds)
            if error is None:
                loaded += 1
                assert make in NOT_READ, f"{name}: was loaded"
                assert ContinualTagger.open(model).predict(text).spans == good, name
            else:
                assert str(model) in str(error) and len(str(error).splitlines()) == 1, f"{name}: {error}"
        shutil.rmtree(place)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) / 1024
    assert grown < 500, f"{grown:.0f} MB more memory"
    tell(
        f"{STRANGERS} hostile checkpoints, {loaded} with the same answers, each other an error; "
        f"slowest {slowest:.2f} s, {grown:.0f} MB at most"
    )


@pytest.mark.parametrize(("file", "change"), RECORDS)
def test_a_false_record_is_one_error_of_every_command(
    file: str, change: Any, two_steps: Path, tmp_path: Path
) -> None:
    """Sealed anew and current, or damaged and looked at all the same."""
    model = Path(shutil.copytree(two_steps, tmp_path / "model"))
    path = model / "steps" / "0002" / file
    facts = json.loads(path.read_text())
    path.write_text(json.dumps({**facts, **change} if isinstance(change, dict) else change))
    seal(path.parent)
    commands: dict[str, Any] = {
        "history": lambda: history(model),
        "verify": lambda: verify(model),
        "rename": lambda: rename(model, "animal", "beast"),
        "forget": lambda: forget(model, "animal"),
        "merge": lambda: merge(model, ["animal", "city"], "beast"),
        "rollback": lambda: rollback(model, 2),
        "load": lambda: ContinualTagger.load(model),
        "card": lambda: Provenance.of(model),
    }
    if file == LABELS:
        commands["open"] = lambda: open_model(model)
    elif file == FACTS:
        commands["diff"] = lambda: two_models([str(model)])
    for name, command in commands.items():
        with pytest.raises(ModelError) as caught:
            command()
        assert str(path) in str(caught.value), f"{name}: {caught.value}"
        assert len(str(caught.value).splitlines()) == 1, f"{name}: {caught.value}"


def test_any_value_anywhere_in_a_record_is_an_error_of_ours_or_none(two_steps: Path, tmp_path: Path) -> None:
    told = 0
    for number in range(VALUES):
        draw = random.Random(number)
        model = Path(shutil.copytree(two_steps, tmp_path / f"{number}"))
        step = model / "steps" / draw.choice(["0001", "0002"])
        odd_value(step, draw)
        seal(step)
        for command in (
            lambda m=model: history(m),
            lambda m=model: verify(m),
            lambda m=model: rollback(m, 2),
            lambda m=model: rename(m, "animal", "beast"),
            lambda m=model: merge(m, ["city", "dish"], "x"),
        ):
            try:
                command()
            except CfnerError as error:
                assert len(str(error).splitlines()) == 1, f"number {number}: {error}"
                told += 1
        shutil.rmtree(model)
    assert told
    tell(f"{VALUES} records with an odd value, {told} commands ended with an error of ours, none otherwise")


def test_how_a_training_is_watched_is_not_taken_from_a_model(two_steps: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(two_steps, tmp_path / "model"))
    path = folder / "steps" / "0002" / "step.json"
    facts = json.loads(path.read_text())
    watching: dict[str, Any] = {
        "trackers": ["tensorboard"],
        "workers": 3,
        "eval_batch_size": 7,
        "checkpoint_minutes": 0.5,
    }
    watching["device"] = "cpu"
    assert watching.keys() == RUNTIME_ONLY
    facts["config"] |= {**watching, "epochs": 77}
    path.write_text(json.dumps(facts))
    seal(path.parent)
    config, usual = ContinualTagger.load(folder).config, TrainingConfig()
    assert config.epochs == 77
    assert all(getattr(config, name) == getattr(usual, name) for name in watching)
    asked = ContinualTagger.load(folder, **{**watching, "trackers": ("tensorboard",)}).config
    assert asked.trackers == ("tensorboard",) and asked.workers == 3


def test_settings_that_cannot_be_used_are_told_with_their_file(two_steps: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(two_steps, tmp_path / "model"))
    path = folder / "steps" / "0002" / "step.json"
    facts = json.loads(path.read_text())
    facts["config"]["epochs"] = -1
    path.write_text(json.dumps(facts))
    seal(path.parent)
    with pytest.raises(ModelError, match=r"0002/step\.json: .* cannot be used. .*epochs"):
        ContinualTagger.load(folder)
    assert ContinualTagger.load(folder, epochs=3).config.epochs == 3
    with pytest.raises(ConfigError, match=r"^Bad settings: .*batch_size"):  # nobody's but the caller's
        ContinualTagger.load(two_steps, batch_size=-1)


def test_parents_in_a_circle_have_an_end(two_steps: Path, tmp_path: Path) -> None:
    """The seal of a step that is not the current one says what it likes."""
    model = Path(shutil.copytree(two_steps, tmp_path / "model"))
    first, second = (model / "steps" / name for name in ("0001", "0002"))
    facts = json.loads((first / "step.json").read_text())
    hash_of = json.loads((second / "seal.json").read_text())["hash"]
    (first / "step.json").write_text(json.dumps({**facts, "parent": hash_of}))
    with pytest.raises(ModelError, match="form a cycle"):
        Provenance.of(model)


def test_a_hostile_corpus_is_one_error(watch: Watch, tmp_path: Path) -> None:
    slowest = 0.0
    for number in range(FILES):
        make, draw = CORPORA[number % len(CORPORA)], random.Random(number)
        folder, outside = tmp_path / f"{number}" / "data", tmp_path / f"{number}" / "outside"
        folder.mkdir(parents=True)
        outside.mkdir()
        source = make(folder, draw, outside)
        error, seconds = _tried(watch, folder, lambda s=source: Corpus.read(s))
        name = f"{make.__name__}, number {number}"
        assert watch.ran == [] and not (outside / MARK).exists(), f"{name}: ran {watch.ran}"
        assert watch.opened == [], f"{name}: opened {watch.opened}"
        assert isinstance(error, CorpusError) and str(folder) in str(error), f"{name}: {error}"
        assert seconds < SECONDS, f"{name}: {seconds:.1f} s"
        slowest = max(slowest, seconds)
        shutil.rmtree(tmp_path / f"{number}")
    tell(f"{FILES} hostile corpora, each an error; slowest {slowest:.2f} s")
