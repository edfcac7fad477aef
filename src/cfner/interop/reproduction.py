"""How to repeat the training of a model: commands, settings and versions of its steps."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cfner.corpus.in_memory import IN_MEMORY
from cfner.files.markdown import escaped
from cfner.files.safe_text import json_text, visible
from cfner.store.lineage import LineageStep
from cfner.store.model_files import FIXED_AT_CREATION, LoadedModel

_PART = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,95}"
_HUB_NAME = re.compile(rf"({_PART}/)?{_PART}")
_NUMBERS = ("first", "per_step", "min_mentions", "every", "score_every", "seed")
_WORDS = ("sampling", "score_on")


def is_hub_name(encoder: str) -> bool:
    """Whether this looks like a name on the hub, rather than a local path."""
    return encoder != "minilm" and bool(_HUB_NAME.fullmatch(encoder)) and not Path(encoder).exists()


def public(value: Any) -> Any:
    """Shorten a local path to its last part, to keep private paths out of the card."""
    if not isinstance(value, str) or is_hub_name(value):
        return value
    return re.split(r"[/\\]", value.rstrip("/\\"))[-1]  # separators of any operating system


def public_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a training, with the parameters of its method, which may be paths as well."""
    parameters = {key: public(value) for key, value in settings.get("parameters", {}).items()}
    return {**{key: public(value) for key, value in settings.items()}, "parameters": parameters}


def reproduction(model: LoadedModel, steps: Sequence[LineageStep]) -> str:
    if not steps or "config" not in steps[-1].record:
        return "The settings of its training are not recorded here.\n"
    parts = [
        "With the same data (compare the hashes above), versions and settings. The settings of each step are "
        "JSON: save them as settings.json. `cfner train --help` explains them.\n"
    ]
    before: Any = None
    streams: list[Any] = []
    for step in steps:
        if step.kind != "learn":
            continue
        # the encoder as recorded in the model: in the settings, a folder can look like a name on the hub
        settings = public_settings({**(step.record.get("config") or {}), "encoder": model.encoder})
        if step.record.get("parent"):  # for later steps these come from the model, not from the settings
            settings = {key: value for key, value in settings.items() if key not in FIXED_AT_CREATION}
        versions = ", ".join(f"{name} {value}" for name, value in (step.record.get("versions") or {}).items())
        # no line of JSON starts with backquotes, so nothing in it can end the block
        block = f"```json\n{json_text(settings, indent=1)}\n```\n"
        stream = step.record.get("stream")
        command = f"```sh\n{_command(stream, first=not step.record.get('parent'))}\n```\n"
        repeated = stream and stream in streams
        streams.append(stream)
        parts.append(
            f"Step {step.number} ({escaped(versions)}):\n\n"
            + ("Learned by the same command.\n\n" if repeated else f"{command}\n")
            + ("Settings as in the step before.\n" if settings == before else block)
        )
        before = settings
    return "\n".join(parts)


def _command(stream: Mapping[str, Any] | None, *, first: bool) -> str:
    """One line. The record is untrusted, so text is quoted and numbers are converted."""
    if not stream:
        return (
            "cfner train DATA --config settings.json --out MODEL"
            if first
            else "cfner learn MODEL DATA --config settings.json --out NEW"
        )
    words = ["cfner", "train", "DATA"]
    for name in _NUMBERS:
        if type(stream.get(name)) is int:
            words += [_flag(name), str(stream[name])]
    for name in _WORDS:
        if isinstance(stream.get(name), str):
            words += [_flag(name), _quoted(stream[name])]
    for text in _strings(stream.get("unlabelled")):
        # data in memory has no name; its hash is in the record
        words += ["--unlabelled", "TEXT" if text.startswith(IN_MEMORY) else _quoted(text)]
    if order := _strings(stream.get("order")):
        words += ["--order", _quoted(",".join(order))]
    return " ".join([*words, "--config", "settings.json", "--out", "MODEL"])


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _strings(value: Any) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def _quoted(text: str) -> str:
    return shlex.quote(visible(text))
