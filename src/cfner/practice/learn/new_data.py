"""The sentences that ``learn`` works with: the new data, old sentences to mix in, sentences to judge by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from cfner.corpus.corpus import Corpus
from cfner.corpus.in_memory import Data, source_name
from cfner.corpus.sentence import Sentence
from cfner.errors import ConfigError, CorpusError

HELD_OUT = 0.15  # default share of held-out sentences
_FEWEST_TO_HOLD_OUT = 20  # sentences needed to hold some out for choosing the epoch


@dataclass(frozen=True)
class NewData:
    """The data of a step, read and divided; ``test`` is only for scoring."""

    name: str
    train: tuple[Sentence, ...]
    dev: tuple[Sentence, ...]
    test: tuple[Sentence, ...]

    @classmethod
    def of(cls, corpus: Corpus, dev_share: float = HELD_OUT) -> NewData:
        if not corpus.train:
            raise CorpusError(
                "There are no training sentences.", where=corpus.name, remedy="Give a train file."
            )
        return cls(corpus.name, corpus.train, corpus.dev, corpus.test).with_dev(dev_share)

    def with_dev(self, share: float) -> NewData:
        """The same with a share of the training sentences held out as dev split, unless there is one."""
        refuse_share(share)
        if self.dev or len(self.train) < _FEWEST_TO_HOLD_OUT or not share:
            return self
        train, dev = held_out(self.train, share)
        return NewData(self.name, train, dev, self.test)

    @property
    def types(self) -> set[str]:
        return {t for part in (self.train, self.dev) for sentence in part for t in sentence.types}

    def only(self, types: Collection[str]) -> NewData:
        parts = (tuple(s.only(types) for s in part) for part in (self.train, self.dev, self.test))
        return NewData(self.name, *parts)


def refuse_share(share: float) -> None:
    if not 0 <= share < 1:  # also false for NaN
        raise ConfigError(
            f"`dev_share` must be at least 0 and less than 1, got {share}.",
            remedy="Give `dev_share` a number from 0 (nothing) up to, but less than, 1.",
        )


def held_out(train: Sequence[Sentence], share: float) -> tuple[tuple[Sentence, ...], tuple[Sentence, ...]]:
    """(train, dev): hold out this share of all sentences or a little less, chosen by a hash of their words.

    Equal sentences stay together, so that dev does not contain copies of training sentences. Sentences that
    are repeated too often to fit into the share are trained on; if nothing fits, nothing is held out.
    """
    copies = Counter(s.key for s in train)
    room = min(max(1, round(share * len(train))), len(train) - 1)
    chosen: set[str] = set()
    for key in sorted(copies):
        if copies[key] <= room:
            chosen.add(key)
            room -= copies[key]
    return tuple(s for s in train if s.key not in chosen), tuple(s for s in train if s.key in chosen)


def mentioning(sentences: tuple[Sentence, ...], types: Collection[str], guard: Data) -> tuple[Sentence, ...]:
    """The guard's sentences; an error if they mention none of ``types``."""
    mentioned = {type_ for sentence in sentences for type_ in sentence.types}
    if not mentioned & set(types):
        raise CorpusError(
            f"The guard's sentences mention none of the model's types, but "
            f"{', '.join(sorted(mentioned)) or 'no type at all'}.",
            where=source_name(guard),
            remedy=f"Give sentences labelled with old types: {', '.join(types)}.",
        )
    return sentences


def replayed_sentences(
    given: Sequence[Sentence], known: Collection[str], replay: Data | None
) -> tuple[Sentence, ...]:
    """The sentences to mix in, with only their labels of old types."""
    sentences = tuple(s.only(known) for s in given)
    if replay is not None and not any(sentence.spans for sentence in sentences):
        raise CorpusError(
            "The sentences to mix in mention none of the old types.",
            where=source_name(replay),
            remedy=f"Old types that are not labelled in the new data: {', '.join(known)}.",
        )
    return sentences
