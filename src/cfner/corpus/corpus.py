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

from cfner.corpus.formats import ReadOptions
from cfner.corpus.report import ReadReport
from cfner.corpus.sentence import Sentence, mention_counts
from cfner.corpus.split_files import SPLITS, Split, read_file, read_splits
from cfner.corpus.tags import Scheme
from cfner.errors import CorpusError, nearest


@dataclass(frozen=True)
class Corpus:
    """Sentences in three splits. ``Corpus.read`` makes one from a folder, a file or a dataset."""

    name: str
    train: tuple[Sentence, ...]
    dev: tuple[Sentence, ...] = ()
    test: tuple[Sentence, ...] = ()
    report: ReadReport = field(default_factory=ReadReport, compare=False)

    @classmethod
    def read(
        cls,
        path: str | Path,
        *,
        format: str | None = None,
        tag_column: str | int | None = None,
        token_column: str | int | None = None,
        scheme: Scheme | None = None,
        labels: Sequence[str] | None = None,
        every: int = 1,
    ) -> Corpus:
        """Read a folder with train, dev and test files, one file (which becomes ``train``), or a dataset.

        Format and scheme are found out unless given. ``every=n`` keeps each n-th sentence of every split.
        """
        options = ReadOptions(tag_column, token_column, scheme, labels)
        readings = read_splits(str(path), format, options)
        report = reduce(ReadReport.merge, (part for _, part in readings.values()), ReadReport())
        train, dev, test = (tuple(readings[split][0]) if split in readings else () for split in SPLITS)
        name = Path(path).stem if Path(path).is_file() else Path(path).name
        return cls(name, train, dev, test, report.verified()).every(every)

    def split_named(self, split: Split) -> tuple[Sentence, ...]:
        return {"train": self.train, "dev": self.dev, "test": self.test}[split]

    def every(self, n: int) -> Corpus:
        """Each n-th sentence of every split, beginning with the first; the others are reported."""
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
        """The same corpus with other names of types."""
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

        Equal sentences land together, and a sentence stays where it is when others are added. The shares are
        therefore met on average, not to the sentence.
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
                    f"no sentence of the {len(self.train)} falls into {split}.",
                    remedy="Give it a larger share, another seed, or more sentences.",
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


def read_sentences(
    path: str | Path, *, format: str | None = None, every: int = 1, **options: Any
) -> tuple[tuple[Sentence, ...], ReadReport]:
    """The sentences of one file, and the report of the reading. ``options`` are those of ``Corpus.read``."""
    sentences, report = read_file(Path(path), format, ReadOptions(**options))
    return _thinned(sentences, every, report), report.verified()


def _thinned(sentences: Sequence[Sentence], n: int, report: ReadReport) -> tuple[Sentence, ...]:
    if n < 1:
        raise CorpusError(f"every={n} keeps no sentence.", remedy="Give 1 for all, 2 for each second, ...")
    for index, sentence in enumerate(sentences):
        if index % n:
            report.leave_out(len(sentence), f"sentence left out by every={n}", sentence.source or "")
    return tuple(sentences[::n])


def _share(sentence: Sentence, seed: int) -> float:
    """A number from 0 to 1 that depends on the words and the seed alone."""
    digest = hashlib.sha256(f"{seed}:{sentence.key}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64
