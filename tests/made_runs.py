"""A folder of benchmark runs as the runner leaves it, with made-up but consistent figures."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]


@dataclass(frozen=True)
class Made:
    """What is common to the runs of a folder."""

    types: tuple[str, ...]
    first: int
    per_step: int
    data: str = "notes"
    sampling: str = "greedy"
    labels: str = "own"
    sentences: int = 120
    shared: tuple[tuple[str, Any], ...] = ()

    @property
    def steps(self) -> list[tuple[str, ...]]:
        cuts = [0, *range(self.first, len(self.types), self.per_step), len(self.types)]
        return [self.types[a:b] for a, b in pairwise(cuts)]


def write_runs(
    folder: Path,
    skills: Mapping[str, float],
    made: Sequence[Made],
    *,
    seeds: Sequence[int] = (0, 1, 2),
    left_out: Mapping[tuple[str, int], tuple[str, str | None]] | None = None,
    arrays: bool = True,
    name: str | None = "made",
) -> None:
    """``skills``: how well each method keeps what it learned, 0 to 1. ``left_out``: by method and seed, the
    state and error of runs that are not there."""
    cells, runs = [], []
    for setting in made:
        for method, skill in skills.items():
            for seed in seeds:
                key = f"{len(cells):024x}"
                cell: dict[str, Any] = {
                    "key": key,
                    "method": method,
                    "parameters": {},
                    "data": setting.data,
                    "first": setting.first,
                    "per_step": setting.per_step,
                    "sampling": setting.sampling,
                    "labels": setting.labels,
                    "seed": seed,
                    "shared": dict(setting.shared),
                }
                state, error = (left_out or {}).get((method, seed), ("finished", None))
                cells.append({**cell, "state": state, "error": error})
                if state == "finished":
                    runs.append({**cell, **_result(folder / "cells" / key, setting, skill, seed, arrays)})
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "grid.json").write_text(json.dumps({"schema": 1, "name": name, "cells": cells}))
    (folder / "results.json").write_text(json.dumps({"schema": 1, "runs": runs}))


def _result(folder: Path, made: Made, skill: float, seed: int, arrays: bool) -> dict[str, Any]:
    random = np.random.default_rng([seed, round(skill * 1000)])
    gold = np.random.default_rng(7).poisson(0.35, (made.sentences, len(made.types))).astype(np.int32)
    steps, entries, known = [], [], 0
    for number, new in enumerate(made.steps):
        known += len(new)
        found, predicted = _guesses(made, gold, number, skill, random)
        per_type = {
            type_: _f1(found[:, i].sum(), gold[:, i].sum(), predicted[:, i].sum())
            for i, type_ in enumerate(made.types[:known])
        }
        seen = slice(0, known)
        old_words = int(gold[:, : known - len(new)].sum())
        confusion = {
            "old_words": old_words,
            "old_as_other": round(old_words * (1 - skill) * 0.8),
            "not_new_words": 4000,
            "as_new": round(600 * (1 - skill)),
            "old_to_other": min(95, 40 * (1 - skill) * number) if old_words else None,
            "to_new": 15 * (1 - skill) + number,
        }
        steps.append(
            {
                "types": list(new),
                "micro_f1": _f1(found[:, seen].sum(), gold[:, seen].sum(), predicted[:, seen].sum()),
                "macro_f1": float(np.mean(list(per_type.values()))),
                "per_type": per_type,
                "mentions": {t: int(gold[:, i].sum()) for i, t in enumerate(made.types[:known])},
                "confusion": confusion,
            }
        )
        for sentence, i in zip(*np.nonzero(gold[:, seen] + predicted[:, seen]), strict=True):
            entries.append(
                (number, sentence, i, found[sentence, i], gold[sentence, i], predicted[sentence, i])
            )
    if arrays:
        _arrays(folder, made, entries, skill, random)
    return _figures(made, steps, seed, skill, random)


def _guesses(
    made: Made, gold: Ints, number: int, skill: float, random: np.random.Generator
) -> tuple[Ints, Ints]:
    """Each step since a type was learned costs it some of its mentions."""
    found = np.zeros_like(gold)
    learned_in = [step for step, types in enumerate(made.steps) for _ in types]
    for i, step in enumerate(learned_in):
        if step <= number:
            share = 0.85 * skill ** ((number - step) * 0.8) * (0.75 + 0.25 * ((i * 7) % 5) / 4)
            found[:, i] = random.binomial(gold[:, i], share)
    spurious = random.poisson(0.04, gold.shape) * (np.array(learned_in) <= number)
    return found, (found + spurious).astype(np.int32)


def _figures(
    made: Made, steps: list[dict[str, Any]], seed: int, skill: float, random: np.random.Generator
) -> dict[str, Any]:
    forgetting: dict[str, float | None] = {}
    for type_ in made.types:
        course = [step["per_type"][type_] for step in steps if type_ in step["per_type"]]
        forgetting[type_] = max(course[:-1]) - course[-1] if len(course) > 1 else None
    lost = [value for value in forgetting.values() if value is not None]
    slices = []
    for number in range(len(steps)):
        share = 0.7 if made.sampling == "greedy" else 1 / len(steps)
        mentions = {
            type_: int(400 * (share if type_ in own else (1 - share) / max(len(steps) - 1, 1)))
            + (i * 13) % 40
            for i, type_ in enumerate(made.types)
            for own in [made.steps[number]]
        }
        slices.append({"sentences": 500, "mentions": mentions})
    return {
        "steps": steps,
        "mean_micro_f1": float(np.mean([step["micro_f1"] for step in steps])),
        "mean_macro_f1": float(np.mean([step["macro_f1"] for step in steps])),
        "last_micro_f1": steps[-1]["micro_f1"],
        "last_macro_f1": steps[-1]["macro_f1"],
        "forgetting": forgetting,
        "mean_forgetting": float(np.mean(lost)) if lost else None,
        **_losses(steps),
        "confusion": steps[-1]["confusion"],
        "slices": slices,
        "hashes": {"stream": "0" * 8},
        "measured": {"seconds": 300 + 100 * skill + seed, "peak_memory": 1.5e9 + 1e7 * seed},
    }


def _losses(steps: list[dict[str, Any]]) -> dict[str, Any]:
    end, mentions = steps[-1]["per_type"], steps[-1]["mentions"]
    when = {type_: step["per_type"][type_] for step in steps for type_ in step["types"]}
    lost = {t: when[t] - end[t] if t not in steps[-1]["types"] else None for t in when}
    often = [t for t in when if mentions[t] >= 30]
    old = [t for t in often if lost[t] is not None]
    return {
        "last_macro_f1_30": float(np.mean([end[t] for t in often])) if often else None,
        "when_learned": when,
        "at_the_end": end,
        "lost": lost,
        "mean_when_learned": float(np.mean([when[t] for t in old])) if old else None,
        "mean_at_the_end": float(np.mean([end[t] for t in old])) if old else None,
        "mean_lost": float(np.mean([lost[t] for t in old])) if old else None,
    }


def _arrays(
    folder: Path, made: Made, entries: Sequence[Sequence[int]], skill: float, random: np.random.Generator
) -> None:
    folder.mkdir(parents=True)
    columns = np.array(entries, dtype=np.int32).reshape(-1, 6).T
    names = ("step", "sentence", "type", "found", "gold", "predicted")
    learned = np.cumsum([len(types) for types in made.steps]).astype(np.int32)
    np.savez(
        folder / "counts.npz",
        **dict(zip(names, columns, strict=True)),
        types=np.array(made.types),
        sentences=np.int32(made.sentences),
        learned=learned,
    )
    shown = made.types[:6]
    kinds = np.repeat(np.arange(len(shown)), 12).astype(np.int32)
    centres = random.normal(size=(len(shown), 16)) * 6 * skill
    features = (centres[kinds] + random.normal(size=(len(kinds), 16))).astype(np.float32)
    np.savez(folder / "features.npz", features=features, type=kinds, types=np.array(shown))


def _f1(found: int, gold: int, predicted: int) -> float:
    return float(200 * found / (gold + predicted)) if gold + predicted else 0.0
