"""The cost of a step: disk space, and the time to tag a sentence from then on."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cfner.corpus.sentence import Sentence, Span
from cfner.store.link_steps import own_bytes
from cfner.store.model_folder import ModelFolder, StoredStep
from cfner.tagger import ContinualTagger


@dataclass(frozen=True)
class Cost:
    """``disk``: bytes that the step added. ``before``, ``after``: seconds per sentence."""

    disk: int
    before: float
    after: float

    def to_json(self) -> dict[str, Any]:
        return {
            "disk_bytes": self.disk,
            "seconds_per_sentence": self.after,
            "seconds_per_sentence_before": self.before,
        }


def timed_find(
    tagger: ContinualTagger, sentences: Sequence[Sentence]
) -> tuple[tuple[tuple[Span, ...], ...], float]:
    """(the mentions in each of the sentences, seconds per sentence)."""
    start = time.perf_counter()
    found = tagger.find(sentences)
    return found, (time.perf_counter() - start) / max(1, len(sentences))


def disk_of(step: StoredStep) -> int:
    """Bytes that a step of a model folder uses, without files that it shares with earlier steps."""
    return own_bytes(ModelFolder(step.folder.parent.parent))[step.name]
