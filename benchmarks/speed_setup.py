"""What the speed benchmark uses: sentences, models that know some of their types, a clock, and ratios."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from cfner.corpus.corpus import Corpus
from cfner.corpus.sentence import Sentence, Span
from cfner.stream.step import Step
from cfner.tagger import ContinualTagger

NEW_TYPES = 4


@dataclass(frozen=True)
class Ratio:
    """One line of the report. ``target`` None: only reported. ``sense``: <= or >= the target."""

    name: str
    value: float
    low: float
    high: float
    target: float | None = None
    sense: Literal["<=", ">="] = "<="
    note: str = ""

    @property
    def missed(self) -> bool:
        if self.target is None:
            return False
        return self.value > self.target if self.sense == "<=" else self.value < self.target

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"missed": self.missed}


def ratio_of(turns: list[tuple[float, float]], name: str, target: float | None = None, **more: Any) -> Ratio:
    """The median of the first figures over the second, with the smallest and the largest."""
    values = [first / second for first, second in turns]
    return Ratio(name, statistics.median(values), min(values), max(values), target, **more)


class Clock:
    """A progress display that only measures how long each epoch took."""

    def __init__(self) -> None:
        self.epochs: list[float] = []
        self._last = 0.0

    def start(self, name: str, epochs: int, batches: int) -> None:
        self._last = time.perf_counter()

    def batch(self, loss: float, sentences: int) -> None: ...

    def epoch(self, number: int, figures: dict[str, float]) -> None:
        now = time.perf_counter()
        self.epochs.append(now - self._last)
        self._last = now

    def end(self) -> None: ...


def seconds(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


@dataclass(frozen=True)
class Bench:
    """Sentences with all their labels, the types to learn, and how models are made."""

    sentences: tuple[Sentence, ...]
    new: tuple[str, ...]
    settings: dict[str, Any]
    folder: Path

    @classmethod
    def of(cls, corpus: Corpus, folder: Path, **settings: Any) -> Bench:
        """The four most frequent types are new; the others are old."""
        counts = corpus.mentions("train")
        new = tuple(sorted(type_ for type_, _ in counts.most_common(NEW_TYPES)))
        return cls(tuple(s for s in corpus.train if len(s)), new, settings, folder)

    def teacher(self, old_types: int, *, grouped: bool = False) -> Path:
        """A model that knows this many other types, trained for one epoch; made once. ``grouped``: each type
        has a group of its own."""
        target = self.folder / f"teacher-{old_types}{'-groups' * grouped}"
        sentences = relabelled(self.sentences, self.new, old_types)
        return self._made(target, sentences, method="own-other" if grouped else "finetune", epochs=1)

    def model(self) -> Path:
        """A model that was trained on all types and finds most mentions; made once."""
        return self._made(self.folder / "model", self.sentences, method="finetune", epochs=3)

    def _made(self, target: Path, sentences: Sequence[Sentence], **settings: Any) -> Path:
        if not target.exists():
            types = tuple(sorted({span.type for s in sentences for span in s.spans}))
            tagger = ContinualTagger.from_pretrained(**self.settings, **settings)
            tagger.learn(Step(types=types, train=tuple(sentences)))
            tagger.save(target)
        return target

    def step(self, known: Sequence[str], sentences: int | None = None, dev: bool = False) -> Step:
        train = [sentence.only(self.new) for sentence in self.sentences[:sentences]]
        held = train[: len(train) // 5] if dev else []
        return Step(
            types=self.new,
            train=tuple(train),
            dev=tuple(held),
            known=tuple(known),
            index=1,
        )

    def learn(
        self,
        *,
        old_types: int = 4,
        grouped: bool = False,
        sentences: int | None = None,
        dev: bool = False,
        **settings: Any,
    ) -> tuple[ContinualTagger, Clock, Callable[[], Any]]:
        """A model ready to learn the new types: calling the last of the three does it."""
        tagger = ContinualTagger.load(self.teacher(old_types, grouped=grouped), **settings)
        step = self.step(tagger.types, sentences, dev)
        clock = Clock()
        return tagger, clock, lambda: tagger.learn(step, clock)


def relabelled(sentences: Sequence[Sentence], new: Sequence[str], wanted: int) -> list[Sentence]:
    """Old labels for a teacher with ``wanted`` types: real types first, then each split into several."""
    present = sorted({span.type for s in sentences for span in s.spans if span.type not in new})
    parts = -(-wanted // len(present))  # how many types each real one is split into
    chosen = [f"{type_}.{part}" for part in range(parts) for type_ in present][:wanted]
    result = []
    seen: Counter[str] = Counter()
    for sentence in sentences:
        spans = []
        for span in sentence.spans:
            name = f"{span.type}.{seen[span.type] % parts}"
            seen[span.type] += 1
            if name in chosen:
                spans.append(Span(span.start, span.end, name))
        result.append(replace(sentence, spans=tuple(spans)))
    return result
