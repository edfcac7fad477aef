"""What a step learns from labelled data: decided here for both ``learn`` and ``check``."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cfner.errors import ConfigError, nearest

if TYPE_CHECKING:
    from cfner.methods.method import Method
    from cfner.store.model_files import LoadedModel

OLD_LABELS: Final = ("error", "ignore", "use")


@dataclass(frozen=True, slots=True)
class StepPlan:
    """The types of the data, each in exactly one of three groups (all sorted by name).

    ``new`` are learned and get new labels; ``more`` are known already and are trained further;
    ``ignored`` are labelled in the data, but their labels are dropped before training.
    """

    new: tuple[str, ...]
    more: tuple[str, ...]
    ignored: tuple[str, ...]

    @property
    def current(self) -> tuple[str, ...]:
        """The types that are trained; every other known type should be kept."""
        return tuple(sorted(self.new + self.more))


def plan_step(
    types_in_data: Collection[str],
    known: Collection[str],
    wanted: Sequence[str] | None = None,
    old_labels: str = "error",
) -> StepPlan:
    """Which types of the data a model that knows ``known`` would learn, train further, or ignore.

    Without ``wanted``: the types that the model does not know are learned. If it knows them all, this
    is more data for known types. If both occur, ``old_labels`` decides about the known ones: ``error``
    refuses, ``ignore`` drops their labels, ``use`` trains them too.

    With ``wanted`` exactly the named types are trained, known or not, and the labels of
    the rest are dropped: this answers the question that ``error`` raises. ``use`` still adds the
    known types that the data labels.
    """
    if old_labels not in OLD_LABELS:
        raise ConfigError(f"`old_labels` cannot be '{old_labels}'.", remedy=nearest(old_labels, OLD_LABELS))
    labelled, old = set(types_in_data), set(types_in_data) & set(known)
    if not labelled:
        raise ConfigError(
            "The data has no labelled mention, so there is nothing to learn.",
            remedy="Label some, or name the format of the file (`format`) if its labels were not read.",
        )
    if wanted is None:
        chosen = labelled - old or old
        if old and chosen != old and old_labels == "error":
            raise _old_beside_new(sorted(old), sorted(chosen))
    else:
        chosen = _named(wanted, labelled)
    if old_labels == "use":
        chosen = chosen | old
    return StepPlan(
        new=tuple(sorted(chosen - old)),
        more=tuple(sorted(chosen & old)),
        ignored=tuple(sorted(labelled - chosen)),
    )


def refuse_method(method: Method, model: LoadedModel) -> None:
    """Refuse methods that need the old data, or a head or a shared Other class that the model does not
    have."""
    if method.from_scratch:
        raise ConfigError(
            f"The method '{method.variant}' needs all old data, which is not available.",
            remedy="Use own-other, or another method that needs no old data.",
        )
    from cfner.methods.context import ExampleContext
    from cfner.training.step import refuse_model

    refuse_model(method, model)
    if model.network.head.kind != "cosine" and method.objective(ExampleContext(1, 1)).needs_cosines:
        raise ConfigError(
            f"The method '{method.variant}' needs a cosine head; this model has a linear one.",
            remedy="Use own-other, extendner or self-training, which take any head.",
        )


def _named(wanted: Sequence[str], labelled: set[str]) -> set[str]:
    if not wanted:
        raise ConfigError("`types` names no type.", remedy="Name at least one, or leave it out.")
    for name in wanted:
        if name not in labelled:
            raise ConfigError(
                f"The data has no mention of the type '{name}'.", remedy=nearest(name, labelled)
            )
    return set(wanted)


def _old_beside_new(old: list[str], new: list[str]) -> ConfigError:
    return ConfigError(
        f"The data labels types that the model already knows ({', '.join(old)}) "
        f"beside new ones ({', '.join(new)}), and it is not clear what to do with the old labels.",
        remedy="Drop them with `old_labels='ignore'` (the old model's knowledge is kept by distillation), "
        "train on them too with `old_labels='use'` (only if every mention of them is labelled), "
        "or name the types to learn with `types`.",
    )
