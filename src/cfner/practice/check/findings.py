"""The data types of a check: findings, the plan of a step, and the report that contains them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from cfner.corpus.corpus import Corpus
from cfner.corpus.report import ReadReport
from cfner.corpus.split_files import SPLITS
from cfner.errors import CfnerError
from cfner.practice.learn.plan import StepPlan
from cfner.practice.learn.types_found import TypesFound

if TYPE_CHECKING:
    from cfner.practice.check.curve import LearningCurve

Severity = Literal["error", "warning", "note"]
SEVERITIES: Final[tuple[Severity, ...]] = get_args(Severity)
UNDECIDED: Final = "undecided"  # the kind of finding that an answer (``old_labels``) removes
_EXAMPLES: Final = 5


@dataclass(frozen=True)
class Finding:
    """One thing worth knowing before training.

    ``error``: ``learn`` would refuse the data. ``warning``: it would learn, but probably worse than possible,
    or its scores would mislead. ``note``: a fact that needs no action.
    """

    severity: Severity
    kind: str
    message: str
    where: str | None = None
    remedy: str | None = None
    command: str | None = None  # does what the remedy says; can be copied

    def in_words(self) -> str:
        """All of it in one paragraph."""
        command = None if self.command is None else f"{self.command} ."
        place = None if self.where is None else f"({self.where})"
        return " ".join(part for part in (self.message, place, self.remedy, command) if part)

    @classmethod
    def refusal(cls, error: CfnerError, kind: str = "refused") -> Finding:
        return cls("error", kind, error.what, error.where, error.remedy)


warning, note = partial(Finding, "warning"), partial(Finding, "note")


@dataclass(frozen=True)
class SplitFacts:
    sentences: int
    tokens: int
    mentions: Mapping[str, int]  # per type of the data, 0 included


def split_facts(corpus: Corpus) -> dict[str, SplitFacts]:
    facts, types = {}, corpus.types
    for split in SPLITS:
        sentences, mentions = corpus.split_named(split), corpus.mentions(split)
        counts = {type_: mentions[type_] for type_ in types}
        facts[str(split)] = SplitFacts(len(sentences), sum(map(len, sentences)), counts)
    return facts


@dataclass(frozen=True)
class ClaimedWords:
    """Words of a new type's sampled mentions that the model takes for an old type."""

    new: str
    old: str
    words: int
    share: float  # of all words of these mentions
    examples: tuple[str, ...]  # mentions, most frequent first


@dataclass(frozen=True)
class ModelFacts:
    """What the model finds in the data. Counts are of ``sample`` training sentences that it tagged."""

    source: str
    encoder: str
    known: tuple[str, ...]
    sample: int
    old_predictions: Mapping[str, int]  # mentions of old types that the model finds, per old type
    covered: Mapping[str, int]  # mentions of each current type on which the model predicts an old type
    conflicts: Mapping[str, Mapping[str, int]]  # the same by old type: current type, old type, count
    already_found: Mapping[str, int]  # mentions of each current type that the model finds, if it knows it
    sampled_mentions: Mapping[str, int]  # mentions of each current type in the sample
    claimed: tuple[ClaimedWords, ...] = ()
    unlabelled: TypesFound | None = None  # old types in the text without labels, if there is any
    not_reminded: tuple[str, ...] = ()  # old types that no text mentions more than a few times


@dataclass(frozen=True)
class TimeEstimate:
    """How long ``learn`` would take on this machine, in seconds, from timed batches.

    ``estimate``: how much of that the estimate of the new types takes, as a share.
    """

    low: float
    high: float
    batches_timed: int
    seconds_per_batch: float
    device: str
    estimate: float = 0.0


@dataclass(frozen=True, kw_only=True)
class LearnPlan(StepPlan):
    """What ``learn`` would do with the data."""

    kept: tuple[str, ...] = ()  # old types that the step must not forget
    kept_rows: int = 0  # label rows of the head that stay as they are
    method: str | None = None
    epochs: int | None = None
    train_sentences: int
    unlabelled_sentences: int = 0
    dev_sentences: int
    chooses_epoch: bool  # by the dev sentences
    dev_held_out: bool = False
    test_sentences: int = 0  # that score the new types
    folds: int = 0  # models that estimate the new types instead; 1: with one held-out part


@dataclass(frozen=True)
class CheckReport:
    """The result of ``check``; findings are sorted by severity, worst first."""

    data: str
    name: str
    reading: ReadReport
    types: tuple[str, ...]
    splits: Mapping[str, SplitFacts]
    findings: tuple[Finding, ...]
    plan: LearnPlan | None  # None if learn would refuse
    model: ModelFacts | None
    time: TimeEstimate | None
    curve: LearningCurve | None  # if requested
    next_command: str

    def __repr__(self) -> str:
        counts = ", ".join(f"{sum(f.severity == s for f in self.findings)} {s}s" for s in SEVERITIES)
        return f"CheckReport({self.data!r}: {counts}; next: {self.next_command})"

    @property
    def errors(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.severity == "error")

    @property
    def exit_code(self) -> int:
        """1 if learn would refuse the data, else 0; warnings do not count."""
        return 1 if self.errors else 0

    def to_json(self) -> dict[str, Any]:
        curve = None if self.curve is None else self.curve.to_json()
        return {**asdict(replace(self, curve=None)), "reading": self.reading.to_json(), "curve": curve}


def some(items: Sequence[str], most: int = _EXAMPLES) -> str:
    """The first few items of a list, and how many more there are."""
    more = f" and {len(items) - most:,} more" if len(items) > most else ""
    return ", ".join(items[:most]) + more


def counted(count: int, noun: str, verb: str = "") -> str:
    """'1 sentence', '2 sentences'; with a plural verb ('have', 'are', 'hold'), the verb follows in the right
    form."""
    one = {"have": "has", "are": "is", "": ""}.get(verb, f"{verb}s")
    shown = f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
    return f"{shown} {one if count == 1 else verb}".rstrip()
