"""The text of a run, which part of it is used, and how it is divided into steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from cfner.benchmark.accumulated_stream import AccumulatedStream
from cfner.corpus.corpus import Corpus
from cfner.corpus.in_memory import IN_MEMORY, Data
from cfner.corpus.sentence import Sentence
from cfner.errors import ConfigError, nearest
from cfner.interop.text_names import is_file
from cfner.interop.text_stream import unlabelled_text
from cfner.stream.manifest import sentences_hash
from cfner.stream.stream import TaskStream

SCORED_ON: Final = ("test", "dev")
REST: Final = "rest"  # as unlabelled text: the training sentences that ``every`` leaves out
LABELS: Final = ("own", "none", "current")


@dataclass(frozen=True)
class Source:
    """A corpus, and which part of it is used. Data in memory is a Corpus in place of a path."""

    path: str | Corpus
    format: str | None = None
    tag_column: str | int | None = None
    every: int = 1
    score_every: int | None = None  # None: the same as ``every``
    score_on: str = "test"
    min_mentions: int = 50
    order: tuple[str, ...] | None = None
    unlabelled: tuple[str | Corpus, ...] = ()  # files, folders of a corpus, or REST

    def __post_init__(self) -> None:
        if self.score_on not in SCORED_ON:
            raise ConfigError(f"There is no split '{self.score_on}' to score on.", remedy="Use test or dev.")

    @classmethod
    def of(
        cls,
        data: Data,
        unlabelled: Sequence[Any],
        *,
        format: str | None,
        tag_column: str | int | None,
        **part: Any,
    ) -> Source:
        """From the arguments of ``train``."""
        memory = not isinstance(data, str | Path)
        path = Corpus.read(data, format=format, tag_column=tag_column) if memory else str(data)
        return cls(path, format, tag_column, unlabelled=tuple(map(_text_given, unlabelled)), **part)

    def facts(self) -> dict[str, Any]:
        """Which part of the text is used and how; without its path, which does not affect a result."""
        return {
            "every": self.every,
            "score_every": self.score_every or self.every,
            "score_on": self.score_on,
            "min_mentions": self.min_mentions,
            "order": list(self.order) if self.order else "alphabetical",
            "unlabelled": ", ".join(map(_name, self.unlabelled)) or "none",
        }

    def taken(self) -> dict[str, Any]:
        """The settings about the used part of the text that differ from the defaults."""
        usual = Source(self.path)
        given = {name: getattr(self, name) for name in ("every", "score_every", "score_on")}
        unlabelled = [_name(text) for text in self.unlabelled]
        told = {name: value for name, value in given.items() if value != getattr(usual, name)}
        return told | ({"unlabelled": unlabelled} if unlabelled else {})

    def read(self) -> Corpus:
        """The corpus, thinned; the split to score on is its ``test``."""
        whole = self._whole()
        scored = whole.every(self.score_every or self.every)
        test = scored.test if self.score_on == "test" else scored.dev
        return replace(whole.every(self.every), test=test)

    def text(self) -> tuple[Sentence, ...]:
        """The unlabelled text for rehearsing old types in later steps; its labels are dropped."""
        parts = (self._rest() if text == REST else unlabelled_text(text) for text in self.unlabelled)
        return tuple(sentence for part in parts for sentence in part)

    def _rest(self) -> Iterable[Sentence]:
        if self.every == 1:
            raise ConfigError(
                "There are no remaining training sentences: all of them are used.",
                remedy="Use every n-th sentence with `every`, or give files of unlabelled text.",
            )
        return (s for number, s in enumerate(self._whole().train) if number % self.every and len(s))

    def _whole(self) -> Corpus:
        return Corpus.read(self.path, format=self.format, tag_column=self.tag_column)


def _text_given(text: Any) -> str | Corpus:
    """A path unchanged; texts in memory as a corpus named by the hash of its sentences."""
    if isinstance(text, str | Path) and is_file(text):
        return str(text)
    sentences = unlabelled_text([text] if isinstance(text, str | Sentence) else text)
    return Corpus(f"{IN_MEMORY}, SHA-256 {sentences_hash(sentences)}", sentences)


def _name(text: str | Corpus) -> str:
    return text.name if isinstance(text, Corpus) else Path(text).name


@cache
def _text(source: Source) -> tuple[Sentence, ...]:
    """Cached: a grid needs the same text once per seed and method."""
    return source.text()


@dataclass(frozen=True)
class Division:
    """How a corpus becomes a stream. ``labels``: which labels a step's training data has.

    "own": the step's own types, as in continual learning. "none" and "current" are the two curves of the
    paper's first figure, where old slices are kept; see accumulated_stream.py.
    """

    first: int
    per_step: int
    sampling: str = "greedy"
    labels: str = "own"

    def __post_init__(self) -> None:
        if self.labels not in LABELS:
            raise ConfigError(f"There are no labels '{self.labels}'.", remedy=nearest(self.labels, LABELS))

    @property
    def setting(self) -> str:
        return f"FG-{self.first}-PG-{self.per_step}"

    def stream(self, corpus: Corpus, source: Source, seed: int) -> TaskStream:
        stream = TaskStream.split(
            corpus,
            first=self.first,
            per_step=self.per_step,
            order=source.order,
            sampling=self.sampling,
            seed=seed,
            min_mentions=source.min_mentions,
            unlabelled=_text(source),
            scored_split=source.score_on,
        )
        stream = replace(stream, taken=source.taken())
        return stream if self.labels == "own" else AccumulatedStream.of(stream, self.labels)
