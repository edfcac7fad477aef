"""Text without labels that ``learn`` is given: one part may be trained on, another only judges."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from cfner.corpus.in_memory import IN_MEMORY
from cfner.corpus.sentence import Sentence
from cfner.interop.text_stream import is_file, sentence_of_text, unlabelled_text
from cfner.practice.learn.new_data import held_out

Given = Any  # a path, a text, a sentence, or data in memory
Texts = Mapping[str, tuple[Sentence, ...]]

GIVEN: Final = "the texts that were given"  # the name of those that came from no file
_SHARE: Final = 0.15  # of the sentences that only judge
_MOST: Final = 1000  # sentences that only judge: more make the figure no better
_FEWEST: Final = 100  # sentences below which all may be trained on: a few of them would judge nothing


def read_unlabelled(given: Sequence[Given]) -> dict[str, tuple[Sentence, ...]]:
    """Sentences by where they come from; every file is read once.

    A path names a file or a corpus folder. A string that has whitespace in it and names no file is a text.
    Anything else is data in memory, of which the labels are dropped.
    """
    texts: dict[str, list[Sentence]] = {}
    for number, one in enumerate(given, start=1):
        if isinstance(one, Sentence):
            texts.setdefault(GIVEN, []).append(one.only(()))
        elif not isinstance(one, str | Path):
            texts.setdefault(IN_MEMORY, []).extend(unlabelled_text(one))
        elif not is_file(one):
            texts.setdefault(GIVEN, []).append(sentence_of_text(str(one), f"text {number}"))
        elif str(one) not in texts:
            texts[str(one)] = list(unlabelled_text(one))
    return {name: tuple(s for s in sentences if len(s)) for name, sentences in texts.items()}


@dataclass(frozen=True)
class UnlabelledText:
    """``pool``: what the old model may choose from to be reminded by. ``compared``: what the old and the new
    model are compared on, by its name. ``trained_on``: names of those that are in the pool too.
    """

    pool: tuple[Sentence, ...] = ()
    compared: Texts = field(default_factory=dict)
    trained_on: frozenset[str] = frozenset()

    @classmethod
    def divide(cls, texts: Texts, new: Collection[Sentence], judging: Collection[Sentence]) -> UnlabelledText:
        """Hold out a share for comparison, by the hash of the words, if there is enough.

        Sentences that judge the model (dev, test, guard) are never trained on; those of the new data are
        trained on anyway, with their labels.
        """
        trained, judges = {s.key for s in new}, {s.key for s in judging}
        pool = tuple(s for text in texts.values() for s in text if s.key not in trained | judges)
        compared = dict(texts)
        if len(pool) >= _FEWEST:
            pool, kept_out = held_out(pool, min(_SHARE, _MOST / len(pool)))
            judges |= {s.key for s in kept_out}
            unseen = {name: tuple(s for s in text if s.key in judges) for name, text in texts.items()}
            compared |= {name: text for name, text in unseen.items() if text}
        seen = (name for name, text in compared.items() if any(s.key not in judges for s in text))
        return cls(pool, compared, frozenset(seen))

    @classmethod
    def only_compared(cls, texts: Texts) -> UnlabelledText:
        """For a method that learns nothing from text without labels."""
        return cls(compared=texts)
