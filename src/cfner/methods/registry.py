"""What a method is, and the list of those that exist.

A method says which objective a step minimises. Most need nothing else. Each hook has a default that suits
most methods, and exists because a method uses it.
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
    "Old types are kept by distillation: the new model is trained to answer as the old one did. How well "
    "that works is measured, not guaranteed."
)


class Method:
    """Base of all methods. One instance serves a whole stream."""

    name: ClassVar[str]
    title: ClassVar[str]
    paper: ClassVar[str]
    good_for: ClassVar[str]
    # what users are told about their old types beside the guard's figures, in a sentence or two
    promise: ClassVar[str] = "The method promises nothing about old types: only the guard's figures count."
    parts: ClassVar[Mapping[str, str]] = {}  # what `--without` can take away, and what then happens
    freezes_old_rows: ClassVar[bool] = True
    from_scratch: ClassVar[bool] = False  # from the pretrained encoder, on all data so far (bounds only)
    reads_unlabelled: ClassVar[bool] = True  # whether unlabelled text teaches it anything
    # The first step has no teacher. A plain one is cross-entropy without any hook, the same for all methods,
    # so that a grid computes it once. Otherwise the hooks are called in it, too, without a teacher.
    plain_first_step: ClassVar[bool] = True
    adds_experts: ClassVar[bool] = False  # whether it goes on from a model that has experts
    # the head of a fresh model, where the method is not itself with another; it then has a first step of its
    # own. None: the setting's
    head: ClassVar[HeadKind | None] = None
    Parameters: ClassVar[type[MethodParameters]] = MethodParameters
    # the parameter that weighs what it keeps of the old: a league tries half and twice its value. None: there
    # is no such weight, and the learning rates are tried
    knob: ClassVar[str | None] = None
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

    @property
    def grouping(self) -> Grouping | None:
        """Which new labels share an Other class of their own. Default: none do, O is one class for all."""
        return None

    @property
    def keeps_predictions(self) -> bool:
        """Whether a step that only adds types cannot change what is predicted of the old ones, on any text.

        Default: no. It is about spans, not scores: a new type must not outvote an old one either.
        """
        return False

    def slices(self, step: Step) -> tuple[Slice, ...]:
        """The text that a step is learned from. Default: its own data, replayed and unlabelled sentences."""
        return tuple(part for part in step.slices if self.reads_unlabelled or not part.unlabelled)

    def grow(self, network: Network, ctx: StepContext) -> Network:
        """The network that a step trains, before its head gets the new labels. Default: the one that came in.
        Called in every step, the first one too.
        """
        return network

    def begin(self, network: Network, ctx: StepContext) -> None:
        """Called when the head has grown, before the first batch: decide what is trained.

        Default: the rows of types that the step does not label are frozen; O's row too if the user wants it.
        """
        frozen = [*ctx.roles.old, *([ctx.roles.other] if ctx.freeze_other else [])]
        network.head.freeze(frozen if self.freezes_old_rows else ())

    def teachers(self, ctx: StepContext) -> dict[str, WordScores]:
        """Whom terms may ask, by name. Default: the network as it came in, as ``old``."""
        return {"old": ctx.ask(ctx.old, self.objective(ctx).probes)}

    def targets(self, ctx: StepContext, teachers: Mapping[str, WordScores]) -> Targets:
        """The label and weight of every word for cross-entropy. Default: as they are in the data, and none
        for words of unlabelled text.
        """
        return Targets(ctx.data.known_labels)

    def views(self, ctx: StepContext) -> Mapping[str, StepData]:
        """Other ways to read the step's text, by name: the same windows and words, with other subwords or
        labels. The student reads a batch in each of them too, and so do the teachers: ``teachers`` and
        ``targets`` are called for each, with its data. Default: none. Not called in a first step.
        """
        return {}

    def objective(self, ctx: StepContext) -> Objective:
        """What a step after the first minimises. It looks at numbers, roles and epochs, not at the data."""
        raise NotImplementedError

    def finish(self, network: Network, ctx: StepContext) -> None:
        """Called after the last epoch, with the weights of the chosen one. Default: nothing."""


class Wrapper(Method):
    """Something that can be added to any method: ``class Fusion(Wrapper)`` makes ``extendner+fusion``.

    It overrides hooks and calls ``super()``, which is the method that it is added to. It has no objective.
    """


_METHODS: dict[str, type[Method]] = {}
_WRAPPERS: dict[str, type[Wrapper]] = {}
M = TypeVar("M", bound=type[Method])


def register(method: M) -> M:
    """Class decorator: make a method, or a wrapper, known by its name."""
    if not issubclass(method, Wrapper) and method.objective is Method.objective:
        raise ConfigError(
            f"The method '{method.name}' has no objective: nothing says what its steps minimise.",
            remedy="Write 'def objective(self, ctx)' in its class; 'cfner bench add-method NAME' writes an "
            "example.",
        )
    if method.head and method.plain_first_step:
        raise ConfigError(
            f"The method '{method.name}' has a head of its own, but a first step that it shares with others.",
            remedy="Write 'plain_first_step = False' in its class.",
        )
    known: dict[str, Any] = _WRAPPERS if issubclass(method, Wrapper) else _METHODS
    if method.name in known and known[method.name].__qualname__ != method.__qualname__:
        raise ConfigError(f"Two methods are named '{method.name}'.", remedy="Rename one of them.")
    known[method.name] = method
    return method


@contextmanager
def all_or_nothing() -> Iterator[None]:
    """What is registered meanwhile stays only if nothing goes wrong."""
    before = [(known, set(known)) for known in (_METHODS, _WRAPPERS)]
    try:
        yield
    except Exception:
        for known, kept in before:
            for half_done in set(known) - kept:
                del known[half_done]
        raise


def registered_in(module: str) -> list[str]:
    """The names of what a module, or one inside it, has registered."""
    kinds = (_METHODS | _WRAPPERS).items()
    return [name for name, kind in kinds if f"{kind.__module__}.".startswith(f"{module}.")]


PLUG_INS: Final = "cfner.methods"  # the entry point under which installed packages name a module or a class
_PACKAGE_OF: dict[str, str] = {}  # of each method that came so


@cache  # once; an error is raised again every time
def _load_plug_ins() -> None:
    """Import what installed packages announce. Only when a name is looked for that is not known yet, or all
    are: nobody who names a method of this program runs the code of others.
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
                f"The installed package '{package}' announces a method that cannot be used: {told}",
                where=f"entry point {PLUG_INS}: {entry.name} = {entry.value}",
                remedy=f"Repair or update the package, or remove it: pip uninstall {package}",
            ) from error
        _PACKAGE_OF.update(dict.fromkeys(brought, package))


def package_of(name: str) -> str | None:
    """The installed package that brought a method or wrapper; None for those of this program."""
    return _PACKAGE_OF.get(name)


def method_names() -> list[str]:
    """Those of this program first, then those of installed packages."""
    _load_plug_ins()
    return list(_METHODS)


def wrapper_names() -> list[str]:
    """What can be added to any method: NAME+WRAPPER."""
    _load_plug_ins()
    return list(_WRAPPERS)


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
            remedy=f"Add {wrapper.name} to a method that goes on from the step before.",
        )
    if base.adds_experts:
        raise ConfigError(
            f"There is no '{name}': {base.name} trains new experts and leaves the old ones as they are.",
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
