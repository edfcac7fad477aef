"""What a method is, and the registry of methods.

A method defines the objective that a step minimises. Most need nothing else. Each hook has a default that
suits most methods, and exists because some method uses it.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.metadata import entry_points
from typing import Any, ClassVar, Final, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from cfner.batches.step_data import StepData
from cfner.errors import ConfigError, nearest, problems
from cfner.methods.context import StepContext, Targets
from cfner.network.head import HeadKind
from cfner.network.network import Network
from cfner.objective.teacher import WordScores
from cfner.objective.terms import Objective
from cfner.stream.labels import Grouping
from cfner.stream.step import Slice, Step


class MethodParameters(BaseModel):
    """A method's own settings, under the paper's names."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


DISTILS: Final = (
    "Old types are kept by distillation: the new model is trained to predict what the old one predicted. How "
    "well that works is measured, not guaranteed."
)


class Method:
    """Base of all methods. One instance serves a complete stream."""

    name: ClassVar[str]
    title: ClassVar[str]
    paper: ClassVar[str]
    good_for: ClassVar[str]
    # shown to users beside the guard's figures: what the method guarantees for old types, in a sentence or
    # two
    promise: ClassVar[str] = "The method guarantees nothing for old types: only the guard's figures count."
    parts: ClassVar[Mapping[str, str]] = {}  # what `--without` can leave out, and the effect of that
    freezes_old_rows: ClassVar[bool] = True
    from_scratch: ClassVar[bool] = (
        False  # starts from the pretrained encoder, on all data so far (bounds only)
    )
    reads_unlabelled: ClassVar[bool] = True  # whether it learns anything from unlabelled text
    # The first step has no teacher. A plain first step is cross-entropy without any hook, the same for all
    # methods, so that a benchmark computes it once. Otherwise its hooks are called too, without a teacher.
    plain_first_step: ClassVar[bool] = True
    adds_experts: ClassVar[bool] = False  # whether it can continue from a model that has experts
    # the head of a new model, if the method requires one; it then does not share its first step with others.
    # None: the setting's
    head: ClassVar[HeadKind | None] = None
    Parameters: ClassVar[type[MethodParameters]] = MethodParameters
    # the parameter that weighs keeping the old types: a league tries half and twice its value. None: there is
    # no such weight, and the league tries learning rates instead
    knob: ClassVar[str | None] = None
    published: ClassVar[
        Mapping[str, Any]
    ] = {}  # the paper's values, where a different default measured better

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
        """The name and what was left out: 'cfner without effect_o'."""
        return " without ".join([self.name, *([" & ".join(sorted(self.without))] if self.without else [])])

    @property
    def grouping(self) -> Grouping | None:
        """Which new labels share an Other class. Default: O is one class for all."""
        return None

    @property
    def keeps_predictions(self) -> bool:
        """Whether a step that only adds types cannot change the predictions of old types, on any text.

        Default: no. This is about spans, not scores: a new type must not outvote an old one either.
        """
        return False

    def slices(self, step: Step) -> tuple[Slice, ...]:
        """The text that a step learns from. Default: its own data, replayed and unlabelled sentences."""
        return tuple(part for part in step.slices if self.reads_unlabelled or not part.unlabelled)

    def grow(self, network: Network, ctx: StepContext) -> Network:
        """The network that a step trains, before its head gets the new labels. Default: the network as it is.
        Called in every step, also the first.
        """
        return network

    def begin(self, network: Network, ctx: StepContext) -> None:
        """Called when the head has grown, before the first batch: decides what is trained.

        Default: the rows of types that the step does not label are frozen; O's row too if the user wants it.
        """
        frozen = [*ctx.roles.old, *([ctx.roles.other] if ctx.freeze_other else [])]
        network.head.freeze(frozen if self.freezes_old_rows else ())

    def teachers(self, ctx: StepContext) -> dict[str, WordScores]:
        """The teachers that terms can use, by name. Default: the network before this step, as ``old``."""
        return {"old": ctx.ask(ctx.old, self.objective(ctx).probes)}

    def targets(self, ctx: StepContext, teachers: Mapping[str, WordScores]) -> Targets:
        """The label and weight of every word for cross-entropy. Default: those of the data, and none for
        words of unlabelled text.
        """
        return Targets(ctx.data.known_labels)

    def views(self, ctx: StepContext) -> Mapping[str, StepData]:
        """Further versions of the step's text, by name: the same windows and words, with different subwords
        or labels. The student and the teachers read a batch in each of them too: ``teachers`` and ``targets``
        are called for each, with its data. Default: none. Not called in a first step.
        """
        return {}

    def objective(self, ctx: StepContext) -> Objective:
        """What a step after the first minimises. It may use sizes, roles and epochs, but not the data."""
        raise NotImplementedError

    def finish(self, network: Network, ctx: StepContext) -> None:
        """Called after the last epoch, with the weights of the chosen one. Default: nothing."""


class Wrapper(Method):
    """An addition to any method: ``class Fusion(Wrapper)`` makes ``extendner+fusion``.

    It overrides hooks and calls ``super()``, which is the method that it wraps. It has no objective.
    """


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
