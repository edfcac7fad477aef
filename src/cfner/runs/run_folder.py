"""The folder of a run over a stream: a model folder with ``run.json``, which describes the run."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import zip_longest
from pathlib import Path
from typing import Any

from accelerate import PartialState
from accelerate.utils import parse_flag_from_env

from cfner.errors import ModelError
from cfner.evaluation.forgetting import StepMatrix
from cfner.evaluation.scores import Scores
from cfner.files.json_files import write_json_atomic
from cfner.files.lock import FILE as LOCK
from cfner.files.lock import locked
from cfner.files.owned import foreign_items, is_free
from cfner.store.lineage import lineage
from cfner.store.link_steps import link_files
from cfner.store.model_folder import SEAL, ModelFolder
from cfner.store.step_files import SCORES, read_as
from cfner.stream.stream import TaskStream
from cfner.tagger import ContinualTagger
from cfner.training.config import TrainingConfig
from cfner.training.environment import other_threads
from cfner.training.progress import Progress
from cfner.training.unfinished_step import FILE as UNFINISHED_STEP

_log = logging.getLogger(__name__)

RUN = "run.json"
RESULTS = "results.json"
_NEEDED = ("setting", "order", "dropped_types", "sampling", "seed", "min_mentions", "steps", "hash")


def read_run(folder: Path) -> dict[str, Any]:
    """run.json: ``hashes``, ``manifest`` and ``config`` of a run."""
    record = folder / RUN
    try:
        run = json.loads(record.read_text(encoding="utf-8"))
        for key in _NEEDED:
            run["manifest"][key]
        run["hashes"]["stream"], run["hashes"]["config"]
        return dict(run)
    except FileNotFoundError:
        raise ModelError(
            "There is no run here.", where=str(record), remedy="Give a folder written by `train`."
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(
            f"The record of the run cannot be read: {error!r}.",
            where=str(record),
            remedy="Restore it from a copy, or train again into a different folder.",
        ) from error


class RunFolder:
    def __init__(self, path: str | Path, stream: TaskStream, config: TrainingConfig) -> None:
        self.path, self.stream, self.config = Path(path), stream, config
        self.model = ModelFolder(path)

    @contextmanager
    def opened(
        self, hashes: dict[str, str], resume: bool, first: Path | None, progress: Progress
    ) -> Iterator[tuple[ContinualTagger, StepMatrix]]:
        """Lock the folder; yields the tagger (a new one if there are no steps) and the scores so far.

        ``first``: a model folder with the first step, if several runs share it.
        """
        # checked before there is an Accelerator, which reads the same variable
        processes = PartialState(cpu=parse_flag_from_env("ACCELERATE_USE_CPU"))
        if not processes.is_main_process:
            processes.wait_for_everyone()
            yield self._saved(progress)
            return
        if not (self.path / RUN).is_file() and not is_free(self.path):  # before the lock file is written
            raise ModelError(
                "The folder is not empty and does not contain a run.",
                where=str(self.path),
                remedy="Choose a different folder with `out`.",
            )
        there_before, begun = self.path.exists(), (self.path / RUN).is_file()
        with locked(self.path):
            if begun:
                self._refuse_other(hashes, resume)
            else:
                self.model.sweep()
                manifest, settings = self.stream.manifest(), self.config.model_dump(mode="json")
                write_json_atomic(
                    self.path / RUN, {"hashes": hashes, "manifest": manifest, "config": settings}
                )
            try:
                self._complete(first)
                processes.wait_for_everyone()
                yield self._saved(progress)
            except Exception:
                if not begun:
                    with suppress(OSError, ModelError):  # report the first error
                        self._leave_nothing(there_before)
                raise

    def _leave_nothing(self, folder: bool) -> None:
        """Remove the record of a run that failed before anything was trained, so that the next call can start
        again. ``folder``: whether the folder existed before.
        """
        if foreign_items(self.path, {RUN}):  # a step, an unfinished step, or logs
            return
        for name in (RUN, LOCK):
            (self.path / name).unlink(missing_ok=True)
        if not folder:
            self.path.rmdir()  # fails if another process waits for the lock

    def _complete(self, first: Path | None) -> None:
        """Link the first step if there is none; finish a step that was saved but not made current."""
        names = self.model.names()
        if first is not None and not names:
            shared = ModelFolder(first).verified(1)
            self.model.add(lambda folder: link_files(shared, folder, leave_out={SEAL}))
        elif names and (not self.model.exists() or self.model.current_name() != names[-1]):
            self.model.point_to(names[-1])

    def _saved(self, progress: Progress) -> tuple[ContinualTagger, StepMatrix]:
        matrix = StepMatrix()
        for name in self.model.names():
            matrix = matrix.with_step(read_as(self.model.step(name), SCORES, Scores.from_json))
        if not matrix.steps:
            return ContinualTagger.from_config(self.config), matrix
        _log.info(f"resuming after step {len(matrix.steps)} of {len(self.stream)}")
        tagger = ContinualTagger.load(self.path, **self.config.model_dump(exclude_unset=True))
        trained_with = tagger.record.facts.get("versions", {}) if tagger.record is not None else {}
        if (warning := other_threads(trained_with.get("threads"))) is not None:
            _log.warning(warning)
        return tagger, matrix

    def finish(self, results: dict[str, Any], *, learned: bool) -> None:
        """Write the results, unless this run was finished before and nothing was learned now."""
        if learned or not (self.path / RESULTS).is_file():
            (self.path / UNFINISHED_STEP).unlink(missing_ok=True)
            self.model.sweep()
            write_json_atomic(self.path / RESULTS, results)

    def _refuse_other(self, hashes: dict[str, str], resume: bool) -> None:
        if not resume:
            raise ModelError(
                "There is already a run in this folder.",
                where=str(self.path),
                remedy="Continue it with `resume=True`, or choose a different folder with `out`.",
            )
        there = read_run(self.path)["hashes"]
        for part, meaning in (("stream", "data or its division into steps"), ("config", "settings")):
            if there[part] != hashes[part]:
                raise ModelError(
                    f"The run in this folder has different {meaning}.",
                    where=str(self.path),
                    remedy=f"Resume with the same {meaning} (see {RUN}), or choose a different folder.",
                )
        self._refuse_changed()

    def _refuse_changed(self) -> None:
        """Refuse to continue a run whose model was renamed, extended or rolled back since."""
        names = self.model.names()
        for there, step in zip_longest(lineage(self.path), self.stream.steps[: len(names)]):
            if step is None or there.kind != "learn" or set(there.types) != set(step.types):
                raise ModelError(
                    f"Step {there.number} ('{there.name}') is not part of this run: the model was changed.",
                    where=str(self.path),
                    remedy="Run the stream again with a different `out`.",
                )
        # a killed run may still point to the step before the last; a finished run does not
        pointed = names[-1:] if (self.path / RESULTS).is_file() else names[-2:]
        if self.model.exists() and self.model.current_name() not in pointed:
            raise ModelError(
                f"The model was rolled back to step {int(self.model.current_name())} of {len(names)}.",
                where=str(self.path),
                remedy=f"To continue, undo that first: `rollback({str(self.path)!r}, {int(names[-1])})`.",
            )
