"""What a user gave as settings: flags, and ``--set`` for all that have none. They are merged in config.py."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cfner.errors import ConfigError, nearest

# parameters of the paper that have flags of their own
PAPER = ("k", "delta_1", "delta_m", "m", "lambda_base", "t_student", "t_teacher")


def from_flags(arguments: Mapping[str, Any], pairs: Sequence[str] | None = None) -> dict[str, Any]:
    """Of a command's arguments, by their names, the settings that were given; and those of ``--set``,
    which names a setting or, failing that, a parameter of the method.

    ``load_methods`` comes first: methods of a user's file have parameters, too.
    """
    from cfner.training.config import TrainingConfig

    # a flag that is None (or a list without items) was not given; --set NAME=null gives it
    flags = {name: value for name, value in arguments.items() if value is not None and value != []}
    given = {name: value for name, value in flags.items() if name in TrainingConfig.model_fields}
    own = {name: value for name, value in flags.items() if name in PAPER}
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
        elif name in TrainingConfig.model_fields:
            given[name] = value
        else:
            _refuse_unknown(name)
            own[name] = value
    return {"parameters": own, **given} if own else given


def _refuse_unknown(name: str) -> None:
    """Neither a setting nor a parameter of any method. Whether the chosen method has it is checked later."""
    from cfner.methods import method_class, method_names, wrapper_class, wrapper_names
    from cfner.training.config import TrainingConfig

    kinds = [*map(method_class, method_names()), *map(wrapper_class, wrapper_names())]
    known = set(TrainingConfig.model_fields).union(*(kind.Parameters.model_fields for kind in kinds))
    if name not in known:
        asked = name.replace("learning_rate", "lr")  # as other trainers call it
        raise ConfigError(f"--set {name}: there is no such setting.", remedy=nearest(asked, known))


def load_methods(files: Sequence[Path] | None) -> list[str]:
    """Run the files of ``--use``; their absolute paths."""
    from cfner.methods.files import load_file

    paths = [str(file.resolve()) for file in files or ()]
    for path in paths:
        load_file(path)
    return paths


def names(listed: str | None) -> list[str]:
    """Names with commas between them."""
    return [name.strip() for name in (listed or "").split(",") if name.strip()]
