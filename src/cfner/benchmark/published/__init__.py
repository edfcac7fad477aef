"""Published figures as data, to compare runs with.

Each JSON file is one table, transcribed as printed. A figure that cannot be right as printed is kept, and
``doubtful`` says why.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from cfner.errors import ConfigError, nearest

_TABLES = (
    "main",
    "conll2003",
    "ablation",
    "hyper_parameters",
    "combination",
    "random_sampling",
    "later",
)


@dataclass(frozen=True)
class Figure:
    """Micro and macro F1 in percent, means over the steps; deviations over seeds where they are printed."""

    table: str  # main, ablation, hyper-parameters, combination, random sampling, later
    source: str  # the publication, for display
    where: str  # the table or page in it
    data: str
    first: int
    per_step: int
    method: str  # cfner's name of the method, if it has it
    printed: str  # the publication's name
    micro: float | None = None
    micro_std: float | None = None
    macro: float | None = None
    macro_std: float | None = None
    doubtful: str | None = None  # why the figure cannot be trusted as printed


@dataclass(frozen=True)
class CorpusStatistics:
    """The paper's figures about a corpus: counts over all splits together, rounded to thousands.

    ``types`` are named as in the paper, in the order in which they are learned; ``labels`` are their names in
    the corpus's files. ``splits``: exact counts from other sources, since the paper gives none.
    """

    name: str
    types: tuple[str, ...]
    sentences: int
    mentions: int
    rounded_to: int
    in_files: Mapping[str, str] = field(default_factory=dict)
    splits: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    splits_source: str | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the types in the corpus's files, in the order of ``types``."""
        return tuple(self.in_files.get(type_, type_) for type_ in self.types)


@dataclass(frozen=True)
class Published:
    """All published figures."""

    figures: tuple[Figure, ...]
    corpora: Mapping[str, CorpusStatistics]

    def of(self, data: str, first: int, per_step: int) -> tuple[Figure, ...]:
        """The figures of one corpus (in any spelling of its name) in one setting."""
        return tuple(
            figure
            for figure in self.figures
            if same_corpus(figure.data, data) and (figure.first, figure.per_step) == (first, per_step)
        )


def same_corpus(one: str, other: str) -> bool:
    """'CoNLL2003', 'conll-2003' and 'data/conll_2003' are the same corpus."""
    return _plain(one) == _plain(other)


@cache
def load() -> Published:
    """Read the tables that come with the package."""
    sources: dict[str, str] = _read("sources")
    figures: list[Figure] = []
    for name in _TABLES:
        table = _read(name)
        for row in table["figures"]:
            source = sources[row.get("source", table.get("source"))]
            told = {key: value for key, value in row.items() if key != "source"}
            figures.append(Figure(table=table["table"], where=table["where"], source=source, **told))
    corpora = [
        CorpusStatistics(**row | {"types": tuple(row["types"])}) for row in _read("statistics")["corpora"]
    ]
    return Published(tuple(figures), {corpus.name: corpus for corpus in corpora})


def statistics(name: str) -> CorpusStatistics:
    """The paper's figures about one of its corpora, in any spelling of its name."""
    corpora = load().corpora
    for known, corpus in corpora.items():
        if same_corpus(known, name):
            return corpus
    raise ConfigError(f"The paper has no corpus '{name}'.", remedy=nearest(name, corpora))


def _read(name: str) -> Any:
    return json.loads(files(__package__).joinpath(f"{name}.json").read_text(encoding="utf-8"))


def _plain(name: str) -> str:
    last = name.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
    return "".join(sign for sign in last.casefold() if sign.isalnum())
