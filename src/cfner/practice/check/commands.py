"""The one command to run after a check."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cfner.corpus.corpus import Corpus
from cfner.corpus.formats import writable_formats
from cfner.practice.check.findings import LearnPlan
from cfner.practice.check.mentions import FEW


def next_command(
    corpus: Corpus,
    plan: LearnPlan | None,
    data: str,
    model: str | None,
    types: Sequence[str] | None,
    old_labels: str,
    reading: Mapping[str, Any],
    settings: Mapping[str, Any],
    unlabelled: Sequence[str] = (),
) -> str:
    """What to type next: learn or train if all is well, else the check that decides or confirms."""
    old = None if old_labels == "error" else old_labels
    text = [word for path in unlabelled for word in ("--unlabelled", path)]
    if plan is None:
        flags = _flags(model=model, types=types, old_labels=old, **reading, **settings)
        words = ["check", data, *flags, *text]
    elif model is not None:
        out = f"{Path(model).name or 'model'}-extended"
        words = ["learn", model, data, *_flags(out=out, types=types, old_labels=old, **reading, **settings)]
        words += text
    elif not corpus.test:
        words = ["data", "split", data, f"{corpus.name}-split", *_flags(**reading)]
    else:
        rare = min(corpus.mentions("train")[type_] for type_ in plan.new) < FEW
        order = plan.new if types else None  # ``train`` narrows the types by their order
        first = _flags(out="model", first=len(plan.new), min_mentions=1 if rare else None, order=order)
        words = ["train", data, *first, *_flags(**reading)]
    return shlex.join(["cfner", *words])


def rename_command(data: str, reading: Mapping[str, Any], names: Sequence[str], into: str) -> str:
    """What gives types of the data another name."""
    path = Path(data)
    known = {suffix for format in writable_formats().values() for suffix in format.suffixes}
    suffix = "" if path.is_dir() else path.suffix if path.suffix.lower() in known else ".jsonl"
    out = str(path.with_name(f"{path.stem}-renamed{suffix}"))
    given = {name: reading.get(name) for name in ("format", "tag_column", "token_column")}
    flags = _flags(out=out, **given)
    return shlex.join(["cfner", "data", "rename-type", data, ",".join(names), into, *flags])


def _flags(**values: Any) -> list[str]:
    flags = []
    for name, value in values.items():
        if value is not None:
            shown = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
            flags += [f"--{name.replace('_', '-')}", shown]
    return flags
