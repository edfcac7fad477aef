"""What the Other class hides: the two curves of the paper's first figure.

All slices so far are kept and trained on together. "none": each slice has the labels of its own step alone,
so old types are O in new slices and new types are O in old ones. "current": the current slice also has the
true labels of all types learned so far. The difference is the cost of labels hidden in O.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

from cfner.stream.manifest import settings_hash
from cfner.stream.step import Step
from cfner.stream.stream import TaskStream


@dataclass(frozen=True, eq=False)
class AccumulatedStream(TaskStream):
    """A stream whose steps contain all slices so far; every type so far is labelled somewhere in them."""

    labels: str = "none"

    @classmethod
    def of(cls, stream: TaskStream, labels: str) -> AccumulatedStream:
        return cls(**{f.name: getattr(stream, f.name) for f in fields(TaskStream)}, labels=labels)

    def manifest(self) -> dict[str, Any]:
        plain = super().manifest()
        return {**plain, "labels": self.labels, "hash": settings_hash({plain["hash"]: self.labels})}

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        return tuple(self._accumulated(step) for step in super().steps)

    def _accumulated(self, step: Step) -> Step:
        so_far = step.types_so_far
        labelled = [*self.types_per_step[: step.index], so_far if self.labels == "current" else step.types]
        train = tuple(s.only(types) for types, part in zip(labelled, self.slices, strict=False) for s in part)
        dev = tuple(sentence.only(so_far) for sentence in self.dev)
        return replace(step, types=so_far, known=(), train=train, dev=dev)
