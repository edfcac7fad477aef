"""Random histories: whatever happened since, going back gives the very same predictions, and verifies."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from cfner import learn
from cfner.corpus.corpus import Corpus
from cfner.corpus.writers import write_sentences
from cfner.errors import CfnerError, ModelError
from cfner.practice.history.history import rollback, verify
from cfner.practice.history.relabel import forget, merge, rename
from cfner.store.model_folder import CURRENT, SEAL, ModelFolder
from cfner.tagger import ContinualTagger
from counts import tell, times

HISTORIES = times(100, quick=8, short=1)
TURNS = 8
CHANGES = times(40, quick=20, short=10)  # bytes changed in each history
REMOVALS = times(20, quick=10, short=5)  # files removed in each, besides all seals and the pointer


@pytest.fixture(scope="module")
def new_data(tiny_corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A file per type to learn."""
    folder = tmp_path_factory.mktemp("new")
    for type_ in ("dish", "person"):
        sentences = [s.only([type_]) for s in tiny_corpus.train if type_ in s.types][:12]
        write_sentences(sentences, folder / f"{type_}.conll")
    return {path.stem: path for path in folder.iterdir()}


def _predictions(model: Path, corpus: Corpus) -> bytes:
    """Spans and scores of all of them, to the last digit."""
    return repr(ContinualTagger.load(model).predict(list(corpus.test))).encode()


class History:
    """A model to which things happen."""

    def __init__(self, model: Path, corpus: Corpus, new_data: dict[str, Path], seed: int) -> None:
        self.model, self.corpus, self.new_data = model, corpus, new_data
        self.draw = random.Random(seed)
        self.predictions: dict[int, bytes] = {}
        self.done: list[str] = []
        self._look()

    @property
    def number(self) -> int:
        return int(ModelFolder(self.model).current_name())

    def _look(self) -> None:
        """The current step predicts what it did whenever it was current before."""
        found = _predictions(self.model, self.corpus)
        assert self.predictions.setdefault(self.number, found) == found, f"step {self.number}: {self.done}"

    def turn(self, turn: int) -> None:
        types = list(ContinualTagger.load(self.model).types)
        unknown = [type_ for type_ in self.new_data if type_ not in types]
        kinds = ["rename", "rollback", "rollback", *(["merge", "forget"] if len(types) > 1 else [])]
        kind = self.draw.choice([*kinds, *(["learn"] * 2 if unknown else [])])
        if kind == "learn":
            settings: dict[str, Any] = {"epochs": 1, "checkpoint_minutes": 60}
            learn(self.model, str(self.new_data[self.draw.choice(unknown)]), in_place=True, **settings)
        elif kind == "rename":
            rename(self.model, self.draw.choice(types), f"name{turn}")
        elif kind == "merge":
            merge(self.model, self.draw.sample(types, 2), f"merged{turn}")
        elif kind == "forget":
            forget(self.model, self.draw.choice(types))
        else:
            rollback(self.model, self.draw.choice(sorted(self.predictions)))
        self.done.append(kind)
        self._look()

    def go_through_all(self) -> None:
        for number in self.draw.sample(sorted(self.predictions), len(self.predictions)):
            rollback(self.model, number)
            self._look()


def _changed_bytes_are_found(model: Path, draw: random.Random) -> int:
    """One byte of one file at a time, anywhere in the folder of steps and in the pointer."""
    files = sorted(path for path in model.rglob("*") if path.is_file() and path.stat().st_size)
    for _ in range(CHANGES):
        path = draw.choice(files)
        honest = path.read_bytes()
        at = draw.randrange(len(honest))
        changed = bytearray(honest)
        changed[at] ^= draw.randrange(1, 256)
        path.write_bytes(changed)
        try:
            verify(model)
        except ModelError:
            pass
        else:
            raise AssertionError(f"{path}: byte {at} is {changed[at]:#x}, and nobody noticed")
        finally:
            path.write_bytes(honest)
    verify(model)
    return CHANGES


def _removed_files_are_found(model: Path, draw: random.Random) -> int:
    """One file at a time, seals and the pointer among them."""
    files = sorted(path for path in model.rglob("*") if path.is_file() and path.stat().st_size)
    seals = [path for path in files if path.name == SEAL]
    chosen = {*seals, model / CURRENT, *draw.sample(files, min(REMOVALS, len(files)))}
    for path in sorted(chosen):
        honest = path.read_bytes()
        path.unlink()
        try:
            verify(model)
        except ModelError:
            pass
        else:
            raise AssertionError(f"{path} is gone, and nobody noticed")
        finally:
            path.write_bytes(honest)
    verify(model)
    return len(chosen)


def test_random_histories_come_back_exactly(
    two_steps: Path, tiny_corpus: Corpus, new_data: dict[str, Path], tmp_path: Path
) -> None:
    kinds: dict[str, int] = {}
    found, missed = 0, 0
    for number in range(HISTORIES):
        model = Path(shutil.copytree(two_steps, tmp_path / f"model-{number}"))
        rollback(model, 1)  # which knows two of the four types
        history = History(model, tiny_corpus, new_data, number)
        for turn in range(TURNS):
            history.turn(turn)
        history.go_through_all()
        steps = verify(model)
        assert {step.number for step in steps} >= set(history.predictions)
        found += _changed_bytes_are_found(model, history.draw)
        missed += _removed_files_are_found(model, history.draw)
        for kind in history.done:
            kinds[kind] = kinds.get(kind, 0) + 1
        shutil.rmtree(model)
    tell(
        f"{HISTORIES} histories {kinds}: predictions identical; {found} of {found} changed bytes and "
        f"{missed} of {missed} removed files found"
    )


def test_a_step_that_is_exchanged_breaks_the_chain(two_steps: Path, tmp_path: Path) -> None:
    """Sealed anew, an earlier step verifies by itself; but the later one names its parent by hash."""
    from made_steps import seal

    model = Path(shutil.copytree(two_steps, tmp_path / "model"))
    step = model / "steps" / "0001"
    (step / "labels.json").write_text((step / "labels.json").read_text().replace("city", "cyti"))
    seal(step)
    rollback(model, 2)
    with pytest.raises(CfnerError, match="lineage is broken"):
        verify(model)
