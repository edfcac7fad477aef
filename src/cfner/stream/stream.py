"""A corpus as a stream of steps: each brings new types and a slice of sentences labelled with those alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

from cfner.corpus.sentence import Sentence, mention_counts
from cfner.errors import ConfigError, StreamError, nearest
from cfner.stream.manifest import left_out_of, manifest_of, sentences_hash
from cfner.stream.sentence_set import SentenceSet
from cfner.stream.slicing import slices_by

if TYPE_CHECKING:
    from cfner.corpus.corpus import Corpus

Sentences = tuple[Sentence, ...]
Data = TypeVar("Data")


class Slice(NamedTuple):
    """Text, and the types that are completely annotated in it: there, a word without a label is a true O.

    In replayed old sentences a label says what it says, and no label says nothing: ``annotated`` is empty.
    In ``unlabelled`` text nothing is said at all.
    """

    sentences: Sentences
    annotated: frozenset[str]
    unlabelled: bool = False


@dataclass(frozen=True, eq=False)
class Step:
    """One round of learning.

    ``types`` are labelled in this step's data (current types); ``known`` were learned before and are not
    labelled here. ``train`` and ``dev`` carry the labels of ``types`` alone. ``replay`` are old sentences, if
    there are any: labelled with known types alone. ``unlabelled`` is text to be reminded of old types by,
    from which the old model chooses. A step without types (a consolidation) reads all of it, and nothing
    else. ``stop_after``: the epoch that training stops after, the schedule being that of all epochs. What
    else a stream knows about the step is hidden from a learner, and comes through the properties below.
    """

    types: tuple[str, ...]
    train: Sentences = field(repr=False)
    dev: Sentences = field(default=(), repr=False)
    known: tuple[str, ...] = ()
    index: int = 0
    name: str = "step"
    replay: Sentences = field(default=(), repr=False)
    unlabelled: Sentences = field(default=(), repr=False)
    stop_after: int | None = None
    stream: Mapping[str, Any] | None = field(default=None, repr=False)  # how its stream was made, if of one
    # Slices so far (this one last) and dev data with their true labels; None for a step outside a stream.
    _slices: tuple[Sentences, ...] | None = field(default=None, repr=False)
    _dev: Sentences | None = field(default=None, repr=False)
    _types: tuple[tuple[str, ...], ...] | None = field(default=None, repr=False)  # of each slice

    def __post_init__(self) -> None:
        if not self.types and not self.unlabelled:
            raise StreamError(f"'{self.name}' has no type to learn.", remedy="Give at least one type.")
        if repeated := [t for t, times in Counter(self.types_so_far).items() if times > 1]:
            raise StreamError(
                f"'{self.name}' has the type '{repeated[0]}' more than once, as current or known.",
                remedy="Types labelled in the step's data are current; known are all others learned before.",
            )
        self._refuse_stray((*self.train, *self.dev), self.types, "one of its types")
        self._refuse_stray(self.replay, self.known, "a known type that this step does not label")
        self._refuse_stray(self.unlabelled, (), "unlabelled")

    def _refuse_stray(self, sentences: Sentences, types: tuple[str, ...], what: str) -> None:
        for sentence in sentences:
            if not sentence.types.issubset(types):
                stray = min(sentence.types.difference(types))
                raise StreamError(
                    f"A sentence of '{self.name}' is labelled with '{stray}', which is not {what}.",
                    where=sentence.source,
                    remedy=f"Use sentence.only(types), or name the type. {nearest(stray, types)}",
                )

    @cached_property
    def data(self) -> dict[str, Any]:
        """What is recorded of the sentences: their number, their hash and the mentions of each type."""
        more = {"replay": self.replay, "unlabelled": self.unlabelled}
        parts = {"train": self.train, "dev": self.dev, **{name: part for name, part in more.items() if part}}
        return {
            name: {
                "sentences": len(part),
                "hash": sentences_hash(part),
                "mentions": dict(sorted(mention_counts(part).items())),
            }
            for name, part in parts.items()
        }

    @property
    def types_so_far(self) -> tuple[str, ...]:
        """Known and current types, in the order of learning."""
        return (*self.known, *self.types)

    @property
    def slices(self) -> tuple[Slice, ...]:
        """What a learner sees: its own data, then replayed sentences, then unlabelled ones."""
        own = Slice(self.train, frozenset(self.types))
        replayed = (Slice(self.replay, frozenset()),) if self.replay else ()
        unlabelled = (Slice(self.unlabelled, frozenset(), unlabelled=True),) if self.unlabelled else ()
        return (own, *replayed, *unlabelled)

    @property
    def joint_slices(self) -> tuple[Slice, ...]:
        """What only the upper bound sees: all slices so far with all labels so far."""
        return (Slice(self.joint_train, frozenset(self.types_so_far)),)

    @property
    def own_slices(self) -> tuple[Slice, ...]:
        """What only the fair bound sees: all slices so far, each labelled with its own types alone."""
        slices = self._of_stream(self._slices, "own_slices")
        types = self._of_stream(self._types, "own_slices")
        return tuple(Slice(_only(part, its), frozenset(its)) for part, its in zip(slices, types, strict=True))

    @cached_property
    def joint_train(self) -> Sentences:
        """All slices so far with all labels so far. Only for ``joint``: a learner has no old data."""
        slices = self._of_stream(self._slices, "joint_train")
        return _only((sentence for part in slices for sentence in part), self.types_so_far)

    @cached_property
    def joint_dev(self) -> Sentences:
        """The dev data with all labels so far. Only for ``joint``, the upper bound."""
        return _only(self._of_stream(self._dev, "joint_dev"), self.types_so_far)

    @cached_property
    def hidden_train(self) -> Sentences:
        """This slice with the true labels of known types too. For diagnosis only, never to learn from."""
        return _only(self._of_stream(self._slices, "hidden_train")[-1], self.types_so_far)

    def _of_stream(self, data: Data | None, what: str) -> Data:
        if data is None:
            raise StreamError(
                f"'{self.name}' was not made by a TaskStream, so it has no {what}.",
                remedy="Make the step with TaskStream.split, which knows the true labels.",
            )
        return data


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
    # what steps are scored on, with the labels of dropped types too: the file as others know it
    test_set: SentenceSet = field(repr=False)
    unlabelled: Sentences = field(default=(), repr=False)
    taken: Mapping[str, Any] = field(default_factory=dict, repr=False)  # which part of the corpus

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
        out. Types with fewer than ``min_mentions`` training mentions are dropped. When the types do not come
        out even, the last step is smaller. ``unlabelled``: text that later steps may be reminded by; labels
        that it has are dropped. ``scored_split``: what the corpus's ``test`` is called where scores are kept.
        """
        for name, value in {"first": first, "per_step": per_step}.items():
            if value < 1:
                raise ConfigError(f"{name} is {value}.", remedy="Give a whole number of 1 or more.")
        train, dev, test = tuple(corpus.train), tuple(corpus.dev), tuple(corpus.test)
        mentions = mention_counts(train)
        everywhere = {*mentions, *mention_counts(dev), *mention_counts(test)}
        candidates = sorted(everywhere) if order is None else _checked_order(order, everywhere)
        kept = [type_ for type_ in candidates if mentions[type_] >= max(1, min_mentions)]
        if not kept:
            raise StreamError(
                f"No type of '{corpus.name}' has {max(1, min_mentions)} or more training mentions: "
                f"{dict(sorted(mentions.items()))}.",
                remedy="Lower --min-mentions (min_mentions), or add training data.",
            )
        groups = _groups(kept, first, per_step)
        train = _only(train, kept)
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
            dev=_only(dev, kept),
            test=_only(test, kept),
            leftover=len(slices.leftover),
            dropped_types={t: mentions[t] for t in candidates if t not in kept},
            left_out_types=tuple(sorted(everywhere.difference(candidates))),
            unlabelled=_only(unlabelled, ()),
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
        """What has to be known to make the stream again from the same corpus."""
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
                train=_only(self.slices[index], types),
                dev=_only(self.dev, types),
                known=tuple(type_ for group in self.types_per_step[:index] for type_ in group),
                index=index,
                name=f"step {index + 1}",
                _slices=self.slices[: index + 1],
                _dev=self.dev,
                _types=self.types_per_step[: index + 1],
                unlabelled=self.unlabelled if index else (),  # a first step has nothing to be reminded of
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
        return _only(self.test, until.types_so_far)

    def manifest(self) -> dict[str, Any]:
        """The split as JSON-able facts. Its ``hash`` covers data and settings, not the name of the corpus."""
        return manifest_of(self)

    def left_out(self) -> list[str]:
        """What of the corpus no step learns from, in words: types below ``min_mentions``, and the rest."""
        return left_out_of(self)

    @property
    def missing_in_last_step(self) -> int:
        """How many types the last step has fewer than ``setting`` asks for."""
        asked = self.first if len(self) == 1 else self.per_step
        return asked - len(self.types_per_step[-1])


def _only(sentences: Iterable[Sentence], types: Iterable[str]) -> Sentences:
    wanted = frozenset(types)
    return tuple(sentence.only(wanted) for sentence in sentences)


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
