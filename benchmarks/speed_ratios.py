"""Speed as ratios: everything on the same machine, data, batch size and encoder, interleaved.

A machine's speed drifts, so measurements that are compared are interleaved in several rounds. Each round
gives one ratio; the median is reported with the smallest and largest.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cfner.tagger import ContinualTagger
from speed_learning import learning
from speed_peers import has_faiss, search_seconds, trainer_epoch
from speed_prediction import documents, prediction
from speed_setup import Bench, Ratio, ratio_of, seconds
from speed_waiting import grid, server, start

# delta = 0 throughout: every defined-other token reads its matches
CFNER: dict[str, Any] = {"method": "cfner", "parameters": {"delta_1": 0.0, "delta_m": 0.0}}
FINETUNE: dict[str, Any] = {"method": "finetune"}
OWN_OTHER: dict[str, Any] = {"method": "own-other"}


def speed_report(
    bench: Bench, repeat: int, said: Callable[[str], None], parts: Sequence[str] = ()
) -> Iterator[Ratio]:
    """Measure all ratios, or those of ``parts``; ``said`` is called with what is being measured."""
    for name, part in PARTS.items():
        if not parts or name in parts:
            yield from part(bench, repeat, said)


def _epoch(bench: Bench, **settings: Any) -> float:
    """The faster of two epochs: the first one also warms up."""
    _, clock, learn = bench.learn(epochs=2, **settings)
    learn()
    return min(clock.epochs)


def _epochs(bench: Bench, repeat: int, said: Callable[[str], None]) -> Iterator[Ratio]:
    said("epochs: cfner, cfner with exact matches, finetune")
    bank, exact = [], []
    for _ in range(repeat):
        plain, causal = _epoch(bench, **FINETUNE), _epoch(bench, **CFNER)
        bank.append((causal, plain))
        exact.append((_epoch(bench, **CFNER, matches="exact"), causal))
    yield ratio_of(bank, "epoch: cfner / finetune", 1.10)
    yield ratio_of(exact, "epoch: cfner with exact matches / cfner")


def _trainer(bench: Bench, repeat: int, said: Callable[[str], None]) -> Iterator[Ratio]:
    said("epochs: finetune, and the Hugging Face trainer's")
    alike, defaults = [], []
    for _ in range(repeat):
        ours = _epoch(bench, **FINETUNE)
        alike.append((ours, trainer_epoch(bench, alike=True, folder=bench.folder)))
        defaults.append((ours, trainer_epoch(bench, alike=False, folder=bench.folder)))
    yield ratio_of(alike, "epoch: finetune / Trainer, alike", 1.0)
    yield ratio_of(defaults, "epoch: finetune / Trainer, both at their defaults", 0.6)


def _steps(bench: Bench, repeat: int, said: Callable[[str], None]) -> Iterator[Ratio]:
    said("whole steps")
    whole, types, groups, growth = [], [], [], []
    quarter = len(bench.sentences) // 4
    for turn in range(repeat):
        whole.append(_whole_step(bench, turn))
        few, many = (_step(bench, old_types=old) for old in (2, 16))
        types.append((many, few))
        few, many = (_step(bench, old_types=old, grouped=True) for old in (2, 32))
        groups.append((many, few))
        growth.append((_step(bench, old_types=4), _step(bench, old_types=4, sentences=quarter)))
    yield ratio_of(whole, "whole step / its epochs alone", 1.25)
    yield ratio_of(types, "step with 16 old types / with 2", 1.15)
    yield ratio_of(groups, "step with 32 old groups / with 2", 1.2, note="own-other")
    yield ratio_of(growth, "step with 4n sentences / with n", 4.2, note=f"n = {quarter}")


def _whole_step(bench: Bench, turn: int) -> tuple[float, float]:
    """(teacher, matching, epochs, selection, saving; the same epochs alone)"""
    epochs = 3
    tagger, _, learn = bench.learn(epochs=epochs, dev=True, **CFNER)
    target = bench.folder / f"saved-{turn}"

    def whole() -> None:
        learn()
        tagger.save(target)

    took = seconds(whole)
    _, clock, alone = bench.learn(epochs=epochs, **CFNER)
    alone()
    return took, sum(clock.epochs)


def _step(bench: Bench, **changes: Any) -> float:
    settings = OWN_OTHER if changes.get("grouped") else CFNER
    return seconds(bench.learn(epochs=2, **settings, **changes)[2])


def _frozen(bench: Bench, repeat: int, said: Callable[[str], None]) -> Iterator[Ratio]:
    said("steps with the lowest layers frozen")

    def took(layers: int) -> float:
        return seconds(bench.learn(epochs=6, freeze_layers=layers, **CFNER)[2])

    turns: dict[int, list[tuple[float, float]]] = {2: [], 4: []}
    for _ in range(repeat):
        none = took(0)
        for layers, pairs in turns.items():
            pairs.append((took(layers), none))
    for layers, pairs in turns.items():
        yield ratio_of(pairs, f"step of 6 epochs: lowest {layers} layers frozen / none")


def _search(bench: Bench, repeat: int, said: Callable[[str], None]) -> Iterator[Ratio]:
    if not has_faiss():
        raise_note = "faiss is not installed (pip install faiss-cpu), so the search was not compared"
        yield Ratio("search: here / faiss flat", float("inf"), 0.0, 0.0, 1.2, note=raise_note)
        return
    for tokens, target in ((10_000, None), (100_000, 1.2), (1_000_000, None)):
        said(f"neighbour search among {tokens:,} tokens")
        times = repeat if tokens <= 100_000 else 1  # a million takes minutes
        turns = [search_seconds(tokens, 10_000) for _ in range(times)]
        pairs = [(here, theirs) for here, theirs in turns if theirs is not None]
        yield ratio_of(pairs, f"search among {tokens:,} tokens: here / faiss flat", target)


def _memory(bench: Bench, repeat: int, said: Callable[[str], None]) -> Iterator[Ratio]:
    said("peak memory of a step")
    turns = [(_peak(bench, "cfner"), _peak(bench, "finetune")) for _ in range(min(repeat, 2))]
    yield ratio_of(turns, "peak memory of a step: cfner / finetune", 1.15)


def _peak(bench: Bench, method: str) -> float:
    """Each in a separate process: a process does not return memory to the system."""
    settings = CFNER if method == "cfner" else FINETUNE
    source, sentences = bench.teacher(4), bench.folder / "sentences.jsonl"
    if not sentences.exists():
        from cfner.corpus.writers import write_sentences

        write_sentences([s.only(bench.new) for s in bench.sentences], sentences, format="jsonl")
    code = [sys.executable, __file__, str(source), str(sentences), repr(settings)]
    done = subprocess.run(code, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def _learn_and_tell_peak(source: str, sentences: Path, settings: dict[str, Any]) -> None:
    from cfner.corpus.corpus import Corpus
    from cfner.stream.step import Step
    from cfner.training.environment import peak_memory

    train = Corpus.read(sentences).train
    types = tuple(sorted({type_ for sentence in train for type_ in sentence.types}))
    tagger = ContinualTagger.load(source, epochs=1, **settings)
    tagger.learn(Step(types=types, train=train, known=tagger.types, index=1))
    sys.stdout.write(f"{peak_memory()}\n")


Part = Callable[[Bench, int, Callable[[str], None]], Iterator[Ratio]]
PARTS: Mapping[str, Part] = {
    "epochs": _epochs,
    "trainer": _trainer,
    "steps": _steps,
    "frozen": _frozen,
    "learning": learning,
    "prediction": prediction,
    "documents": documents,
    "start": start,
    "server": server,
    "grid": grid,
    "search": _search,
    "memory": _memory,
}


if __name__ == "__main__":
    import ast

    _learn_and_tell_peak(sys.argv[1], Path(sys.argv[2]), ast.literal_eval(sys.argv[3]))
