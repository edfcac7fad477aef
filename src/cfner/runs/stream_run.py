"""One run: a whole stream learned step by step, each step scored and saved; stopped runs go on."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from accelerate import PartialState
from accelerate.utils import parse_flag_from_env

from cfner.errors import ConfigError, ModelError
from cfner.evaluation.forgetting import StepMatrix
from cfner.evaluation.scores import Scores
from cfner.files.atomic import is_partial
from cfner.files.json_files import write_json_atomic
from cfner.files.lock import FILE as LOCK
from cfner.files.lock import locked
from cfner.runs.mentions import FILE as MENTIONS
from cfner.runs.mentions import mention_rows
from cfner.store.model_folder import ModelFolder
from cfner.store.step_files import SCORES, read_as, read_facts
from cfner.stream.manifest import settings_hash
from cfner.stream.slicing import mention_counts
from cfner.stream.stream import TaskStream
from cfner.tagger import ContinualTagger
from cfner.training.checkpoint import FILE as UNFINISHED
from cfner.training.config import TrainingConfig
from cfner.training.environment import other_threads, peak_memory
from cfner.training.progress import Progress, Silent

RUN = "run.json"
RESULTS = "results.json"


@dataclass(frozen=True)
class RunResult:
    """Scores after every step, and how to tell this run from another."""

    stream: TaskStream
    config: TrainingConfig
    method: str
    matrix: StepMatrix
    seconds: float
    hashes: dict[str, str]

    def to_json(self) -> dict[str, Any]:
        """F1 in percent; ``measured`` holds what depends on the machine."""
        m = self.matrix
        return {
            "method": self.method,
            "data": self.stream.corpus_name,
            "first": self.stream.first,
            "per_step": self.stream.per_step,
            "sampling": self.stream.sampling,
            "seed": self.config.seed,
            "steps": [
                {
                    "types": list(types),
                    "micro_f1": scores.micro_f1,
                    "macro_f1": scores.macro_f1,
                    "per_type": scores.f1_of,
                    "confusion": scores.confusions.to_json() if scores.confusions else None,
                }
                for types, scores in zip(self.stream.types_per_step, m.steps, strict=False)
            ],
            "mean_micro_f1": m.mean_micro,
            "mean_macro_f1": m.mean_macro,
            "last_micro_f1": m.last_micro,
            "last_macro_f1": m.last_macro,
            "forgetting": m.forgetting,
            "mean_forgetting": m.mean_forgetting,
            "confusion": last.to_json() if (last := m.steps[-1].confusions) else None,
            "slices": [
                {"sentences": len(part), "mentions": dict(sorted(mention_counts(part).items()))}
                for part in self.stream.slices
            ],
            "hashes": self.hashes,
            "measured": {"seconds": self.seconds, "peak_memory": peak_memory()},
        }


def run_stream(
    stream: TaskStream,
    config: TrainingConfig,
    out: str | Path | None,
    *,
    resume: bool = False,
    progress: Progress | None = None,
    keep_mentions: bool = False,
) -> tuple[RunResult, ContinualTagger]:
    """Learn every step in order. With ``out`` each finished step is saved there before the next begins.

    ``keep_mentions``: with each step goes what was found in each test sentence, so that methods can be
    compared sentence by sentence.
    """
    _check_test_data(stream)
    if out is None or not run_processes().is_main_process:
        return _run_stream(stream, config, out, resume, progress, keep_mentions)
    _refuse_other_content(ModelFolder(out))  # before as much as a lock is written there
    with locked(Path(out)):
        return _run_stream(stream, config, out, resume, progress, keep_mentions)


def _run_stream(
    stream: TaskStream,
    config: TrainingConfig,
    out: str | Path | None,
    resume: bool,
    progress: Progress | None,
    keep_mentions: bool,
) -> tuple[RunResult, ContinualTagger]:
    progress = progress or Silent()
    hashes = _hashes(stream, config)
    folder = ModelFolder(out) if out is not None else None
    matrix, tagger = StepMatrix(), None
    if folder is not None:
        processes = run_processes()
        if processes.is_main_process:
            tagger, matrix = _open(folder, hashes, stream, config, resume, progress)
        processes.wait_for_everyone()
        if not processes.is_main_process:  # the run that is there now is the one just opened
            tagger, matrix = _open(folder, hashes, stream, config, True, progress)
    tagger = tagger or ContinualTagger.from_config(config)
    started, done = time.perf_counter(), len(matrix.steps)
    for step in stream.steps[len(matrix.steps) :]:
        tagger.learn(step, progress, unfinished=folder.path if folder is not None else None)
        test = stream.test_up_to(step)
        scores = tagger.evaluate(test)
        matrix = matrix.with_step(scores)
        if folder is not None and tagger.accelerator.is_main_process:
            extras = {MENTIONS: mention_rows(test, scores.found)} if keep_mentions else None
            tagger.save(folder.path, scores, extras=extras)
            (folder.path / UNFINISHED).unlink(missing_ok=True)
        tagger.accelerator.wait_for_everyone()
    seconds = time.perf_counter() - started
    result = RunResult(stream, config, tagger.method.variant, matrix, seconds, hashes)
    finished_before = done == len(stream) and folder is not None and (folder.path / RESULTS).is_file()
    if folder is not None and tagger.accelerator.is_main_process and not finished_before:
        # what a run leaves that is killed after its last step, or while it writes its results
        (folder.path / UNFINISHED).unlink(missing_ok=True)
        folder.sweep()
        write_json_atomic(folder.path / RESULTS, {"runs": [result.to_json()]})
    return result, tagger


def run_processes() -> PartialState:
    """The processes of this run; asked before there is an Accelerator, which reads the same variable."""
    return PartialState(cpu=parse_flag_from_env("ACCELERATE_USE_CPU"))


def _check_test_data(stream: TaskStream) -> None:
    if not stream.test:
        raise ConfigError(
            f"'{stream.corpus_name}' has no test sentences, so no step can be scored.",
            remedy="Give a folder with a test file, or make one with 'cfner data split'.",
        )


def _refuse_other_content(folder: ModelFolder) -> None:
    if (folder.path / RUN).is_file() or not folder.path.is_dir():
        return
    # a run that was killed as it began leaves no more than these
    if any(item.name != LOCK and not is_partial(item) for item in folder.path.iterdir()):
        raise ModelError(
            "The folder is not empty and holds no run.",
            where=str(folder.path),
            remedy="Choose another folder with --out.",
        )


def begin_run(folder: ModelFolder, stream: TaskStream, config: TrainingConfig) -> None:
    """Write down what the run in this folder is to be, if that was not done before."""
    if (folder.path / RUN).is_file():
        return
    _refuse_other_content(folder)
    folder.path.mkdir(parents=True, exist_ok=True)
    folder.sweep()
    settings = {
        "hashes": _hashes(stream, config),
        "manifest": stream.manifest(),
        "config": config.model_dump(mode="json"),
    }
    write_json_atomic(folder.path / RUN, settings)


def _hashes(stream: TaskStream, config: TrainingConfig) -> dict[str, str]:
    return {"stream": stream.manifest()["hash"], "config": settings_hash(config.what_matters())}


def _open(
    folder: ModelFolder,
    hashes: dict[str, str],
    stream: TaskStream,
    config: TrainingConfig,
    resume: bool,
    progress: Progress,
) -> tuple[ContinualTagger | None, StepMatrix]:
    """Start a new run folder, or pick up the one that is there."""
    record = folder.path / RUN
    if not record.is_file():
        begin_run(folder, stream, config)
        return None, StepMatrix()
    if not resume:
        raise ModelError(
            "There is a run in this folder already.",
            where=str(folder.path),
            remedy="Continue it with --resume, or choose another folder with --out.",
        )
    saved = _saved_hashes(record)
    for part, meaning in (("stream", "data or its division into steps"), ("config", "settings")):
        if saved.get(part) != hashes[part]:
            raise ModelError(
                f"The run in this folder has other {meaning}.",
                where=str(folder.path),
                remedy=f"Resume with the same {meaning} (they are in {RUN}), or choose another folder.",
            )
    names = folder.names()
    _refuse_changed(folder, names, stream)
    matrix = StepMatrix()
    for name in names:
        matrix = matrix.with_step(read_as(folder.step(name), SCORES, Scores.from_json))
    if not names:
        return None, matrix
    progress.note(f"resuming after step {len(names)} of {len(stream)}")
    if not folder.exists() or folder.current_name() != names[-1]:
        # stopped between the step's rename and the pointer's
        progress.note(f"step {len(names)} was saved but not current; it is now")
        folder.point_to(names[-1])
    tagger = ContinualTagger.load(folder.path, **config.model_dump(exclude_unset=True))
    if tagger.record is not None:
        warning = other_threads(tagger.record.facts.get("versions", {}).get("threads"))
        if warning is not None:
            progress.note(warning)
    return tagger, matrix


def _refuse_changed(folder: ModelFolder, names: Sequence[str], stream: TaskStream) -> None:
    """A run that was renamed, extended or taken back is somebody's model now, and not gone on with."""
    for name, step in zip_longest(names, stream.steps[: len(names)]):
        facts = read_facts(folder.step(name))
        if step is None or facts["kind"] != "learn" or set(facts["types"]) != set(step.types):
            raise ModelError(
                f"Step {int(name)} ('{facts['name']}') is not of this run: the model was changed since.",
                where=str(folder.path),
                remedy="Run the stream anew with another --out.",
            )
    # a run that was killed may point to the last step but one; one that has ended does not
    pointed = names[-1:] if (folder.path / RESULTS).is_file() else names[-2:]
    if folder.exists() and folder.current_name() not in pointed:
        raise ModelError(
            f"The model was taken back to step {int(folder.current_name())} of {len(names)}.",
            where=str(folder.path),
            remedy=f"To go on, first undo that: cfner rollback {folder.path} {int(names[-1])}.",
        )


def _saved_hashes(record: Path) -> dict[str, str]:
    try:
        return dict(json.loads(record.read_text(encoding="utf-8"))["hashes"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(
            f"The record of the run is damaged: {error!r}.",
            where=str(record),
            remedy="Restore it from a copy, or choose another folder with --out.",
        ) from error
