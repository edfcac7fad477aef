"""Arguments that several functions share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from difflib import get_close_matches
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

from cfner.errors import ConfigError

PathLike = str | Path
Names = str | Sequence[str]  # "person,city" or ["person", "city"]


def names(listed: Names | None) -> list[str] | None:
    """Names in a list, or in a string with commas between them."""
    if isinstance(listed, str):
        return [name.strip() for name in listed.split(",") if name.strip()]
    return None if listed is None else list(listed)


def several(given: Any) -> tuple[Any, ...]:
    """One path or text, or a list of them; None for nothing."""
    if given is None:
        return ()
    return tuple(given) if isinstance(given, list | tuple) else (given,)


def settings_of(function: Callable[..., Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The TrainingConfig settings of a call, whose local variables are ``arguments``.

    A named argument that is None was not given. Each of ``**settings`` must be a setting or a parameter of a
    method; anything else is an error that suggests the nearest name.
    """
    from cfner.training.config import TrainingConfig

    fields = TrainingConfig.model_fields
    more: Mapping[str, Any] = arguments["settings"]
    named = {name: value for name, value in arguments.items() if name in fields and value is not None}
    own = {name: value for name, value in more.items() if name not in fields}
    if own:
        _refuse_unknown(own, function, fields)
    given = named | {name: value for name, value in more.items() if name in fields}
    return given | {"parameters": {**given.get("parameters", {}), **own}} if own else given


def _refuse_unknown(given: Collection[str], function: Callable[..., Any], fields: Collection[str]) -> None:
    """What is no parameter of any method."""
    from cfner.methods.registry import parameter_names

    parameters = parameter_names(given)
    for name in given:
        if name not in parameters:
            takes = [
                p.name for p in signature(function).parameters.values() if p.kind != Parameter.VAR_KEYWORD
            ]
            raise ConfigError(
                f"'{function.__name__}' has no argument '{name}', and there is no such setting.",
                remedy=_near(name, {*takes, *fields, *parameters}) or f"See help(cfner.{function.__name__}).",
            )


def _near(name: str, known: Collection[str]) -> str:
    """A hint with a few names: those that start with ``name``, or else similar ones."""
    asked = name.replace("learning_rate", "lr")  # the name that other trainers use
    longer = sorted(each for each in known if each.startswith(asked))
    close = longer[:3] or get_close_matches(asked, sorted(known), n=1, cutoff=0.6)
    return f"Did you mean {' or '.join(repr(each) for each in close)}?" if close else ""


def load_methods(use: PathLike | Sequence[PathLike] | None) -> None:
    """Run the user's Python files that define methods."""
    from cfner.methods.files import load_file

    for file in several(use):
        load_file(file)
