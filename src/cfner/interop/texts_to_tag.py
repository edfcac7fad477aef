"""Texts to tag in memory: one or many, as text or as words."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cfner.corpus.in_memory import is_frame, rows_of_frame
from cfner.corpus.sentence import Sentence
from cfner.corpus.text_lines import refuse_unwritable
from cfner.corpus.tokenise import sentence_from_characters
from cfner.errors import CorpusError, located
from cfner.interop.text_stream import sentence_of_record, sentence_of_words
from cfner.network.prediction import Prediction

_log = logging.getLogger(__name__)
_RIGHT = (
    'Give a text: predict("Ada lived in London."), texts: predict(["One text.", "Another."]), or sentences '
    'in words: predict([["Ada", "lived", "in", "London", "."]]).'
)


@dataclass(frozen=True)
class TextsToTag:
    """``one``: a single text was given. ``lazy``: texts are read while they are tagged."""

    sentences: Iterable[Sentence]
    one: bool = False
    lazy: bool = False

    @classmethod
    def of(cls, given: Any) -> TextsToTag:
        """Convert the argument of ``predict``; an invalid text raises when it is reached."""
        if isinstance(given, str | Sentence | Mapping):
            return cls([_sentence(given, "text 1")], one=True)
        if isinstance(given, Path):
            raise CorpusError(
                "A path was given in place of a text.", where=str(given), remedy="Give it as `file`."
            )
        if isinstance(given, bytes) or not isinstance(given, Iterable):
            raise CorpusError(f"A {type(given).__name__} cannot be tagged.", remedy=_RIGHT)
        many = rows_of_frame(given) if is_frame(given) else given
        sentences = (_sentence(one, f"text {number}") for number, one in enumerate(many, start=1))
        if isinstance(given, Iterator):
            return cls(sentences, lazy=True)
        listed = list(sentences)
        if len(listed) > 2 and all(len((s.text or " ").split()) == 1 for s in listed):
            _log.warning(
                "Each of the %d words is tagged as a text. For one sentence: predict([words]).",
                len(listed),
            )
        return cls(listed)

    def answer(self, found: Iterator[Prediction]) -> Prediction | list[Prediction] | Iterator[Prediction]:
        """The predictions in the shape in which the texts were given."""
        if self.one:
            return next(found)
        return found if self.lazy else list(found)


def _sentence(given: Any, place: str) -> Sentence:
    if isinstance(given, Sentence):
        return given
    with located(place):
        if isinstance(given, str):
            refuse_unwritable(given.replace("\0", ""))  # NUL can be tagged, although no file may contain it
            return sentence_from_characters(given, [], source=place)[0]
        if isinstance(given, Mapping):
            return sentence_of_record(given, place)
        if isinstance(given, list | tuple):
            return sentence_of_words(list(given), None, place)
        raise CorpusError(f"A {type(given).__name__} cannot be tagged.", remedy=_RIGHT)
