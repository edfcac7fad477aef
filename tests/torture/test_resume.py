"""Interrupt a run anywhere and resume it: it ends bit for bit as if nothing had happened."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from cfner.corpus.corpus import Corpus
from cfner.store.model_folder import ModelFolder
from cfner.training import loop
from cfner.training.progress import Silent
from cfner.training.selection import EpochChoice
from children import Child, Tell, Work, fork, weights_of
from counts import tell, times

POINTS = times(200, quick=24, short=3)
KINDS = ("inside an epoch", "at the edge of an epoch", "while evaluating", "between steps")
# what a resumed step must put back differs: a bank or none, momentum or Adam's moments, groups of batches
WAYS: dict[str, dict[str, Any]] = {
    "cfner": {"method": "cfner", "select_on": "new"},
    "own-other": {"select_on": "new+old"},
    "cfner, sgd, exact": {
        **{"method": "cfner", "select_on": "new", "matches": "exact"},
        **{"optimiser": "sgd", "schedule": "drop", "first_lr": 1e-3},
    },
    "podnet, accumulated": {"method": "podnet", "accumulation": 2, "select_on": "new"},
    "self-training+cf, frozen": {"method": "self-training+cf", "freeze_layers": 1, "select_on": "new+old"},
}


def _digest(tensors: Iterable[tuple[str, Tensor]]) -> str:
    found = hashlib.sha256()
    for name, tensor in sorted(tensors):
        found.update(name.encode() + tensor.detach().contiguous().numpy().tobytes())
    return found.hexdigest()


def _random_state() -> str:
    parts = [torch.get_rng_state().numpy().tobytes(), repr(random.getstate()).encode()]
    parts += [np.random.get_state()[1].tobytes()]  # type: ignore[union-attr]
    return hashlib.sha256(b"".join(parts)).hexdigest()


class Watch(Silent):
    """Counts what happens, ends the process at a given moment, and tells the state at the end of each step.

    The process ends at once, without unwinding, as after a power cut.
    """

    def __init__(self, told: Tell, stop: tuple[str, int] | None) -> None:
        self.told, self.stop = told, stop
        self.seen = dict.fromkeys(KINDS, 0)
        self.name = ""
        self.step: Any = None
        self.optimiser: Any = None

    def happened(self, kind: str) -> None:
        self.seen[kind] += 1
        if self.stop == (kind, self.seen[kind]):
            self.told("stopped")
            os._exit(9)

    def start(self, name: str, epochs: int, batches: int) -> None:
        self.name = name

    def batch(self, loss: float, sentences: int) -> None:
        self.happened("inside an epoch")

    def epoch(self, number: int, figures: dict[str, float]) -> None:
        self.happened("at the edge of an epoch")

    def end(self) -> None:
        """Training is done, and the best epoch's weights are not yet put back."""
        bank = self.step.prepared.bank
        slots = self.optimiser.state_dict()["state"]
        state = {
            "weights": _digest(self.step.network.state_dict().items()),
            "optimiser": _digest(
                (f"{index}/{key}", torch.as_tensor(value))
                for index, slot in slots.items()
                for key, value in slot.items()
                if value is not None
            ),
            "rates": [group["lr"] for group in self.optimiser.param_groups],
            "bank": None if bank is None else _digest([("bank", bank.logits)]),
            "random": _random_state(),
        }
        self.told(f"state {json.dumps([self.name, state])}")


def _listen_in(watch: Watch) -> None:
    """In a child: let the watch see the loop's own parts."""
    make, step, judge, add = loop.make_optimiser, loop.BatchLosses, EpochChoice.__call__, ModelFolder.add

    def make_optimiser(*given: Any, **named: Any) -> Any:
        watch.optimiser = make(*given, **named)
        return watch.optimiser

    def make_step(*given: Any) -> Any:
        watch.step = step(*given)
        return watch.step

    def judged(self: EpochChoice, network: Any) -> dict[str, float]:
        watch.happened("while evaluating")
        return judge(self, network)

    def added(self: ModelFolder, write: Any) -> Any:
        found = add(self, write)
        watch.happened("between steps")
        return found

    loop.make_optimiser, loop.BatchLosses = make_optimiser, make_step  # type: ignore[assignment, misc]
    EpochChoice.__call__, ModelFolder.add = judged, added  # type: ignore[method-assign]


def _begin(work: Work, out: Path, stop: tuple[str, int] | None = None) -> Child:
    def run(told: Tell) -> None:
        watch = Watch(told, stop)
        _listen_in(watch)
        work.run(out, told, watch)
        told(f"seen {json.dumps(watch.seen)}")

    return fork(run)


def _states(child: Child) -> dict[str, Any]:
    told = [json.loads(line.removeprefix("state ")) for line in child.lines if line.startswith("state ")]
    return {name: state for name, state in told}  # noqa: C416 - pairs from JSON are lists


def _scores(out: Path) -> list[Any]:
    folder = ModelFolder(out)
    return [folder.step(name).read_json("scores.json") for name in folder.names()]


def _histories(out: Path) -> list[Any]:
    folder = ModelFolder(out)
    return [folder.step(name).read_json("step.json")["history"] for name in folder.names()]


@pytest.fixture(scope="module")
def works(tiny_corpus: Corpus, tiny_encoder: Path) -> dict[str, Work]:
    return {name: Work.of(tiny_corpus, tiny_encoder, **changes) for name, changes in WAYS.items()}


def test_an_interrupted_run_ends_as_if_nothing_had_happened(works: dict[str, Work], tmp_path: Path) -> None:
    draw, done = random.Random(0), dict.fromkeys(KINDS, 0)
    whole: dict[str, tuple[Path, dict[str, Any], dict[str, int]]] = {}
    for number in range(POINTS):
        way = list(works)[number % len(works)] if len(works) <= POINTS else "cfner"
        if way not in whole:
            out = tmp_path / f"whole-{len(whole)}"
            child = _begin(works[way], out)
            assert child.end() == 0, child.lines
            seen = json.loads(next(x for x in child.lines if x.startswith("seen ")).removeprefix("seen "))
            whole[way] = out, _states(child), seen
        undisturbed, expected, seen = whole[way]
        kind = KINDS[number % len(KINDS)] if POINTS < 20 else draw.choice(KINDS)
        out = tmp_path / f"run-{number}"
        stopped = _begin(works[way], out, (kind, draw.randint(1, seen[kind])))
        assert stopped.end() == 9 and "stopped" in stopped.lines, stopped.lines
        resumed = _begin(works[way], out)
        assert resumed.end() == 0, resumed.lines
        for child in (stopped, resumed):
            for name, state in _states(child).items():
                assert state == expected[name], f"{way}, {kind}, {name}"
        assert weights_of(out) == weights_of(undisturbed), f"{way}, {kind}"
        assert _scores(out) == _scores(undisturbed)
        assert _histories(out) == _histories(undisturbed)
        done[kind] += 1
        shutil.rmtree(out)
    tell(f"{sum(done.values())} of {POINTS} interrupted runs ended identically: {done}")
