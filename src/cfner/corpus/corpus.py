"""A corpus: its training, development and test sentences, and the report of how they were read."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import combinations
from pathlib import Path
from typing import Any

from cfner.corpus.formats import Reading, ReadOptions
from cfner.corpus.in_memory import IN_MEMORY, Data, source_name, splits_in_memory
from cfner.corpus.report import ReadReport
from cfner.corpus.sentence import Sentence, mention_counts
from cfner.corpus.split_files import SPLITS, Split, known_splits, read_splits
from cfner.corpus.tags import Scheme
from cfner.errors import ConfigError, CorpusError, nearest


@dataclass(frozen=True)
class Corpus:
    """Sentences in three splits. ``Corpus.read`` makes one from a folder, a file, or data in memory."""

    name: str
    train: tuple[Sentence, ...]
    dev: tuple[Sentence, ...] = ()
    test: tuple[Sentence, ...] = ()
    report: ReadReport = field(default_factory=ReadReport, compare=False)

    @classmethod
    def read(
        cls,
        data: Data,
        *,
        format: str | None = None,
        tag_column: str | int | None = None,
        token_column: str | int | None = None,
        scheme: Scheme | None = None,
        labels: Sequence[str] | None = None,
        every: int = 1,
    ) -> Corpus:
        """Read labelled data from files, or take it from memory.

        In memory, a sentence is a text with spans as character offsets, ``("Ada lived.", [(0, 3, "PER")])``;
        words with their tags, ``(["Ada", "lived"], ["B-PER", "O"])``; a dictionary with ``text`` and
        ``spans`` or with ``tokens`` and ``tags``; or a ``Sentence``. A list or generator of these becomes
        ``train``. So does a ``datasets.Dataset``, or a pandas frame with such columns, or with a row per word
        (``sentence``, ``word``, ``tag``). A dictionary of splits (a ``DatasetDict``) becomes a corpus with
        these splits.

        Args:
            data: A folder with train, dev and test files, one file (which becomes ``train``), a dataset of
                the hub with ``format="huggingface"``, or data in memory. A corpus is returned as it is.
            format: Format of the files; detected if left out.
            tag_column: Column or field of the tags or spans: a name, or a number from 0.
            token_column: Column or field of the words or of the text.
            scheme: Tag scheme: IO, IOB1, BIO, BIOES or BILOU; detected if left out.
            labels: Names of integer tags, in order.
            every: Keep each n-th sentence of every split.

        Returns:
            The corpus. Its ``report`` says what was repaired or left out.
        """
        if isinstance(data, Corpus):
            return data.every(every)
        options = ReadOptions(tag_column, token_column, scheme, labels)
        readings: Mapping[Split, Reading]
        if isinstance(data, str | Path):
            readings = read_splits(str(data), format, options)
            name = Path(data).stem if Path(data).is_file() else Path(data).name
        elif format is not None:
            raise ConfigError(
                f"Data in memory has no format, but format '{format}' was given.",
                remedy="Leave out `format`.",
            )
        else:
            readings = known_splits(splits_in_memory(data, options), IN_MEMORY)
            name = IN_MEMORY
        report = reduce(ReadReport.merge, (part for _, part in readings.values()), ReadReport())
        train, dev, test = (tuple(readings[split][0]) if split in readings else () for split in SPLITS)
        return cls(name, train, dev, test, report.verified()).every(every)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{len(self.split_named(split)):,} {split}" for split in SPLITS)
        return f"Corpus({self.name!r}: {sizes} sentences; types: {', '.join(self.types) or 'none'})"

    def split_named(self, split: Split) -> tuple[Sentence, ...]:
        return {"train": self.train, "dev": self.dev, "test": self.test}[split]

    def every(self, n: int) -> Corpus:
        """Each n-th sentence of every split, beginning with the first; the report counts the others."""
        if n == 1:
            return self
        report = self.report.merge(ReadReport())  # a copy
        train, dev, test = (_thinned(self.split_named(split), n, report) for split in SPLITS)
        return Corpus(self.name, train, dev, test, report.verified())

    def only(self, types: Collection[str]) -> Corpus:
        """The same sentences with the labels of these types alone."""
        known = self.types
        for type_ in types:
            if type_ not in known:
                raise CorpusError(
                    f"The data has no type '{type_}'.", where=self.name, remedy=nearest(type_, known)
                )
        train, dev, test = (tuple(s.only(types) for s in self.split_named(split)) for split in SPLITS)
        return Corpus(self.name, train, dev, test, self.report)

    def renamed(self, names: Mapping[str, str]) -> Corpus:
        """The same corpus with types renamed."""
        train, dev, test = (
            tuple(
                s.with_spans([replace(span, type=names.get(span.type, span.type)) for span in s.spans])
                for s in self.split_named(split)
            )
            for split in SPLITS
        )
        return Corpus(self.name, train, dev, test, self.report)

    def split(self, dev: float = 0.1, test: float = 0.2, seed: int = 0) -> Corpus:
        """Divide the sentences of ``train`` into three splits, by a hash of seed and words.

        Equal sentences get the same split, and a sentence keeps its split when others are added. The shares
        are therefore exact only on average.
        """
        if self.dev or self.test:
            raise CorpusError(
                f"the corpus '{self.name}' has a dev or test split already.",
                remedy="Split a corpus that was read from one file.",
            )
        if not (dev >= 0 and test >= 0 and dev + test < 1):
            raise CorpusError(
                f"shares of {dev} for dev and {test} for test leave nothing for training.",
                remedy="Give shares that are not negative, and less than 1 together.",
            )
        parts: dict[Split, list[Sentence]] = {split: [] for split in SPLITS}
        for sentence in self.train:
            share = _share(sentence, seed)
            parts["test" if share < test else "dev" if share < test + dev else "train"].append(sentence)
        shares: dict[Split, float] = {"train": 1 - dev - test, "dev": dev, "test": test}
        for split, wanted in shares.items():
            if wanted > 0 and not parts[split]:
                raise CorpusError(
                    f"none of the {len(self.train)} sentences falls into {split}.",
                    remedy="Give it a larger share, a different seed, or more sentences.",
                )
        first, second, third = (tuple(parts[split]) for split in SPLITS)
        return Corpus(self.name, first, second, third, self.report)

    @property
    def types(self) -> list[str]:
        """All entity types of the corpus, sorted."""
        return sorted({type_ for split in SPLITS for s in self.split_named(split) for type_ in s.types})

    def mentions(self, split: Split) -> Counter[str]:
        """Mentions per type."""
        return mention_counts(self.split_named(split))

    def overlaps(self) -> dict[str, int]:
        """How many sentences (by their words alone) a split repeats, and shares with an earlier split."""
        keys = {split: [sentence.key for sentence in self.split_named(split)] for split in SPLITS}
        sets = {split: set(found) for split, found in keys.items()}
        repeated = {f"{split}_repeated": len(keys[split]) - len(sets[split]) for split in SPLITS}
        shared = {
            f"{later}_in_{earlier}": sum(key in sets[earlier] for key in keys[later])
            for earlier, later in combinations(SPLITS, 2)
        }
        return repeated | shared


def sentences_of(data: Data, split: Split, **reading: Any) -> tuple[tuple[Sentence, ...], ReadReport, str]:
    """All sentences with words of a file or list. Of a folder, or of data with splits: those of one split.

    Also returns the report of the reading, and the name of the sentences. ``reading``: see ``Corpus.read``.
    """
    corpus = Corpus.read(data, **reading)
    folder = isinstance(data, str | Path) and Path(data).is_dir()
    divided = folder or bool(corpus.dev or corpus.test)
    sentences = tuple(s for s in (corpus.split_named(split) if divided else corpus.train) if len(s))
    if not sentences:
        raise CorpusError(
            f"There is no {split} split." if divided else "There are no sentences with words.",
            where=source_name(data),
            remedy="Give labelled sentences, such as a file of them.",
        )
    name = corpus.name
    if isinstance(data, str | Path):
        name = Path(data).resolve().name if folder else Path(data).name
    return sentences, corpus.report, f"{name} ({split})" if divided else name


def _thinned(sentences: Sequence[Sentence], n: int, report: ReadReport) -> tuple[Sentence, ...]:
    if n < 1:
        raise CorpusError(f"every={n} keeps no sentence.", remedy="Give 1 for all, 2 for every second, ...")
    for index, sentence in enumerate(sentences):
        if index % n:
            report.leave_out(len(sentence), f"sentence left out by every={n}", sentence.source or "")
    return tuple(sentences[::n])


def _share(sentence: Sentence, seed: int) -> float:
    """A number from 0 to 1 that depends on the words and the seed alone."""
    digest = hashlib.sha256(f"{seed}:{sentence.key}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64
