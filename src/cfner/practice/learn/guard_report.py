"""The guard's report: figures and a verdict for each type, and whether the model is refused."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from cfner.evaluation.intervals import RESAMPLES, Interval
from cfner.evaluation.randomisation import SWAPS
from cfner.files.html import notebook, notebook_bar, notebook_table, text, word
from cfner.practice.learn.power import Power

Verdict = Literal[
    "lost", "kept", "unchanged", "undecided", "too few mentions", "too few sentences", "accepted"
]
_SHOWN: tuple[Verdict, ...] = ("kept", "unchanged")


@dataclass(frozen=True)
class Shift:
    """Precision or recall before and after, and what was lost. ``fell``: significantly, by more than the
    limit."""

    before: float
    after: float
    loss: Interval
    fell: bool

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"loss": self.loss._asdict()}


@dataclass(frozen=True)
class TypeReport:
    """One old type before and after, as F1. ``loss`` is before minus after: positive when it got worse.

    ``p``: corrected p-value, the probability that some type loses this much by chance; None if there is no
    verdict, or nothing can change. ``power``: the loss that the guard could have detected, if undecided.
    """

    type: str
    mentions: int
    sentences: int  # that hold the type
    before: Interval
    after: Interval
    loss: Interval
    precision: Shift
    recall: Shift
    p: float | None
    verdict: Verdict
    power: Power | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "type": self.type,
            "mentions": self.mentions,
            "sentences": self.sentences,
            "before": self.before._asdict(),
            "after": self.after._asdict(),
            "loss": self.loss._asdict(),
            "precision": self.precision.to_json(),
            "recall": self.recall.to_json(),
            "p": self.p,
            "verdict": self.verdict,
            "power": None if self.power is None else asdict(self.power),
        }


@dataclass(frozen=True)
class GuardReport:
    """Old types before and after, on labelled sentences.

    ``refused`` if a type is lost; if ``strict``, also if a type is not shown to be kept or unchanged.
    """

    types: tuple[TypeReport, ...]
    sentences: int
    max_forgetting: float
    absent: tuple[str, ...]  # old types that the guard does not mention: not tested
    unknown: tuple[str, ...]  # types of the guard that the old model does not know: ignored
    accepted: tuple[str, ...] = ()  # types that may be lost
    strict: bool = False
    fingerprint: str = ""  # of the guard's sentences and the old model's predictions
    earlier_attempts: int = 0  # recorded with this fingerprint
    kind: str = "f1"

    @property
    def lost(self) -> tuple[str, ...]:
        return tuple(report.type for report in self.types if report.verdict == "lost")

    @property
    def not_shown(self) -> dict[str, str]:
        """Types not shown to be kept or unchanged, and why; without types that may be lost."""
        why: dict[str, str] = {r.type: r.verdict for r in self.types if r.verdict not in _SHOWN}
        why |= dict.fromkeys(self.absent, "not mentioned")
        return {type_: reason for type_, reason in why.items() if type_ not in self.accepted}

    @property
    def refused(self) -> bool:
        return bool(self.lost) or (self.strict and bool(self.not_shown))

    @property
    def doubtful(self) -> tuple[str, ...]:
        """Undecided types whose measured loss is above the limit."""
        undecided = (report for report in self.types if report.verdict == "undecided")
        return tuple(report.type for report in undecided if report.loss.value > self.max_forgetting)

    def __repr__(self) -> str:
        verdicts = ", ".join(f"{one.type} {one.verdict}" for one in self.types) or "no type was tested"
        outcome = "refused" if self.refused else "accepted"
        return f"GuardReport({outcome}; {self.sentences} sentences: {verdicts})"

    def _repr_html_(self) -> str:
        """For notebooks: old types before and after, their losses, and the verdicts."""
        rows = [
            [
                word(row.type),
                f"{row.mentions:,}",
                notebook_bar(row.before.value),
                notebook_bar(row.after.value),
                f"{row.loss.value:.1f} [{row.loss.low:.1f}, {row.loss.high:.1f}]",
                f"<b>{text(row.verdict)}</b>" if row.verdict == "lost" else text(row.verdict),
            ]
            for row in self.types
        ]
        title = (
            f"{'Refused' if self.refused else 'Not refused'}: F1 of old types on {self.sentences:,} sentences"
        )
        parts = [f"<b>{title}</b>"]
        head = ("type", "gold", "F1 before", "F1 after", "lost (95 %)", "verdict")
        parts.append(notebook_table(head, rows) if rows else "")
        if self.absent:
            parts.append(f"<div>Not in these sentences: {', '.join(map(word, self.absent))}.</div>")
        return notebook(*parts)

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "refused": self.refused,
            "strict": self.strict,
            "sentences": self.sentences,
            "max_forgetting": self.max_forgetting,
            "resamples": RESAMPLES,
            "swaps": SWAPS,
            "types": [report.to_json() for report in self.types],
            "absent": list(self.absent),
            "unknown": list(self.unknown),
            "fingerprint": self.fingerprint,
            "earlier_attempts": self.earlier_attempts,
        }
