"""What a method is: the objective that a step minimises, and the hooks around it.

Most methods need the objective alone. Each hook has a default that suits most methods, and exists because
some method uses it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Final, NamedTuple

from pydantic import BaseModel, ConfigDict

from cfner.batches.step_data import StepData
from cfner.errors import ConfigError, nearest
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


class FirstStep(NamedTuple):
    """A first step that a benchmark computes once for several methods."""

    method: str  # whose first step it is
    parameters: frozenset[str]  # those that it depends on


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
    # Where the first step is not plain, but that of another method (or its own, with other parameters).
    # Subclasses do not inherit it, because they may change the first step.
    first_step: ClassVar[FirstStep | None] = None
    adds_experts: ClassVar[bool] = False  # whether it can continue from a model that has experts
    # the head of a new model, if the method requires one; it then does not share its first step with others.
    # None: the setting's
    head: ClassVar[HeadKind | None] = None
    Parameters: ClassVar[type[MethodParameters]] = MethodParameters
    # raised when the method computes something else than before: runs of older versions are then not reused
    recipe: ClassVar[int] = 1
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

    @property
    def keeps_as_learned(self) -> bool:
        """Whether it asks for the earlier networks that learned old types (``ctx.ask``, ``as_learned``)."""
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


def shared_first_step(kind: type[Method]) -> FirstStep | None:
    """What the method's own class declares."""
    declared: FirstStep | None = vars(kind).get("first_step")
    return declared


class Wrapper(Method):
    """An addition to any method: ``class Fusion(Wrapper)`` makes ``extendner+fusion``.

    It overrides hooks and calls ``super()``, which is the method that it wraps. It has no objective.
    """
