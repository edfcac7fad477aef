"""What a user gave as settings: flags, and ``--set`` for all that have none. They are merged in config.py."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cfner.errors import ConfigError


def from_flags(
    flags: Mapping[str, Any], pairs: Sequence[str] | None, parameters: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Only what was given; ``--set`` names a setting or, failing that, a parameter of the method."""
    from cfner.training.config import TrainingConfig

    # a flag that is None was not given; --set NAME=null gives it
    given = {name: value for name, value in flags.items() if value is not None}
    own = {name: value for name, value in (parameters or {}).items() if value is not None}
    for pair in pairs or ():
        name, equals, text = pair.partition("=")
        if not equals:
            raise ConfigError(f"--set {pair}: there is no '='.", remedy="Write --set NAME=VALUE.")
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        if name == "parameters" and isinstance(value, dict):
            own |= value
        else:
            (given if name in TrainingConfig.model_fields else own)[name] = value
    return {"parameters": own, **given} if own else given


def load_methods(files: Sequence[Path] | None) -> list[str]:
    """Run the files of ``--use``; their absolute paths."""
    from cfner.methods.registry import load_file

    paths = [str(file.resolve()) for file in files or ()]
    for path in paths:
        load_file(path)
    return paths


def names(listed: str | None) -> list[str]:
    """Names with commas between them."""
    return [name.strip() for name in (listed or "").split(",") if name.strip()]
