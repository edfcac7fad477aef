"""``diff_models``: what two models say differently about the same text, in counts and in examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any

from cfner.corpus.sentence import Sentence
from cfner.network.prediction import Entity, Prediction, tag
from cfner.practice.diff.pairs import KINDS, VERDICTS, Kind, SpanChange, Verdict, judge, pair
from cfner.store.model_files import LoadedModel

KEEP = 1000  # changed sentences kept as examples; counts are of all
_CHUNK = 512


@dataclass(frozen=True)
class Change:
    """A mention that the two models see differently, with both scores."""

    kind: Kind
    old: Entity | None
    new: Entity | None
    verdict: Verdict | None  # None: the text is not labelled, or its labels cannot tell
    piece: str | None  # 'split' or 'joined': a leftover of a mention that was divided or united

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


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
        shown = self.old.to_json()
        return {
            "text": shown["text"],
            "tokens": shown["tokens"],
            "source": self.sentence.source,
            "changes": [change.to_json() for change in self.changes],
        }


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
    """All that changed. ``changed`` holds the first changed sentences, the counts are of all of them."""

    old_name: str
    new_name: str
    old_types: tuple[str, ...]
    new_types: tuple[str, ...]
    judged_types: tuple[str, ...]  # types that the text's labels cover; none: it is not labelled
    sentences: int = 0
    changed_sentences: int = 0
    unchanged: int = 0
    counts: Counter[Kind] = field(default_factory=Counter)
    verdicts: dict[Kind, Counter[Verdict]] = field(default_factory=dict)
    per_type: dict[str, TypeCounts] = field(default_factory=dict)
    changed: list[SentenceDiff] = field(default_factory=list)

    @property
    def total(self) -> int:
        return self.counts.total()

    def of_kind(self, kind: Kind) -> Iterator[tuple[SentenceDiff, Change]]:
        """The kept changes of one kind, with their sentences."""
        for sentence in self.changed:
            for change in sentence.changes:
                if change.kind == kind:
                    yield sentence, change

    def to_json(self) -> dict[str, Any]:
        return {
            "old": {"name": self.old_name, "types": list(self.old_types)},
            "new": {"name": self.new_name, "types": list(self.new_types)},
            "labelled_types": list(self.judged_types),
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
    old: LoadedModel,
    new: LoadedModel,
    sentences: Iterable[Sentence],
    *,
    names: tuple[str, str] = ("old", "new"),
    judged: Collection[str] | None = None,
    keep: int = KEEP,
    batch_size: int = 64,
) -> ModelDiff:
    """Tag the sentences with both models, chunk by chunk, and collect what changed.

    ``judged`` are the types that the sentences are labelled with: for these each change is called right or
    wrong. By default they are the types that occur, if the sentences come as a list; for an iterator none.
    At most ``keep`` changed sentences are kept, so text of any length fits.
    """
    if judged is None:
        listed = sentences if isinstance(sentences, Sequence) else ()
        judged = {type_ for sentence in listed for type_ in sentence.types}
    found = ModelDiff(*names, old.labels.types, new.labels.types, tuple(sorted(judged)))
    remaining = iter(sentences)
    while chunk := list(islice(remaining, _CHUNK)):
        filled = [sentence for sentence in chunk if len(sentence)]
        before, after = (tag(model, filled, batch_size=batch_size) for model in (old, new))
        for left, right in zip(before, after, strict=True):
            compare(found, left, right, keep)
    return found


def blank_before(sentence: Sentence, at: int) -> str:
    """What stands between a word and the one before it: a blank, or nothing where the text has none."""
    if sentence.offsets is None or at == 0:
        return " "
    return " " if sentence.offsets[at - 1][1] < sentence.offsets[at][0] else ""


def compare(found: ModelDiff, old: Prediction, new: Prediction, keep: int) -> None:
    """Add one sentence, tagged by both models, to what was found so far."""
    changes, same = pair(old.spans, new.spans)
    found.sentences += 1
    found.unchanged += len(same)
    for span in same:
        counts = found.per_type.setdefault(span.type, TypeCounts())
        counts.before += 1
        counts.after += 1
        counts.unchanged += 1
    if not changes:
        return
    old_entities, new_entities = (dict(zip(side.spans, side.entities, strict=True)) for side in (old, new))
    told = []
    for change in changes:
        verdict = None
        if found.judged_types:
            verdict = judge(change, old.sentence.spans, found.judged_types)
        if verdict is not None:
            found.verdicts.setdefault(change.kind, Counter())[verdict] += 1
        _count(found, change)
        was = None if change.old is None else old_entities[change.old]
        now = None if change.new is None else new_entities[change.new]
        told.append(Change(change.kind, was, now, verdict, change.piece))
    found.changed_sentences += 1
    if len(found.changed) < keep:
        found.changed.append(SentenceDiff(old, new, tuple(told)))


def _count(found: ModelDiff, change: SpanChange) -> None:
    found.counts[change.kind] += 1
    if change.old is not None:
        before = found.per_type.setdefault(change.old.type, TypeCounts())
        before.before += 1
        before.lost += change.kind == "lost"
        before.away += change.kind in {"retyped", "moved+retyped"}
        before.moved += change.kind == "moved"
    if change.new is not None:
        after = found.per_type.setdefault(change.new.type, TypeCounts())
        after.after += 1
        after.gained += change.kind == "gained"
        after.to += change.kind in {"retyped", "moved+retyped"}
