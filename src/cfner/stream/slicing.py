"""Dividing training sentences among steps: greedy sampling (Algorithm 1 of the paper) and random sampling.

Both give slice j at most ``floor(n * |E_j| / |E|)`` of the n sentences, where E_j are the types of step j.
The few sentences that rounding leaves without a slice (fewer than there are slices) are returned as leftover.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cfner.corpus.sentence import Sentence, mention_counts
from cfner.errors import ConfigError, StreamError, nearest

TypeGroups = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Slices:
    """Indexes into the training sentences, ascending: one tuple per step, and those that no step got."""

    parts: tuple[tuple[int, ...], ...]
    leftover: tuple[int, ...]


def quotas(sentences: int, groups: TypeGroups) -> list[int]:
    """How many sentences each slice may hold. Integer arithmetic: the same on every machine."""
    types = sum(len(group) for group in groups)
    return [sentences * len(group) // types for group in groups]


def greedy_slices(sentences: Sequence[Sentence], groups: TypeGroups, seed: int = 0) -> Slices:
    """Algorithm 1: a sentence goes to the slice of its rarest type whose slice is not full.

    Sentences are visited in the given order. One without such a type goes to a slice drawn at random from
    those that are not full; once all are full, the rest is leftover. Rarity is the number of mentions in
    ``sentences``; types of equal rarity keep the order of ``groups``.
    """
    slice_of = _slice_of_type(groups)
    counts = mention_counts(sentences)
    rank = {type_: place for place, type_ in enumerate(sorted(slice_of, key=lambda t: counts[t]))}
    room = quotas(len(sentences), groups)
    not_full = [j for j, places in enumerate(room) if places > 0]
    parts: list[list[int]] = [[] for _ in groups]
    leftover: list[int] = []
    draw = _generator(seed).random
    for index, sentence in enumerate(sentences):
        rarest_first = sorted((t for t in sentence.types if t in rank), key=rank.__getitem__)
        chosen = next((slice_of[t] for t in rarest_first if room[slice_of[t]] > 0), None)
        if chosen is None:
            if not not_full:
                leftover.append(index)
                continue
            # Not rng.choice: Python guarantees only for random() that later versions give the same numbers.
            chosen = not_full[int(draw() * len(not_full))]
        parts[chosen].append(index)
        room[chosen] -= 1
        if room[chosen] == 0:
            not_full.remove(chosen)
    return Slices(tuple(map(tuple, parts)), tuple(leftover))


def even_slices(sentences: Sequence[Sentence], groups: TypeGroups, seed: int = 0) -> Slices:
    """Slices of the same sizes, filled one after the other, whatever types the sentences mention."""
    _slice_of_type(groups)
    ends = [0, *itertools.accumulate(quotas(len(sentences), groups))]
    parts = tuple(tuple(range(start, end)) for start, end in itertools.pairwise(ends))
    return Slices(parts, tuple(range(ends[-1], len(sentences))))


SAMPLINGS: Final = {"greedy": greedy_slices, "random": even_slices}


def slices_by(sampling: str, sentences: Sequence[Sentence], groups: TypeGroups, seed: int) -> Slices:
    """The slices of the named sampling, over the sentences in a seeded random order.

    The paper's training set has no order. The order of a file that is sorted by topic would do harm: the
    first topics fill the slices, and later types find theirs full.
    """
    if sampling not in SAMPLINGS:
        raise ConfigError(f"There is no sampling '{sampling}'.", remedy=nearest(sampling, SAMPLINGS))
    draw = _generator(seed).random
    keys = [draw() for _ in sentences]
    order = sorted(range(len(sentences)), key=keys.__getitem__)
    found = SAMPLINGS[sampling]([sentences[index] for index in order], groups, seed)
    *parts, leftover = (
        tuple(sorted(order[place] for place in part)) for part in (*found.parts, found.leftover)
    )
    return Slices(tuple(parts), leftover)


def _generator(seed: int) -> random.Random:
    if seed < 0:
        # Python seeds with the absolute value: -1 and 1 would be the same split under two names.
        raise ConfigError(
            f"The sampling seed must be 0 or more, not {seed}.", remedy="Give a larger integer."
        )
    return random.Random(seed)  # noqa: S311 - a split, not a secret


def _slice_of_type(groups: TypeGroups) -> dict[str, int]:
    slice_of: dict[str, int] = {}
    for j, group in enumerate(groups):
        for type_ in group:
            if type_ in slice_of:
                raise StreamError(
                    f"The type '{type_}' is to be learned twice (steps {slice_of[type_] + 1} and {j + 1}).",
                    remedy="Name each type once.",
                )
            slice_of[type_] = j
    if not slice_of:
        raise StreamError("There are no types to learn.", remedy="Give at least one step with one type.")
    return slice_of
