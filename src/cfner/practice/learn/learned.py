"""The result of ``learn``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cfner.evaluation.estimate import Estimate
from cfner.evaluation.scores import Scores
from cfner.files.html import notebook, notebook_bar, notebook_table, text, word
from cfner.practice.check.findings import Finding
from cfner.practice.learn.agreement import AgreementReport
from cfner.practice.learn.guard_report import GuardReport
from cfner.practice.learn.plan import StepPlan
from cfner.runs.cost import Cost
from cfner.stream.sentence_set import SentenceSet


@dataclass(frozen=True)
class Learned:
    """The result. ``folder`` contains the new model: the requested one, or ``OUT.refused`` if it was
    refused."""

    folder: Path
    accepted: bool
    plan: StepPlan
    step: int
    parent: int  # the step that it was learned from
    best_epoch: int
    epochs: tuple[dict[str, float], ...]
    scores: Scores  # on the guard's sentences, of all types mentioned there
    scored_on: SentenceSet | None  # the guard's sentences
    guard: GuardReport | None
    agreement: tuple[AgreementReport, ...]
    estimate: Estimate | None  # scores of the step's types
    below: tuple[str, ...]  # types below the requested F1
    promise: str  # what the method guarantees about old types
    reminders: Mapping[str, Any] | None  # unlabelled text used for training, and old types found in it
    not_reminded: tuple[str, ...]  # old types that the new data does not mention, if no other text was given
    what_to_try: tuple[str, ...]  # if an old type was lost, or may have been
    calibrated: tuple[str, ...]  # old types whose calibration was copied; it was measured before this step
    device: str
    cost: Cost
    findings: tuple[Finding, ...] = ()  # of the check before learning: warnings, and overridden errors
    left_out: tuple[str, ...] = ()  # messages about data that was not used

    def __repr__(self) -> str:
        outcome = "accepted" if self.accepted else "refused"
        learned = ", ".join(self.plan.current)
        estimate = "" if self.estimate is None else f"; {self.estimate.figures()}"
        return f"Learned({learned}: {outcome}, step {self.step} of {str(self.folder)!r}{estimate})"

    def _repr_html_(self) -> str:
        """For notebooks: what was learned, old types before and after, new types."""
        types = ", ".join(map(word, (*self.plan.new, *self.plan.more)))
        outcome = "" if self.accepted else ", and refused"
        parts = [f"<b>Learned{outcome}: {types}</b> (step {self.step} of {word(str(self.folder))})"]
        if self.guard is not None:
            parts.append(self.guard._repr_html_())
        if self.estimate is not None and self.estimate.types:
            rows = [
                [word(row.type), f"{row.mentions:,}", notebook_bar(row.f1.value)]
                for row in self.estimate.types
            ]
            parts.append(notebook_table(("new type", "gold", "F1"), rows))
            parts.append(f"<div>Measured with {text(self.estimate.in_words())}.</div>")
        return notebook(*parts)

    def to_json(self) -> dict[str, Any]:
        return {
            "folder": str(self.folder),
            "accepted": self.accepted,
            "step": self.step,
            "parent": self.parent,
            "new_types": list(self.plan.new),
            "more_data_for": list(self.plan.more),
            "ignored_types": list(self.plan.ignored),
            "best_epoch": self.best_epoch,
            "epochs": list(self.epochs),
            "scores": self.scores.to_json(),
            "scored_on": None if self.scored_on is None else self.scored_on.to_json(),
            "guard": None if self.guard is None else self.guard.to_json(),
            "agreement": [report.to_json() for report in self.agreement],
            "new_types_f1": None if self.estimate is None else self.estimate.to_json(),
            "below_min_new_f1": list(self.below),
            "promise": self.promise,
            "reminders": self.reminders,
            "not_reminded": list(self.not_reminded),
            "what_to_try": list(self.what_to_try),
            "calibrated": list(self.calibrated),
            "device": self.device,
            "findings": [asdict(finding) for finding in self.findings],
            "left_out": list(self.left_out),
            **self.cost.to_json(),
        }
