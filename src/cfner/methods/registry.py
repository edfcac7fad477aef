"""The registry of methods: those of this program, of a user's files, and of installed packages."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.metadata import entry_points
from typing import Any, Final, TypeVar

from pydantic import ValidationError, create_model

from cfner.errors import ConfigError, nearest, problems
from cfner.methods.method import Method, Wrapper

_METHODS: dict[str, type[Method]] = {}
_WRAPPERS: dict[str, type[Wrapper]] = {}
M = TypeVar("M", bound=type[Method])


def register(method: M) -> M:
    """Class decorator: register a method, or a wrapper, under its name."""
    if not issubclass(method, Wrapper) and method.objective is Method.objective:
        raise ConfigError(
            f"The method '{method.name}' has no objective, so there is nothing for its steps to minimise.",
            remedy="Write 'def objective(self, ctx)' in its class; 'cfner bench add-method NAME' writes an "
            "example.",
        )
    if method.head and method.plain_first_step:
        raise ConfigError(
            f"The method '{method.name}' requires a head, but shares its first step with other methods.",
            remedy="Write 'plain_first_step = False' in its class.",
        )
    known: dict[str, Any] = _WRAPPERS if issubclass(method, Wrapper) else _METHODS
    before = known.get(method.name)
    # a file or a cell of a notebook that is run again; but nobody replaces a method of this program
    again = before is not None and before.__qualname__ == method.__qualname__
    if before is not None and not (again and _is_ours(before) <= _is_ours(method)):
        raise ConfigError(f"Two methods are named '{method.name}'.", remedy="Rename one of them.")
    known[method.name] = method
    return method


def _is_ours(kind: type[Method]) -> bool:
    return kind.__module__.partition(".")[0] == __name__.partition(".")[0]


@contextmanager
def all_or_nothing() -> Iterator[None]:
    """Undo all registrations and replacements made in this block if it raises."""
    methods, wrappers = dict(_METHODS), dict(_WRAPPERS)
    try:
        yield
    except Exception:
        for known, kept in ((_METHODS, methods), (_WRAPPERS, wrappers)):
            known.clear()
            known.update(kept)  # type: ignore[arg-type]  # each with its own
        raise


def registered_in(module: str) -> list[str]:
    """The names that a module, or one of its submodules, has registered."""
    kinds = (_METHODS | _WRAPPERS).items()
    return [name for name, kind in kinds if f"{kind.__module__}.".startswith(f"{module}.")]


def unregister(names: Collection[str]) -> None:
    for name in names:
        _METHODS.pop(name, None)
        _WRAPPERS.pop(name, None)


PLUG_INS: Final = "cfner.methods"  # the entry point group under which packages list a module or a class
_PACKAGE_OF: dict[str, str] = {}  # of each method from a package


@cache  # once; an error is raised again every time
def _load_plug_ins() -> None:
    """Import the plug-ins of installed packages. Only when all names are wanted, or one that is not known
    yet: whoever uses one of cfner's own methods never runs third-party code.
    """
    for entry in sorted(entry_points(group=PLUG_INS), key=lambda entry: entry.name):
        package = entry.dist.name if entry.dist is not None else entry.module
        try:
            with all_or_nothing():
                entry.load()
                brought = registered_in(entry.module.partition(".")[0])
                if not brought:
                    raise ConfigError("it registers no method.")
        except Exception as error:
            told = error.what if isinstance(error, ConfigError) else f"{type(error).__name__}: {error}."
            raise ConfigError(
                f"The installed package '{package}' has a method plug-in that cannot be used: {told}",
                where=f"entry point {PLUG_INS}: {entry.name} = {entry.value}",
                remedy=f"Repair or update the package, or remove it: pip uninstall {package}",
            ) from error
        _PACKAGE_OF.update(dict.fromkeys(brought, package))


def package_of(name: str) -> str | None:
    """The installed package that a method or wrapper comes from; None for cfner's own."""
    return _PACKAGE_OF.get(name)


def method_names() -> list[str]:
    """cfner's own methods first, then those of installed packages."""
    _load_plug_ins()
    return list(_METHODS)


def wrapper_names() -> list[str]:
    """Wrappers, which can be added to any method: NAME+WRAPPER."""
    _load_plug_ins()
    return list(_WRAPPERS)


def parameter_names(wanted: Collection[str]) -> set[str]:
    """The parameters of all methods and wrappers; of those installed only if the others lack a wanted one."""
    known = _parameters()
    if not known.issuperset(wanted):
        _load_plug_ins()
        known = _parameters()
    return known


def _parameters() -> set[str]:
    return {name for kind in (_METHODS | _WRAPPERS).values() for name in kind.Parameters.model_fields}


def wrapper_class(name: str) -> type[Wrapper]:
    return _WRAPPERS[name]


def method_class(name: str) -> type[Method]:
    """A method by name; ``NAME+WRAPPER`` adds a wrapper to any method."""
    if (known := _known(name)) is not None:
        return known
    _load_plug_ins()
    if (known := _known(name)) is not None:
        return known
    raise ConfigError(f"There is no method '{name}'.", remedy=nearest(name, _METHODS))


def _known(name: str) -> type[Method] | None:
    if name in _METHODS:
        return _METHODS[name]
    base, plus, wrapper = name.rpartition("+")
    if plus and wrapper in _WRAPPERS:
        return _wrapped(method_class(base), _WRAPPERS[wrapper])  # type: ignore[arg-type]  # classes have hashes
    return None


@cache
def _wrapped(base: type[Method], wrapper: type[Wrapper]) -> type[Method]:
    name = f"{base.name}+{wrapper.name}"
    if base.from_scratch:
        raise ConfigError(
            f"There is no '{name}': {base.name} starts from scratch, so it has no old network.",
            remedy=f"Add {wrapper.name} to a method that continues from the step before.",
        )
    if base.adds_experts:
        raise ConfigError(
            f"There is no '{name}': {base.name} trains new experts and does not change the old ones.",
            remedy=f"Use {base.name} as it is, or add {wrapper.name} to a method that trains one network.",
        )
    if twice := sorted(base.Parameters.model_fields.keys() & wrapper.Parameters.model_fields.keys()):
        raise ConfigError(
            f"There is no '{name}': both have a parameter '{twice[0]}'.", remedy="Rename one of them."
        )
    parameters = create_model("Parameters", __base__=(wrapper.Parameters, base.Parameters))
    names = {
        "name": name,
        "title": f"{base.title} with {wrapper.title.lower()}",
        "paper": f"{base.paper}; {wrapper.paper}",
        "good_for": wrapper.good_for,
        "parts": base.parts,
        "published": {**base.published, **wrapper.published},
        "Parameters": parameters,
        "__doc__": f"{summary(wrapper)} {summary(base)}",
        "__module__": wrapper.__module__,
    }
    return type(wrapper.__name__ + base.__name__, (wrapper, base), names)


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

    ``as_published``: parameters that are not given take the paper's value instead of cfner's default.
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
