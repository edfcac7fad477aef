"""``diff_models``: compare the predictions of two models on a text, as counts and examples."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, astuple, dataclass, field, replace
from itertools import tee
from typing import Any

from cfner.corpus.sentence import Sentence, Span
from cfner.files.html import notebook, notebook_table, word
from cfner.network.prediction import Prediction, TaggingModel, tag_stream
from cfner.practice.diff.pairs import KINDS, VERDICTS, Change, Kind, Verdict, judge, pair

_IN_NOTEBOOK = 10  # changed sentences that a notebook shows
KEEP = 1000  # changed sentences kept as examples; counts cover all


@dataclass(frozen=True)
class SentenceDiff:
    """A sentence with at least one change."""

    old: Prediction
    new: Prediction
    changes: tuple[Change, ...]

    @property
    def sentence(self) -> Sentence:
        return self.old.sentence

    def to_json(self) -> dict[str, Any]:
        shown, after = self.old.to_json(), self.new.to_json()
        old: dict[Span | None, Any] = dict(zip(self.old.spans, shown["entities"], strict=True))
        new: dict[Span | None, Any] = dict(zip(self.new.spans, after["entities"], strict=True))
        changes = [
            {
                "kind": c.kind,
                "old": old.get(c.old),
                "new": new.get(c.new),
                "verdict": c.verdict,
                "piece": c.piece,
            }
            for c in self.changes
        ]
        about = {"text": shown["text"], "tokens": shown["tokens"], "source": self.sentence.source}
        return {**about, "changes": changes}


TYPE_COLUMNS = (  # of a table of types and their counts
    *("type", "before", "after", "unchanged", "lost", "gained", "moved"),
    *("to another type", "from another"),
)


@dataclass
class TypeCounts:
    """Mentions of one type.

    ``before = unchanged + lost + moved + away`` and ``after = unchanged + gained + moved + to``.
    """

    before: int = 0
    after: int = 0
    unchanged: int = 0
    lost: int = 0
    gained: int = 0
    moved: int = 0
    away: int = 0  # retyped to another type, moved or not
    to: int = 0  # retyped to this type, moved or not


@dataclass
class ModelDiff:
    """The changes. ``changed`` contains the first changed sentences; the counts cover all."""

    old_name: str
    new_name: str
    old_types: tuple[str, ...]
    new_types: tuple[str, ...]
    judged_types: tuple[str, ...]  # types that the text labels; empty if it is not labelled
    device: str = ""  # what the new model was computed on
    sentences: int = 0
    changed_sentences: int = 0
    unchanged: int = 0
    counts: Counter[Kind] = field(default_factory=Counter)
    verdicts: defaultdict[Kind, Counter[Verdict]] = field(default_factory=lambda: defaultdict(Counter))
    per_type: defaultdict[str, TypeCounts] = field(default_factory=lambda: defaultdict(TypeCounts))
    changed: list[SentenceDiff] = field(default_factory=list)

    def __repr__(self) -> str:
        counts = ", ".join(f"{self.counts[kind]:,} {kind}" for kind in KINDS)
        return f"ModelDiff({self.old_name} -> {self.new_name}, {self.sentences:,} sentences: {counts})"

    @property
    def total(self) -> int:
        return self.counts.total()

    def of_kind(self, kind: Kind) -> Iterator[tuple[SentenceDiff, Change]]:
        """The kept changes of one kind, with their sentences."""
        for sentence in self.changed:
            for change in sentence.changes:
                if change.kind == kind:
                    yield sentence, change

    def _repr_html_(self) -> str:
        """For notebooks: counts by kind of change and by type, then the first sentences."""
        changes = ", ".join(f"{self.counts[kind]:,} {kind}" for kind in KINDS if self.counts[kind])
        parts = [
            f"<b>{word(self.old_name)} → {word(self.new_name)}</b>: {self.changed_sentences:,} of "
            f"{self.sentences:,} sentences changed{f' ({changes})' if changes else ''}; "
            f"{self.unchanged:,} mentions are the same."
        ]
        rows = [
            [word(type_), *(f"{number:,}" for number in astuple(one))]
            for type_, one in sorted(self.per_type.items())
        ]
        parts.append(notebook_table(TYPE_COLUMNS, rows) if rows else "")
        shown = [[one.old._repr_html_(), one.new._repr_html_()] for one in self.changed[:_IN_NOTEBOOK]]
        parts.append(notebook_table(("before", "after"), shown, words=2) if shown else "")
        if more := self.changed_sentences - len(shown):
            parts.append(f"<div>{more:,} more changed sentences.</div>")
        return notebook(*parts)

    def to_json(self) -> dict[str, Any]:
        return {
            "old": {"name": self.old_name, "types": list(self.old_types)},
            "new": {"name": self.new_name, "types": list(self.new_types)},
            "labelled_types": list(self.judged_types),
            "device": self.device,
            "sentences": self.sentences,
            "changed_sentences": self.changed_sentences,
            "unchanged": self.unchanged,
            "counts": {kind: self.counts[kind] for kind in KINDS},
            "verdicts": {
                kind: {verdict: self.verdicts[kind][verdict] for verdict in VERDICTS}
                for kind in KINDS
                if kind in self.verdicts
            },
            "per_type": {type_: asdict(counts) for type_, counts in sorted(self.per_type.items())},
            "changed": [sentence.to_json() for sentence in self.changed],
            "changed_left_out": self.changed_sentences - len(self.changed),
        }


def diff_models(
    old: TaggingModel,
    new: TaggingModel,
    sentences: Iterable[Sentence],
    *,
    names: tuple[str, str] = ("old", "new"),
    judged: Collection[str] | None = None,
    keep: int = KEEP,
    batch_size: int = 64,
) -> ModelDiff:
    """Tag the sentences with both models, side by side, and collect what changed.

    ``judged`` are the types that the sentences are labelled with: their changes are marked as right or wrong.
    By default they are the types that occur, if the sentences come as a list; for an iterator none. At most
    ``keep`` changed sentences are kept, so text of any length fits into memory.
    """
    if judged is None:
        listed = sentences if isinstance(sentences, Sequence) else ()
        judged = {type_ for sentence in listed for type_ in sentence.types}
    device = str(new.network.device)
    found = ModelDiff(*names, old.labels.types, new.labels.types, tuple(sorted(judged)), device)
    before, after = tee(sentence for sentence in sentences if len(sentence))
    tagged = (tag_stream(*side, batch_size=batch_size) for side in ((old, before), (new, after)))
    for left, right in zip(*tagged, strict=True):
        compare(found, left, right, keep)
    return found


def around(sentence: Sentence, change: Change, context: int) -> range:
    """The words of a change, with ``context`` words on each side."""
    first, end = change.words
    return range(max(0, first - context), min(len(sentence), end + context))


def blank_before(sentence: Sentence, at: int) -> str:
    """The separator before a word: a space, or nothing where the text has none."""
    if sentence.offsets is None or at == 0:
        return " "
    return " " if sentence.offsets[at - 1][1] < sentence.offsets[at][0] else ""


def compare(found: ModelDiff, old: Prediction, new: Prediction, keep: int) -> None:
    """Add one sentence, tagged by both models, to the result."""
    changes, same = pair(old.spans, new.spans)
    found.sentences += 1
    found.unchanged += len(same)
    for span in same:
        counts = found.per_type[span.type]
        counts.before += 1
        counts.after += 1
        counts.unchanged += 1
    if not changes:
        return
    if found.judged_types:
        gold = old.sentence.spans
        changes = [replace(change, verdict=judge(change, gold, found.judged_types)) for change in changes]
    for change in changes:
        _count(found, change)
    found.changed_sentences += 1
    if len(found.changed) < keep:
        found.changed.append(SentenceDiff(old, new, tuple(changes)))


def _count(found: ModelDiff, change: Change) -> None:
    found.counts[change.kind] += 1
    if change.verdict is not None:
        found.verdicts[change.kind][change.verdict] += 1
    if change.old is not None:
        before = found.per_type[change.old.type]
        before.before += 1
        before.lost += change.kind == "lost"
        before.away += change.kind in {"retyped", "moved+retyped"}
        before.moved += change.kind == "moved"
    if change.new is not None:
        after = found.per_type[change.new.type]
        after.after += 1
        after.gained += change.kind == "gained"
        after.to += change.kind in {"retyped", "moved+retyped"}
