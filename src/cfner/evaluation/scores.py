"""The result of an evaluation: counts, and percentages computed from them. All shares are in percent."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, Self

from pydantic import Field, TypeAdapter

from cfner.corpus.sentence import Span
from cfner.files.html import notebook, notebook_bar, notebook_table, word

Count = Annotated[int, Field(strict=True, ge=0, le=10**15)]  # bounded, so that arithmetic on it is safe


@dataclass(frozen=True, slots=True)
class Counts:
    """Mentions found exactly (same words, same type), mentions in the gold, mentions predicted."""

    tp: Count
    n_gold: Count
    n_predicted: Count

    @property
    def precision(self) -> float:
        """Percent; 0 when nothing was predicted."""
        return percent(self.tp, self.n_predicted) or 0.0

    @property
    def recall(self) -> float:
        """Percent; 0 when there is nothing to find."""
        return percent(self.tp, self.n_gold) or 0.0

    @property
    def f1(self) -> float:
        """Percent; 0 when there is neither a gold nor a predicted mention."""
        return percent(2 * self.tp, self.n_gold + self.n_predicted) or 0.0


@dataclass(frozen=True, slots=True)
class Confusions:
    """The two ways in which learning new types hurts old ones, counted in words.

    ``old_words``: words inside gold mentions of old types; ``old_as_other`` of them are predicted O.
    ``not_new_words``: words whose gold is O or an old type; ``as_new`` of them are predicted as a new type.
    """

    old_words: Count
    old_as_other: Count
    not_new_words: Count
    as_new: Count

    @property
    def old_to_other(self) -> float | None:
        """Percent of old-type words predicted O; None without such words (as in a first step)."""
        return percent(self.old_as_other, self.old_words)

    @property
    def to_new(self) -> float | None:
        """Percent of O and old-type words predicted as a new type; None without such words."""
        return percent(self.as_new, self.not_new_words)

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"old_to_other": self.old_to_other, "to_new": self.to_new}


@dataclass(frozen=True)
class Scores:
    """Entity-level counts per type, and the scores computed from them.

    ``types`` are the types that the model should know; the macro F1 is their mean. ``counts`` has an entry
    for each of them, and for every other type that was predicted: its mentions are false positives in the
    micro scores.
    """

    types: tuple[str, ...]
    counts: Mapping[str, Counts]
    confusions: Confusions | None = None

    def __repr__(self) -> str:
        each = ", ".join(f"{type_} {f1:.1f}" for type_, f1 in self.f1_of.items())
        return f"{type(self).__name__}(micro F1 {self.micro_f1:.1f}, macro F1 {self.macro_f1:.1f}; {each})"

    @cached_property
    def micro(self) -> Counts:
        """The counts of all types together."""
        every = self.counts.values()
        return Counts(
            sum(c.tp for c in every), sum(c.n_gold for c in every), sum(c.n_predicted for c in every)
        )

    @property
    def micro_f1(self) -> float:
        return self.micro.f1

    @property
    def macro_f1(self) -> float:
        """The mean of the F1 of ``types``, each counting the same; 0 when there are none.

        A type that the data does not mention and the model does not predict counts as 0. (seqeval leaves such
        types out, so that two steps would be means over different types.)
        """
        return sum(self.counts[type_].f1 for type_ in self.types) / len(self.types) if self.types else 0.0

    def without(self, types: Collection[str]) -> Self:
        """The same scores without some types and without their predictions."""
        return replace(
            self,
            types=tuple(type_ for type_ in self.types if type_ not in types),
            counts={type_: counts for type_, counts in self.counts.items() if type_ not in types},
        )

    def _repr_html_(self) -> str:
        """The view in a notebook: a row per type, with a bar for its F1."""
        rows = [_row(word(type_), counts) for type_, counts in self.counts.items()]
        rows.append(_row("<b>all (micro)</b>", self.micro))
        rows.append(["<b>all (macro)</b>", notebook_bar(self.macro_f1), "", "", "", ""])
        return notebook(notebook_table(("type", "F1", "precision", "recall", "gold", "predicted"), rows))

    @property
    def f1_of(self) -> dict[str, float]:
        """The F1 of each of ``types``."""
        return {type_: self.counts[type_].f1 for type_ in self.types}

    def figures(self) -> dict[str, Any]:
        """Percentages; of the counts only how often the data mentions each of ``types``."""
        return {
            "micro_f1": self.micro_f1,
            "macro_f1": self.macro_f1,
            "per_type": self.f1_of,
            "mentions": {type_: self.counts[type_].n_gold for type_ in self.types},
            "confusion": None if self.confusions is None else self.confusions.to_json(),
        }

    def to_json(self) -> dict[str, Any]:
        """Counts, which ``from_json`` reads, and percentages for human readers."""
        return {
            "types": list(self.types),
            "micro_f1": self.micro_f1,
            "macro_f1": self.macro_f1,
            "precision": self.micro.precision,
            "recall": self.micro.recall,
            "per_type": {
                type_: asdict(counts)
                | {"precision": counts.precision, "recall": counts.recall, "f1": counts.f1}
                for type_, counts in self.counts.items()
            },
            "confusions": None if self.confusions is None else self.confusions.to_json(),
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Scores:
        """The scores that ``to_json`` wrote; any other shape raises a KeyError or a ValueError."""
        scores = TypeAdapter(Scores).validate_python({**data, "counts": data["per_type"]})
        if not scores.counts.keys() >= set(scores.types):
            raise ValueError("'types' contains a type that has no counts")
        for name in ("micro_f1", "macro_f1"):  # cfner computes them again, but other programs read them
            if type(data[name]) not in {int, float}:
                raise ValueError(f"'{name}' is not a number")
        return scores


@dataclass(frozen=True, repr=False)
class Evaluation(Scores):
    """Scores, and the mentions that were found in each sentence."""

    found: tuple[tuple[Span, ...], ...] = field(default=(), compare=False, repr=False)


def _row(name: str, counts: Counts) -> list[str]:
    figures = [
        f"{counts.precision:.1f}",
        f"{counts.recall:.1f}",
        f"{counts.n_gold:,}",
        f"{counts.n_predicted:,}",
    ]
    return [name, notebook_bar(counts.f1), *figures]


def percent(part: int, whole: int) -> float | None:
    """``part`` of ``whole`` in percent; None when ``whole`` is 0."""
    return 100 * part / whole if whole else None
