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
        verify: Check every byte and the whole lineage; what is damaged raises ``ModelError``.

    Returns:
        The steps in the order in which they were added.
    """
    from cfner.practice.history import history as past

    return past.verify(model) if verify else past.history(model)


def rollback(model: PathLike, step: int) -> PastStep:
    """Make another step the current one. Nothing is removed, so a rollback can be undone the same way.

    Args:
        model: A model folder.
        step: The step to go back (or forward) to; ``history`` lists them.

    Returns:
        The step that is current now.
    """
    from cfner.practice.history import history as past

    return past.rollback(model, step)


def rename(model: PathLike, old: str, new: str) -> PastStep:
    """Give an entity type another name, as a new step with the same weights.

    Args:
        model: A model folder.
        old: The type's name now.
        new: Its new name.

    Returns:
        The new step.
    """
    from cfner.practice.history import history as past

    return past.rename(model, old, new)


def merge(model: PathLike, types: Names, into: str) -> PastStep:
    """Make several entity types one, as a new step with the same weights.

    Args:
        model: A model folder.
        types: The types that become one.
        into: The name of the one type; may be one of them.

    Returns:
        The new step.
    """
    from cfner.practice.history import history as past

    return past.merge(model, names(types) or (), into)


def forget(model: PathLike, types: Names) -> PastStep:
    """Take entity types away, as a new step with the same weights: the model no longer finds them.

    All other scores stay what they were. ``rollback`` brings the types back, and they can be learned again.

    Args:
        model: A model folder.
        types: The types to take away.

    Returns:
        The new step.
    """
    from cfner.practice.history import history as past

    return past.forget(model, names(types) or ())


def prune(model: PathLike, keep: int, *, dry_run: bool = False) -> Pruned:
    """Free the disk of old steps: their weights are removed for good, their record stays.

    The current step is always kept. So is an older step whose weights are those of a step that is kept:
    removing it would free nothing. A pruned step can no longer be used or gone back to.

    Args:
        model: A model folder.
        keep: How many of the latest steps keep their weights.
        dry_run: Only say what would be removed.

    Returns:
        Which steps lost their weights, and how many bytes that freed.
    """
    from cfner.practice.history.prune import prune as remove_weights

    return remove_weights(model, keep, dry_run=dry_run)
