"""What the Other class hides: the two curves of the paper's first figure.

All slices so far are kept and trained on together. "none": each slice carries the labels of its own step
alone, so that old types are O in new slices and new types are O in old ones. "current": the current slice
also carries the true labels of all types learned so far. The difference is what labels hidden in O cost.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from cfner.corpus.sentence import Sentence
from cfner.stream.manifest import settings_hash
from cfner.stream.stream import Step, TaskStream


@dataclass(frozen=True, eq=False)
class AccumulatedStream(TaskStream):
    """A stream whose steps hand out all slices so far; every type so far is labelled somewhere in them."""

    labels: str = "none"

    @classmethod
    def of(cls, stream: TaskStream, labels: str) -> AccumulatedStream:
        return cls(**{f.name: getattr(stream, f.name) for f in fields(TaskStream)}, labels=labels)

    def manifest(self) -> dict[str, Any]:
        plain = super().manifest()
        return {**plain, "labels": self.labels, "hash": settings_hash({plain["hash"]: self.labels})}

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        return tuple(self._step(index) for index in range(len(self)))

    def _step(self, index: int) -> Step:
        so_far = tuple(type_ for group in self.types_per_step[: index + 1] for type_ in group)
        kept: list[Sentence] = []
        for number, part in enumerate(self.slices[: index + 1]):
            full = self.labels == "current" and number == index
            labelled = so_far if full else self.types_per_step[number]
            kept += [sentence.only(labelled) for sentence in part]
        return Step(
            types=so_far,
            train=tuple(kept),
            dev=tuple(sentence.only(so_far) for sentence in self.dev),
            index=index,
            name=f"step {index + 1}",
            _slices=self.slices[: index + 1],
            _dev=self.dev,
        )
