"""One step of learning: its new types, its data, and what a learner may see of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from cfner.corpus.sentence import Sentence, mention_counts
from cfner.errors import StreamError, nearest
from cfner.stream.manifest import sentences_hash

Sentences = tuple[Sentence, ...]
Data = TypeVar("Data")


class Slice(NamedTuple):
    """Text, and the types that are completely annotated in it: there, a word without a label is a true O.

    In replayed old sentences labels are right, but a missing label means nothing: ``annotated`` is empty.
    ``unlabelled`` text has no labels at all.
    """

    sentences: Sentences
    annotated: frozenset[str]
    unlabelled: bool = False


@dataclass(frozen=True, eq=False)
class Step:
    """One step of learning.

    ``types`` are labelled in this step's data (current types); ``known`` were learned before and are not
    labelled here. ``train`` and ``dev`` carry the labels of ``types`` alone. ``replay`` are old sentences, if
    there are any, labelled with known types alone. ``unlabelled`` is text for rehearsing old types, from
    which the old model chooses. A step without types (a consolidation) reads all of it, and nothing else.
    ``stop_after``: stop training after this epoch, on the learning-rate schedule of all epochs. True labels
    that the stream knows are hidden from a learner; only the properties below give them.
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
    stream: Mapping[str, Any] | None = field(
        default=None, repr=False
    )  # how its stream was made, if it has one
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
                remedy="Types labelled in the step's data are current; other types learned before are known.",
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
        """What is recorded about the sentences: their number, their hash and the mentions of each type."""
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
        """What a learner sees: the step's data, then replayed sentences, then unlabelled ones."""
        own = Slice(self.train, frozenset(self.types))
        replayed = (Slice(self.replay, frozenset()),) if self.replay else ()
        unlabelled = (Slice(self.unlabelled, frozenset(), unlabelled=True),) if self.unlabelled else ()
        return (own, *replayed, *unlabelled)

    @property
    def joint_slices(self) -> tuple[Slice, ...]:
        """Only for the upper bound: all slices so far with all labels so far."""
        return (Slice(self.joint_train, frozenset(self.types_so_far)),)

    @property
    def own_slices(self) -> tuple[Slice, ...]:
        """Only for the fair bound: all slices so far, each labelled with its own types alone."""
        slices = self._of_stream(self._slices, "own_slices")
        types = self._of_stream(self._types, "own_slices")
        return tuple(Slice(only(part, its), frozenset(its)) for part, its in zip(slices, types, strict=True))

    @cached_property
    def joint_train(self) -> Sentences:
        """All slices so far with all labels so far. Only for ``joint``: a learner has no old data."""
        slices = self._of_stream(self._slices, "joint_train")
        return only((sentence for part in slices for sentence in part), self.types_so_far)

    @cached_property
    def joint_dev(self) -> Sentences:
        """The dev data with all labels so far. Only for ``joint``, the upper bound."""
        return only(self._of_stream(self._dev, "joint_dev"), self.types_so_far)

    @cached_property
    def hidden_train(self) -> Sentences:
        """This slice with the true labels of known types too. For diagnosis only, never to learn from."""
        return only(self._of_stream(self._slices, "hidden_train")[-1], self.types_so_far)

    def _of_stream(self, data: Data | None, what: str) -> Data:
        if data is None:
            raise StreamError(
                f"'{self.name}' was not made by a TaskStream, so it has no {what}.",
                remedy="Make the step with TaskStream.split, which knows the true labels.",
            )
        return data


def only(sentences: Iterable[Sentence], types: Iterable[str]) -> Sentences:
    wanted = frozenset(types)
    return tuple(sentence.only(wanted) for sentence in sentences)
