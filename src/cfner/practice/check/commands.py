"""The one command to run after a check."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cfner.corpus.corpus import Corpus
from cfner.corpus.formats import writable_formats
from cfner.corpus.in_memory import IN_MEMORY
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
    """What to do next: learn or train if all is well, else the check that decides or confirms. A command, or
    for data in memory, which no command can read, a call of the function with that name.
    """
    old = None if old_labels == "error" else old_labels
    text = [word for path in unlabelled for word in ("--unlabelled", path)]
    asked = {"types": types, "old_labels": old, **reading, **settings}
    in_memory = data == IN_MEMORY
    if plan is None:
        words, given = ["check", data], {"model": model, **asked}
    elif model is not None:
        out = f"{Path(model).name or 'model'}-extended"
        words, given = ["learn", model, data], {"out": out, **asked}
    elif not corpus.test:
        if in_memory:
            return "Corpus.read(data).split()"
        words, given, text = ["data", "split", data, f"{corpus.name}-split"], dict(reading), []
    else:
        rare = min(corpus.mentions("train")[type_] for type_ in plan.new) < FEW
        order = plan.new if types else None  # ``train`` narrows the types by their order
        words, text = ["train", data], []
        given = {"out": "model", "first": len(plan.new), "min_mentions": 1 if rare else None, "order": order}
        given |= reading
    if in_memory:
        more = {"unlabelled": list(unlabelled)} if text else {}
        return _call(words[0], ["data" if word == data else repr(word) for word in words[1:]], given | more)
    return shlex.join(["cfner", *words, *_flags(**given), *text])


def _call(name: str, first: Sequence[str], given: Mapping[str, Any]) -> str:
    """A call as it is written in Python; parameters of the method are arguments like others."""
    given = {**given, **given.get("parameters", {}), "parameters": None}
    named = (
        f"{key}={list(value) if isinstance(value, tuple) else value!r}"
        for key, value in given.items()
        if value is not None
    )
    return f"cfner.{name}({', '.join([*first, *named])})"


def rename_command(data: str, reading: Mapping[str, Any], names: Sequence[str], into: str) -> str:
    """What gives types of the data another name."""
    if data == IN_MEMORY:
        return f"Corpus.read(data).renamed({dict.fromkeys(names, into)!r})"
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
        if isinstance(value, Mapping):  # parameters of the method
            flags += [word for key, one in value.items() for word in ("--set", f"{key}={json.dumps(one)}")]
        elif value is not None:
            shown = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
            flags += [f"--{name.replace('_', '-')}", shown]
    return flags
