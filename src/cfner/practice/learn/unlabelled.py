"""Unlabelled text for ``learn``: one part may be trained on, the other is only for comparison."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from cfner.corpus.in_memory import IN_MEMORY
from cfner.corpus.sentence import Sentence
from cfner.interop.text_names import is_file
from cfner.interop.text_stream import sentence_of_text, unlabelled_text
from cfner.practice.learn.new_data import held_out

Given = Any  # a path, a text, a sentence, or data in memory
Texts = Mapping[str, tuple[Sentence, ...]]

GIVEN: Final = "the texts that were given"  # the name of texts that were not read from a file
_SHARE: Final = 0.15  # of the sentences, only for comparison
_MOST: Final = 1000  # sentences only for comparison: more would not improve the figure
_FEWEST: Final = 100  # sentences needed to hold some out for comparison


def read_unlabelled(given: Sequence[Given]) -> dict[str, tuple[Sentence, ...]]:
    """Sentences by source; every file is read once.

    A path names a file or a corpus folder. A string that contains whitespace and is not the name of a file is
    a text. Anything else is data in memory, whose labels are dropped.
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
    """``pool``: sentences that may be trained on as reminders. ``compared``: sentences for comparing the old
    and the new model, by name. ``trained_on``: names of those that are also in the pool.
    """

    pool: tuple[Sentence, ...] = ()
    compared: Texts = field(default_factory=dict)
    trained_on: frozenset[str] = frozenset()

    @classmethod
    def divide(cls, texts: Texts, new: Collection[Sentence], judging: Collection[Sentence]) -> UnlabelledText:
        """Hold out a share for comparison, by the hash of the words, if there are enough sentences.

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
        """For a method that does not train on unlabelled text."""
        return cls(compared=texts)
