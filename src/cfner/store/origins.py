"""Which earlier network of a model learned each group of its labels, so that types can be kept as they were
learned, not as a later step left them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from cfner.network.network import Network
from cfner.store.lineage import ancestors
from cfner.store.model_files import read_model
from cfner.store.model_folder import ModelFolder, StoredStep
from cfner.store.step_files import read_labels
from cfner.stream.labels import LabelSpace


@dataclass(frozen=True)
class Origin:
    """A network, and the groups of labels that it learned and no later step trained."""

    groups: frozenset[int]
    network: Callable[[], Network]  # reads it, if it is on disk


def later(
    origins: Sequence[Origin],
    labels: LabelSpace,
    before: Callable[[], Network] | None,
    trained: frozenset[int],
) -> tuple[Origin, ...]:
    """The origins after a step that trained the groups ``trained``.

    ``origins``, ``labels``, ``before``: of the model that the step started from. Without the network
    ``before``, what it learned is kept as the step after it predicts it.
    """
    if before is not None:
        its_own = frozenset(labels.group_of).difference(*(origin.groups for origin in origins))
        origins = (*origins, Origin(its_own, before))
    left = (replace(origin, groups=origin.groups - trained) for origin in origins)
    return tuple(origin for origin in left if origin.groups)


def trained_groups(labels: LabelSpace, types: Iterable[str]) -> frozenset[int]:
    """The groups of a step's types; all groups if it has none, because a consolidation trains everything."""
    ids = labels.ids_of(list(types)) or range(len(labels))
    return frozenset(labels.group_of[label] for label in ids)


def origins_of(step: StoredStep) -> tuple[Origin, ...]:
    """Of a stored model, from its ancestors in the same folder. A pruned ancestor has no weights."""
    origins: tuple[Origin, ...] = ()
    for parent, child in pairwise(ancestors(step.folder.parent.parent, int(step.name))):
        if child.kind in {"learn", "consolidate"}:  # the others have the same weights
            before = None if parent.stored.pruned else reader(parent.stored)
            trained = trained_groups(read_labels(child.stored), child.types)
            origins = later(origins, read_labels(parent.stored), before, trained)
    return origins


def reader(step: StoredStep) -> Callable[[], Network]:
    """Reads the network of a stored step, with every byte verified."""

    def read() -> Network:
        return read_model(ModelFolder(step.folder.parent.parent).verified(step.name)).network

    return read
