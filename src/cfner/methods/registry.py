"""What a method is, and the list of those that exist.

A method says which objective a step minimises. Most need nothing else. The few hooks below exist because
a method here uses them.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from torch import Tensor

from cfner.errors import ConfigError, nearest, problems
from cfner.objective.terms import LabelRoles, Objective, TeacherView


class MethodParameters(BaseModel):
    """A method's own settings, under the paper's names."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


@dataclass(frozen=True)
class StepFacts:
    """What an objective may depend on."""

    old_types: int  # C_O
    new_types: int  # C_N
    epochs: int
    roles: LabelRoles


class Method:
    """Base of all methods. One instance serves a whole stream."""

    name: ClassVar[str]
    title: ClassVar[str]
    paper: ClassVar[str]
    good_for: ClassVar[str]
    parts: ClassVar[tuple[str, ...]] = ()  # what `--without` can take away
    freezes_old_rows: ClassVar[bool] = True
    from_scratch: ClassVar[bool] = False  # from the pretrained encoder, on all data so far (joint only)
    Parameters: ClassVar[type[MethodParameters]] = MethodParameters
    published: ClassVar[Mapping[str, Any]] = {}  # the paper's values, where another default measured better

    def __init__(self, parameters: MethodParameters, without: Collection[str] = ()) -> None:
        unknown = sorted(set(without) - set(self.parts))
        if unknown:
            raise ConfigError(
                f"The method '{self.name}' has no part '{unknown[0]}' to leave out.",
                remedy=nearest(unknown[0], self.parts),
            )
        self.parameters: Any = parameters
        self.without = frozenset(without)

    def has(self, part: str) -> bool:
        return part not in self.without

    @property
    def variant(self) -> str:
        """The name with what was left out: 'cfner without effect_o'."""
        return " without ".join([self.name, *([" & ".join(sorted(self.without))] if self.without else [])])

    def objective(self, facts: StepFacts) -> Objective:
        """What steps after the first minimise. (The first has no teacher: plain cross-entropy.)"""
        raise NotImplementedError

    def relabel(self, gold: Tensor, teacher: TeacherView, roles: LabelRoles) -> Tensor:
        """Labels to train on, given the step's labels [W] and what the teacher says. Default: unchanged."""
        return gold


_METHODS: dict[str, type[Method]] = {}
M = TypeVar("M", bound=type[Method])


def register(method: M) -> M:
    """Class decorator: make a method known by its name."""
    if method.name in _METHODS and _METHODS[method.name].__qualname__ != method.__qualname__:
        raise ConfigError(f"Two methods are named '{method.name}'.", remedy="Rename one of them.")
    _METHODS[method.name] = method
    return method


def load_file(path: str | Path) -> list[str]:
    """Run a file that registers methods of its own; their names. Only ever a file that the user named."""
    file = Path(path).resolve()
    before = set(_METHODS)
    name = f"cfner_method_{hashlib.sha256(str(file).encode()).hexdigest()[:12]}"
    if name not in sys.modules:
        found = importlib.util.spec_from_file_location(name, file)
        if found is None or found.loader is None or not file.is_file():
            raise ConfigError("This is not a Python file.", where=str(path), remedy="Name a .py file.")
        module = importlib.util.module_from_spec(found)
        sys.modules[name] = module  # pydantic looks annotations up there
        try:
            found.loader.exec_module(module)
        except Exception as error:
            del sys.modules[name]
            for half_done in set(_METHODS) - before:
                del _METHODS[half_done]
            if isinstance(error, ConfigError):
                raise
            raise ConfigError(
                f"The file with a method cannot be run: {type(error).__name__}: {error}.",
                where=str(path),
                remedy="'cfner bench add-method NAME' writes one that can.",
            ) from error
    registered = [key for key, kind in _METHODS.items() if kind.__module__ == name]
    if not registered:
        raise ConfigError(
            "The file registers no method.",
            where=str(path),
            remedy="Put @register above its class; 'cfner bench add-method NAME' writes an example.",
        )
    return registered


def source_hash(name: str) -> str | None:
    """The hash of the file that a foreign method is written in; None for the methods of this program."""
    kind = method_class(name)
    if kind.__module__.partition(".")[0] == __name__.partition(".")[0]:
        return None
    file = inspect.getsourcefile(kind)
    if file is None:
        raise ConfigError(f"The method '{name}' has no source file.", remedy="Write it in a file.")
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


def method_names() -> list[str]:
    return list(_METHODS)


def method_class(name: str) -> type[Method]:
    if name not in _METHODS:
        raise ConfigError(f"There is no method '{name}'.", remedy=nearest(name, _METHODS))
    return _METHODS[name]


def summary(method: type[Method]) -> str:
    """The first sentence of the method's docstring."""
    return (inspect.getdoc(method) or "").split("\n\n")[0].replace("\n", " ")


def create(
    name: str,
    parameters: Mapping[str, Any] | None = None,
    without: Collection[str] = (),
    *,
    as_published: bool = False,
) -> Method:
    """Build a method by name; an unknown parameter is an error that names the nearest known one.

    ``as_published``: what is not given has the paper's value rather than the default here.
    """
    kind = method_class(name)
    given = {**(kind.published if as_published else {}), **(parameters or {})}
    unknown = sorted(set(given) - set(kind.Parameters.model_fields))
    if unknown:
        raise ConfigError(
            f"The method '{name}' has no parameter '{unknown[0]}'.",
            remedy=nearest(unknown[0], kind.Parameters.model_fields),
        )
    try:
        return kind(kind.Parameters(**given), without)
    except ValidationError as error:
        raise ConfigError(
            f"Bad parameters for the method '{name}': {problems(error)}.",
            remedy=f"'cfner methods {name}' lists them with their defaults.",
        ) from error
