"""``history``, ``rollback``, ``rename``, ``merge``, ``forget``, ``prune``: a model's steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfner.api.arguments import Names, PathLike, names

if TYPE_CHECKING:
    from cfner.practice.history.history import PastStep
    from cfner.practice.history.prune import Pruned


def history(model: PathLike, *, verify: bool = False) -> list[PastStep]:
    """List a model's steps: what each learned, from which step it came, how it scored, which is current.

    Args:
        model: A model folder.
        verify: Check every byte and the lineage of every step; damage raises ``ModelError``.

    Returns:
        The steps in the order in which they were added.
    """
    from cfner.practice.history import history as past

    return past.verify(model) if verify else past.history(model)


def rollback(model: PathLike, step: int) -> PastStep:
    """Make another step the current one. Nothing is deleted, so a rollback can be undone the same way.

    Args:
        model: A model folder.
        step: The step to go back (or forward) to; ``history`` lists them.

    Returns:
        The step that is current now.
    """
    from cfner.practice.history import history as past

    return past.rollback(model, step)


def rename(model: PathLike, old: str, new: str) -> PastStep:
    """Rename an entity type, as a new step with the same weights.

    Args:
        model: A model folder.
        old: The type's current name.
        new: Its new name.

    Returns:
        The new step.
    """
    from cfner.practice.history import relabel

    return relabel.rename(model, old, new)


def merge(model: PathLike, types: Names, into: str) -> PastStep:
    """Merge several entity types into one, as a new step with the same weights.

    Args:
        model: A model folder.
        types: The types to merge.
        into: The name of the merged type; may be one of ``types``.

    Returns:
        The new step.
    """
    from cfner.practice.history import relabel

    return relabel.merge(model, names(types) or (), into)


def forget(model: PathLike, types: Names) -> PastStep:
    """Remove entity types, as a new step with the same weights: the model no longer finds them.

    The scores of all other types stay the same. ``rollback`` brings the types back, and they can be learned
    again.

    Args:
        model: A model folder.
        types: The types to remove.

    Returns:
        The new step.
    """
    from cfner.practice.history import relabel

    return relabel.forget(model, names(types) or ())


def prune(model: PathLike, keep: int, *, dry_run: bool = False) -> Pruned:
    """Free the disk space of old steps: their weights are deleted permanently, their record stays.

    The current step is always kept. So is an older step that shares all its weights with a kept one:
    deleting it would free nothing. A pruned step can no longer be used or rolled back to.

    Args:
        model: A model folder.
        keep: How many of the latest steps keep their weights.
        dry_run: Only report what would be deleted.

    Returns:
        Which steps lost their weights, and how many bytes that freed.
    """
    from cfner.practice.history.prune import prune as remove_weights

    return remove_weights(model, keep, dry_run=dry_run)
