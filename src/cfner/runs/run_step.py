"""Runs one step from beginning to end in a folder: for ``train``, ``learn`` and the jobs of a grid.

The folder is a model folder with the steps so far, locked by the caller. The unfinished step is saved in it
too, as one file that is replaced atomically between epochs. The file records the parent step and the data:
the same call resumes where an interrupted one was, and any other call starts at the first epoch. A step is
saved in one rename. If that did not happen, the next call finishes the training again.

A folder belongs to cfner if it has a mark: ``run.json`` (train, grid) or ``unfinished`` (learn). The mark is
the first file after the lock. A folder that has files but no mark is left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from cfner.evaluation.scores import Scores
from cfner.stream.sentence_set import SentenceSet
from cfner.stream.step import Step
from cfner.tagger import ContinualTagger
from cfner.training.progress import Progress
from cfner.training.record import StepRecord


@dataclass(frozen=True)
class Judgement:
    """What is saved with a step besides the model. ``extras`` are JSON files by name."""

    scores: Scores
    scored_on: SentenceSet | None = None  # None: it was not scored
    extras: Mapping[str, Any] = field(default_factory=dict)


Judged = TypeVar("Judged", bound=Judgement)


def run_step(
    folder: Path | None,
    tagger: ContinualTagger,
    step: Step,
    judge: Callable[[ContinualTagger], Judged],
    progress: Progress | None = None,
) -> tuple[StepRecord, Judged]:
    """Learn the step, or resume it; have the result judged; save both (without a folder: nothing)."""
    record = tagger.learn(step, progress, unfinished=folder)
    return record, judge_and_save(folder, tagger, judge)


def judge_and_save(
    folder: Path | None, tagger: ContinualTagger, judge: Callable[[ContinualTagger], Judged]
) -> Judged:
    """Judge and save, once the tagger has learned."""
    judgement = judge(tagger)
    if folder is not None and tagger.accelerator.is_main_process:
        scores = None if judgement.scored_on is None else judgement.scores
        tagger.save(folder, scores, scored_on=judgement.scored_on, extras=judgement.extras)
    tagger.accelerator.wait_for_everyone()
    return judgement
