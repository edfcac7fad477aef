"""Which earlier network of a model learned each group of its labels, so that types can be kept as they were
learned, not as a later step left them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
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
    """A network, on disk or in memory, and the groups of labels that it learned and no later step trained."""

    groups: frozenset[int]
    source: StoredStep | Network

    @property
    def there(self) -> bool:
        """Whether its weights can still be read: its folder may be gone since, or pruned."""
        return isinstance(self.source, Network) or (self.source.folder.is_dir() and not self.source.pruned)

    def network(self) -> Network:
        """A network that the caller may move to a device; on disk, every byte is verified."""
        if isinstance(self.source, Network):
            return self.source.frozen_copy()
        folder = ModelFolder(self.source.folder.parent.parent)
        return read_model(folder.verified(self.source.name)).network

    @property
    def name(self) -> str:
        """What identifies it, for a step that is resumed."""
        return self.source.hash if isinstance(self.source, StoredStep) else "in memory"


def later(
    origins: Sequence[Origin],
    before: LabelSpace,
    source: StoredStep | Network | None,
    after: LabelSpace,
    types: Collection[str],
) -> tuple[Origin, ...]:
    """The origins after a step that learned ``types``; without types it was a consolidation, which trains
    everything.

    ``origins``, ``before``, ``source``: of the model that the step started from. Without the weights of
    ``source``, what it learned is kept as the step after it predicts it.
    """
    if not types:
        return ()
    if source is not None:
        its_own = _groups(before).difference(*(origin.groups for origin in origins))
        origins = (*origins, Origin(its_own, source))
    trained = {after.group_of_type(type_) for type_ in types}
    trained |= set(after.group_of[len(before) :])  # an old group may get a label, which only this step knows
    left = (replace(origin, groups=origin.groups - trained) for origin in origins)
    return tuple(origin for origin in left if origin.groups)


def _groups(labels: LabelSpace) -> frozenset[int]:
    """The groups that have a label; O alone is none."""
    return frozenset(group for label, group in enumerate(labels.group_of) if label != labels.other_id)


def origins_of(step: StoredStep) -> tuple[Origin, ...]:
    """Of a stored model, from its ancestors in the same folder. A pruned ancestor has no weights."""
    origins: tuple[Origin, ...] = ()
    for parent, child in pairwise(ancestors(step.folder.parent.parent, int(step.name))):
        if child.record.get("from_scratch"):
            origins = ()
        elif child.kind in {"learn", "consolidate"}:  # the others have the same weights
            source = None if parent.stored.pruned else parent.stored
            before, after = read_labels(parent.stored), read_labels(child.stored)
            origins = later(origins, before, source, after, child.types)
    return origins


def same_groups(one: Sequence[Origin], other: Sequence[Origin]) -> bool:
    return {origin.groups for origin in one} == {origin.groups for origin in other}
