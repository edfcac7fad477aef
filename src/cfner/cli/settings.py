"""The settings that a user gave: flags, and ``--set`` for those without a flag. config.py merges them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cfner.errors import ConfigError, nearest

# parameters of the paper that have a flag
_OF_THE_TERMINAL = {"json", "set_", "show"}
PAPER = ("k", "delta_1", "delta_m", "m", "lambda_base", "t_student", "t_teacher")


def from_flags(arguments: Mapping[str, Any], pairs: Sequence[str] | None = None) -> dict[str, Any]:
    """The settings among a command's arguments, and those of ``--set``, each a setting or a parameter of
    the method.

    Call ``load_methods`` first: methods in a user's file have parameters too.
    """
    from cfner.training.config import TrainingConfig

    # a flag that is None (or a list without items) was not given; --set NAME=null gives it
    flags = {name: value for name, value in arguments.items() if value is not None and value != []}
    given = {name: value for name, value in flags.items() if name in TrainingConfig.model_fields}
    own = {name: value for name, value in flags.items() if name in PAPER}
    for name, value in set_pairs(pairs).items():
        if name == "parameters" and isinstance(value, dict):
            own |= value
        elif name in TrainingConfig.model_fields:
            given[name] = value
        else:
            _refuse_unknown(name)
            own[name] = value
    return {"parameters": own, **given} if own else given


def _refuse_unknown(name: str) -> None:
    """Neither a setting nor a parameter of any method. Whether the chosen method has it is checked later."""
    from cfner.methods.registry import parameter_names
    from cfner.training.config import TrainingConfig

    known = parameter_names([name]).union(TrainingConfig.model_fields)
    if name not in known:
        asked = name.replace("learning_rate", "lr")  # the name that other trainers use
        raise ConfigError(f"--set {name}: there is no such setting.", remedy=nearest(asked, known))


def set_pairs(pairs: Sequence[str] | None) -> dict[str, Any]:
    """The values of ``--set``, by name."""
    given: dict[str, Any] = {}
    for pair in pairs or ():
        name, equals, text = pair.partition("=")
        if not equals:
            raise ConfigError(f"--set {pair}: there is no '='.", remedy="Write --set NAME=VALUE.")
        try:
            given[name] = json.loads(text)
        except ValueError:
            given[name] = text
    return given


def call_of(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A command's arguments as its function takes them: with --set, without options of the terminal."""
    call = {name: value for name, value in arguments.items() if name not in _OF_THE_TERMINAL}
    call = {name: value for name, value in call.items() if value is not None or name not in PAPER}
    for name, value in set_pairs(arguments.get("set_")).items():
        if name in arguments and name not in PAPER:
            _refuse_argument(name)
        if value is None and name in call:  # there, None is what was not given
            from cfner.training.config import read_settings

            file = call.get("config")
            call["config"] = {**(read_settings(file) if isinstance(file, Path) else file or {}), name: None}
        else:
            call[name] = value
    return call


def _refuse_argument(name: str) -> None:
    """An argument of the command that is no setting; its flag checks what it is given."""
    from cfner.training.config import TrainingConfig

    if name not in TrainingConfig.model_fields:
        raise ConfigError(f"--set {name}: it is no setting.", remedy="Give it as 'cfner COMMAND -h' says.")


def load_methods(files: Sequence[Path] | None) -> list[str]:
    """Run the files of ``--use``; their absolute paths."""
    from cfner.methods.files import load_file

    paths = [str(file.resolve()) for file in files or ()]
    for path in paths:
        load_file(path)
    return paths


def names(listed: str | None) -> list[str]:
    """Split a comma-separated list."""
    return [name.strip() for name in (listed or "").split(",") if name.strip()]
