"""One step from beginning to end in a folder: for ``train``, ``learn`` and the jobs of a grid.

The folder is a model folder that holds the steps so far, locked by whoever calls. The unfinished step lives
in it too, as one file that is replaced atomically between epochs. It names what it was trained from and on:
the same call goes on where an interrupted one was, any other call begins at the first epoch. A step is saved
in one rename. Before that it does not count: it is learned to its end again.

A folder is ours if it has a mark that says so: ``run.json`` (train, grid) or ``unfinished`` (learn). The mark
is written before anything else but the lock. A folder without one that holds something is left alone.
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
    """Learn the step, or go on with it; have the result judged; save both (without a folder: nothing)."""
    record = tagger.learn(step, progress, unfinished=folder)
    return record, judge_and_save(folder, tagger, judge)


def judge_and_save(
    folder: Path | None, tagger: ContinualTagger, judge: Callable[[ContinualTagger], Judged]
) -> Judged:
    """The rest of it, when the tagger has learned."""
    judgement = judge(tagger)
    if folder is not None and tagger.accelerator.is_main_process:
        scores = None if judgement.scored_on is None else judgement.scores
        tagger.save(folder, scores, scored_on=judgement.scored_on, extras=judgement.extras)
    tagger.accelerator.wait_for_everyone()
    return judgement
