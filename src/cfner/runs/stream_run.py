"""One run: learns a complete stream step by step, scores and saves each step, and resumes stopped runs."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cfner.corpus.sentence import mention_counts
from cfner.errors import ConfigError
from cfner.evaluation.forgetting import StepMatrix
from cfner.network.device import choose_device
from cfner.runs.mentions import FILE as MENTIONS
from cfner.runs.mentions import mention_rows
from cfner.runs.run_folder import RunFolder
from cfner.runs.run_step import Judgement, run_step
from cfner.stream.manifest import settings_hash
from cfner.stream.step import Step
from cfner.stream.stream import TaskStream
from cfner.tagger import ContinualTagger
from cfner.training.config import TrainingConfig
from cfner.training.environment import peak_memory, precision_used
from cfner.training.progress import Progress, Silent

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunResult:
    """Scores after every step, and what identifies this run."""

    stream: TaskStream
    config: TrainingConfig
    method: str
    matrix: StepMatrix
    seconds: float
    hashes: dict[str, str]

    def __repr__(self) -> str:
        scores = ", ".join(f"{f1:.1f}" for f1 in self.matrix.micro)
        return f"RunResult({self.method} on {self.stream.corpus_name}: micro F1 after each step {scores})"

    def to_json(self) -> dict[str, Any]:
        """F1 in percent; ``measured`` has the figures that depend on the machine."""
        figures, types = self.matrix.to_json(), self.stream.types_per_step
        return {
            "method": self.method,
            "data": self.stream.corpus_name,
            "first": self.stream.first,
            "per_step": self.stream.per_step,
            "sampling": self.stream.sampling,
            "seed": self.config.seed,
            **figures,
            "steps": [{"types": list(t), **row} for t, row in zip(types, figures["steps"], strict=False)],
            "slices": [
                {"sentences": len(part), "mentions": dict(sorted(mention_counts(part).items()))}
                for part in self.stream.slices
            ],
            "dropped_types": dict(self.stream.dropped_types),
            "left_out_types": list(self.stream.left_out_types),
            "leftover_sentences": self.stream.leftover,
            "hashes": self.hashes,
            "measured": {
                "seconds": self.seconds,
                "peak_memory": peak_memory(),
                "device": str(choose_device(self.config.device)),
                "precision": precision_used(self.config),
            },
        }


@dataclass(frozen=True)
class PlannedRun:
    """What ``train`` would do: the steps and the settings."""

    stream: TaskStream
    config: TrainingConfig


def run_stream(
    stream: TaskStream,
    config: TrainingConfig,
    out: str | Path | None,
    *,
    resume: bool = False,
    progress: Progress | None = None,
    keep_mentions: bool = False,
    first: Path | None = None,
) -> tuple[RunResult, ContinualTagger]:
    """Learn every step in order. With ``out`` each finished step is saved there before the next begins.

    ``keep_mentions``: save the mentions found in each test sentence with each step, so that methods can be
    compared sentence by sentence. ``first``: a model folder whose first step is the first of this run.
    """
    if not stream.test:
        raise ConfigError(
            f"'{stream.corpus_name}' has no test sentences, so no step can be scored.",
            remedy="Give data with a test split, or divide it with `Corpus.split`.",
        )
    progress = progress or Silent()
    for line in stream.left_out():
        _log.warning(f"Note: {line}.")
    hashes = {"stream": stream.manifest()["hash"], "config": settings_hash(config.what_matters())}
    folder = None if out is None else RunFolder(out, stream, config)
    opened = (
        nullcontext((ContinualTagger.from_config(config), StepMatrix()))
        if folder is None
        else folder.opened(hashes, resume, first, progress)
    )
    with opened as (tagger, before):
        started, matrix = time.perf_counter(), before
        left = stream.steps[len(before.steps) :]
        for step in left:
            judge = _judge(stream, step, keep_mentions)
            _, judged = run_step(None if folder is None else folder.path, tagger, step, judge, progress)
            matrix = matrix.with_step(judged.scores)
        seconds = time.perf_counter() - started
        result = RunResult(stream, config, tagger.method.variant, matrix, seconds, hashes)
        if folder is not None and tagger.accelerator.is_main_process:
            folder.finish({"runs": [result.to_json()]}, learned=bool(left))
    return result, tagger


def _judge(stream: TaskStream, step: Step, keep_mentions: bool) -> Callable[[ContinualTagger], Judgement]:
    """Scores on the test data of all types learned so far."""

    def judge(tagger: ContinualTagger) -> Judgement:
        test = stream.test_up_to(step)
        scores = tagger.evaluate(test)
        extras = {MENTIONS: mention_rows(test, scores.found)} if keep_mentions else {}
        return Judgement(scores, stream.test_set, extras)

    return judge
