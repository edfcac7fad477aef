"""A corpus as a stream of steps: each has new types and a slice of sentences labelled with those alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from cfner.corpus.sentence import Sentence, mention_counts
from cfner.errors import ConfigError, StreamError, nearest
from cfner.stream.manifest import left_out_of, manifest_of
from cfner.stream.sentence_set import SentenceSet
from cfner.stream.slicing import slices_by
from cfner.stream.step import Sentences, Step, only

if TYPE_CHECKING:
    from cfner.corpus.corpus import Corpus


@dataclass(frozen=True, eq=False)
class TaskStream:
    """Steps over a corpus; made by ``split``. Iterate over it, or take ``stream[0]``, ``stream[-1]``."""

    corpus_name: str
    first: int
    per_step: int
    sampling: str
    seed: int
    min_mentions: int
    types_per_step: tuple[tuple[str, ...], ...]
    slices: tuple[Sentences, ...] = field(repr=False)
    dev: Sentences = field(repr=False)
    test: Sentences = field(repr=False)
    leftover: int
    dropped_types: Mapping[str, int]
    left_out_types: tuple[str, ...]
    # the test data for scoring, with the labels of dropped types too: the file as published
    test_set: SentenceSet = field(repr=False)
    unlabelled: Sentences = field(default=(), repr=False)
    taken: Mapping[str, Any] = field(default_factory=dict, repr=False)  # which part of the corpus was used

    @classmethod
    def split(
        cls,
        corpus: Corpus,
        *,
        first: int,
        per_step: int,
        order: Sequence[str] | None = None,
        sampling: str = "greedy",
        seed: int = 0,
        min_mentions: int = 50,
        unlabelled: Iterable[Sentence] = (),
        scored_split: str = "test",
    ) -> Self:
        """FG-``first``-PG-``per_step``: that many types in the first step and in each later one.

        ``order`` is the order of learning (alphabetical if not given); types that it does not name are left
        out. Types with fewer than ``min_mentions`` training mentions are dropped. If the types do not divide
        evenly, the last step is smaller. ``unlabelled``: text for rehearsing old types in later steps; its
        labels are dropped. ``scored_split``: the name under which scores on the corpus's ``test`` are saved.
        """
        for name, value in {"first": first, "per_step": per_step}.items():
            if value < 1:
                raise ConfigError(f"{name} must be 1 or more, not {value}.", remedy="Give a larger integer.")
        train, dev, test = tuple(corpus.train), tuple(corpus.dev), tuple(corpus.test)
        mentions = mention_counts(train)
        everywhere = {*mentions, *mention_counts(dev), *mention_counts(test)}
        candidates = sorted(everywhere) if order is None else _checked_order(order, everywhere)
        kept = [type_ for type_ in candidates if mentions[type_] >= max(1, min_mentions)]
        if not kept:
            raise StreamError(
                f"No type of '{corpus.name}' has {max(1, min_mentions)} or more training mentions: "
                f"{dict(sorted(mentions.items()))}.",
                remedy="Lower `min_mentions`, or add training data.",
            )
        groups = _groups(kept, first, per_step)
        train = only(train, kept)
        slices = slices_by(sampling, train, groups, seed)
        if not all(slices.parts):
            raise StreamError(
                f"{len(train)} training sentences are too few for {len(kept)} types: a slice would be empty.",
                remedy="Learn more types per step, fewer types, or add training data.",
            )
        return cls(
            corpus_name=corpus.name,
            first=first,
            per_step=per_step,
            sampling=sampling,
            seed=seed,
            min_mentions=min_mentions,
            types_per_step=groups,
            slices=tuple(tuple(train[i] for i in part) for part in slices.parts),
            dev=only(dev, kept),
            test=only(test, kept),
            leftover=len(slices.leftover),
            dropped_types={t: mentions[t] for t in candidates if t not in kept},
            left_out_types=tuple(sorted(everywhere.difference(candidates))),
            unlabelled=only(unlabelled, ()),
            test_set=SentenceSet.of(test, f"{corpus.name} ({scored_split})"),
        )

    @cached_property
    def types(self) -> tuple[str, ...]:
        """All types in the order of learning."""
        return tuple(type_ for group in self.types_per_step for type_ in group)

    @property
    def setting(self) -> str:
        return f"FG-{self.first}-PG-{self.per_step}"

    @property
    def recipe(self) -> dict[str, Any]:
        """The settings that make the same stream again from the same corpus."""
        return {
            "first": self.first,
            "per_step": self.per_step,
            "order": list(self.types),
            "sampling": self.sampling,
            "min_mentions": self.min_mentions,
            "seed": self.seed,
            **self.taken,
        }

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        return tuple(
            Step(
                types=types,
                train=only(self.slices[index], types),
                dev=only(self.dev, types),
                known=tuple(type_ for group in self.types_per_step[:index] for type_ in group),
                index=index,
                name=f"step {index + 1}",
                _slices=self.slices[: index + 1],
                _dev=self.dev,
                _types=self.types_per_step[: index + 1],
                unlabelled=self.unlabelled if index else (),  # a first step has no old types to rehearse
                stream=self.recipe,
            )
            for index, types in enumerate(self.types_per_step)
        )

    def __len__(self) -> int:
        return len(self.types_per_step)

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def __getitem__(self, index: int) -> Step:
        return self.steps[index]

    def test_up_to(self, step: Step | int) -> Sentences:
        """The test data with the labels of all types learned up to and including ``step``."""
        until = step if isinstance(step, Step) else self[step]
        return only(self.test, until.types_so_far)

    def manifest(self) -> dict[str, Any]:
        """The split as JSON data. Its ``hash`` covers data and settings, not the name of the corpus."""
        return manifest_of(self)

    def left_out(self) -> list[str]:
        """Which parts of the corpus no step learns from: types below ``min_mentions``, and the rest."""
        return left_out_of(self)

    @property
    def missing_in_last_step(self) -> int:
        """How many types the last step has fewer than ``setting`` asks for."""
        asked = self.first if len(self) == 1 else self.per_step
        return asked - len(self.types_per_step[-1])


def _groups(types: Sequence[str], first: int, per_step: int) -> tuple[tuple[str, ...], ...]:
    later = range(first, len(types), per_step)
    return (tuple(types[:first]), *(tuple(types[start : start + per_step]) for start in later))


def _checked_order(order: Sequence[str], known: Collection[str]) -> list[str]:
    for type_ in order:
        if type_ not in known:
            raise StreamError(
                f"The order names the type '{type_}', which is not in the corpus.",
                remedy=nearest(type_, known),
            )
    for type_, times in Counter(order).items():
        if times > 1:
            raise StreamError(f"The order names the type '{type_}' {times} times.", remedy="Name it once.")
    return list(order)
