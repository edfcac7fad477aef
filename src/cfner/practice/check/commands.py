"""The one command to run after a check."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cfner.corpus.corpus import Corpus
from cfner.practice.check.findings import LearnPlan
from cfner.practice.check.mentions import FEW


@dataclass(frozen=True)
class Asked:
    """What the caller wants to learn, and how."""

    data: str
    model: str | None
    types: tuple[str, ...] | None
    old_labels: str
    reading: dict[str, Any]  # how to read the data, where it was said
    settings: dict[str, Any]  # of TrainingConfig, where they were given


def next_command(corpus: Corpus, asked: Asked, plan: LearnPlan | None, *, undecided: bool) -> str:
    """What to type next: learn or train if all is well, else the check that decides or confirms."""
    how = _flags({name.replace("_", "-"): value for name, value in asked.reading.items()})
    what = _flags({"types": ",".join(asked.types) if asked.types else None})
    old = _flags({"old-labels": asked.old_labels if asked.old_labels != "error" else None})
    extra = _flags({name.replace("_", "-"): value for name, value in asked.settings.items()})
    if plan is None:
        model = _flags({"model": asked.model})
        decided = ["--old-labels", "ignore"] if undecided else old
        return shlex.join(["cfner", "check", asked.data, *model, *what, *decided, *how, *extra])
    if asked.model is not None:
        out = f"{Path(asked.model).name or 'model'}-extended"
        return shlex.join(
            ["cfner", "learn", asked.model, asked.data, "--out", out, *what, *old, *how, *extra]
        )
    if not corpus.test:
        return shlex.join(["cfner", "data", "split", asked.data, f"{corpus.name}-split", *how])
    rare = min(corpus.mentions("train")[type_] for type_ in plan.new) < FEW
    first = _flags({"first": len(plan.new), "min-mentions": 1 if rare else None})
    return shlex.join(["cfner", "train", asked.data, "--out", "model", *first, *_order(plan, asked), *how])


def _order(plan: LearnPlan, asked: Asked) -> list[str]:
    """``train`` narrows the types by their order."""
    return ["--order", ",".join(plan.new)] if asked.types else []


def _flags(values: dict[str, Any]) -> list[str]:
    given = {name: value for name, value in values.items() if value is not None}
    return [part for name, value in given.items() for part in (f"--{name}", _shown(value))]


def _shown(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
