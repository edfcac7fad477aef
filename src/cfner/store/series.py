"""Series of scores: each step's scores on one set of sentences. The only reader of stored scores.

A step is sealed with the scores that were measured when it was saved. Scores measured later are saved beside
the steps, one file for each set of sentences:

    MODEL/scores/<first 16 digits of the set's hash>.json
        {"set": {...}, "steps": {hash of a step: scores}}

These files are replaced atomically by the holder of the folder's lock. They are not sealed, so they are
validated when they are read. Scores of steps that are not in the folder are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cfner.errors import CfnerError, ModelError
from cfner.evaluation.measured import Measured
from cfner.evaluation.scores import Scores
from cfner.files.json_files import read_json, refuse_unusual, write_json_atomic
from cfner.store.lineage import LineageStep
from cfner.store.model_folder import SCORES_FOLDER, ModelFolder
from cfner.store.step_files import in_words
from cfner.stream.sentence_set import SentenceSet

_NAME = re.compile(r"[0-9a-f]{16}\.json")


@dataclass(frozen=True)
class Series:
    """The scores of steps on one set of sentences, by the steps' numbers.

    ``on`` is None if the sentences are not recorded. The series then has one step, comparable with no other.
    """

    on: SentenceSet | None
    scores: Mapping[int, Scores]
    label: str

    @property
    def _rank(self) -> tuple[Any, ...]:
        if self.on is None:
            return (False, max(self.scores))
        figures = sum(len(scores.types) for scores in self.scores.values())
        return (True, len(self.scores), max(self.scores), figures, self.on.sentences, self.on.hash)


def series_of(folder: ModelFolder, steps: Sequence[LineageStep]) -> list[Series]:
    """All series of these steps. First the one that covers most of them; among equals the one with the latest
    step, then the one with most figures, then the one on most sentences.
    """
    sealed = {(step.number, step.measured.on): step.measured for step in steps if step.measured is not None}
    found: dict[SentenceSet, dict[int, Measured]] = {}
    for file in score_files(folder):
        on, later = read_scores(file)
        for step in steps:
            if step.hash in later:
                found.setdefault(on, {})[step.number] = Measured(_of_known(later[step.hash], step, file), on)
    alone = []
    for (number, named), measured in sealed.items():  # sealed scores take precedence
        if named is None:
            alone.append(Series(None, {number: measured.scores}, measured.label))
        else:
            found.setdefault(named, {})[number] = measured
    series = [
        Series(on, {number: each[number].comparable() for number in sorted(each)}, on.label)
        for on, each in found.items()
    ]
    return sorted([*series, *alone], key=lambda one: one._rank, reverse=True)


def series_for(series: Sequence[Series], step: int) -> list[Series]:
    """The series with scores of this step. First the one that covers most of its types."""
    there = [one for one in series if step in one.scores]
    return sorted(there, key=lambda one: (one.on is not None, len(one.scores[step].types)), reverse=True)


def score_files(folder: ModelFolder) -> list[Path]:
    """The files of scores measured after a step was saved."""
    place = folder.path / SCORES_FOLDER
    refuse_unusual(place, a_folder=True)
    if not place.is_dir():
        return []
    return sorted(file for file in place.iterdir() if is_score_file(file.name))


def is_score_file(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def read_scores(file: Path) -> tuple[SentenceSet, dict[str, Scores]]:
    """The set of sentences, and the scores by the hash of the step."""
    try:
        content = read_json(file)
        on = SentenceSet.from_json(content["set"])
        if file.stem != on.short_hash:
            raise ValueError("its name is that of a different set of sentences")
        return on, {str(step): Scores.from_json(scores) for step, scores in content["steps"].items()}
    except (CfnerError, KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise _damaged(in_words(error), file) from error


def add_scores(folder: ModelFolder, on: SentenceSet, scores: Mapping[str, Scores]) -> None:
    """Add scores by the steps' hashes to those that exist. Only for the holder of the lock."""
    if not scores:
        return
    file = folder.path / SCORES_FOLDER / f"{on.short_hash}.json"
    refuse_unusual(file.parent, a_folder=True)
    named, before = read_scores(file) if file.is_file() else (on, {})
    if named != on:  # the first 16 digits are equal, but it is a different set
        raise _damaged("it is for different sentences.", file)
    kept = {step: each.to_json() for step, each in {**before, **scores}.items()}
    write_json_atomic(file, {"set": named.to_json(), "steps": kept})


def merge_scores(source: ModelFolder, target: ModelFolder) -> None:
    """Copy the scores of steps that both folders have. Only for the holder of the target's lock."""
    files = score_files(source)
    there = {target.step(name).hash for name in target.names()} if files else set()
    for file in files:
        on, scores = read_scores(file)
        add_scores(target, on, {step: each for step, each in scores.items() if step in there})


def _of_known(scores: Scores, step: LineageStep, file: Path) -> Scores:
    if unknown := sorted(set(scores.counts) - set(step.known)):
        raise _damaged(f"step {step.number} does not know the type '{unknown[0]}'.", file)
    return scores


def _damaged(what: str, file: Path) -> ModelError:
    return ModelError(
        f"The file of scores is damaged: {what}",
        where=str(file),
        remedy="Delete it; `evaluate(MODEL, DATA, all_steps=True, save=True)` measures again.",
    )
