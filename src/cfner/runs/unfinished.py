"""The new model of a ``learn`` in progress. None of the user's files change before it is complete.

It is built in ``TARGET.unfinished``, which is a model folder under a temporary name. Possible states on disk:

1. nothing, or a folder with only a lock;
2. the mark, then links to the steps so far, then finished folds of the estimate (see ``cross_validation``)
   and the state of the unfinished step (see ``run_step``);
3. the new step as well;
4. ``TARGET``, or ``TARGET.refused`` if the model was refused: the same folder renamed. In place: the step is
   added to the model, and the folder removed.

A call that is stopped in state 2 or 3 resumes from the last saved epoch when it is repeated; a different call
takes the folder over. The mark contains the folder's name, so it becomes invalid at the moment when the
folder gets its final name.
"""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from cfner.errors import ConfigError, ModelError
from cfner.files.atomic import flush, write_text_atomic, writing
from cfner.files.json_files import refuse_unusual
from cfner.files.lock import FILE as LOCK
from cfner.files.lock import PATIENCE, locked
from cfner.files.owned import foreign_items, is_free
from cfner.runs.run_step import Judgement
from cfner.store.link_steps import link_files, link_steps
from cfner.store.model_folder import CURRENT, SCORES_FOLDER, SEAL, ModelFolder, StoredStep, is_step_name
from cfner.store.open import ModelRef, is_model_folder
from cfner.store.series import add_scores, is_score_file, merge_scores
from cfner.store.step_files import read_facts
from cfner.tagger import ContinualTagger
from cfner.training.unfinished_step import FILE as UNFINISHED_STEP

_MARK = "unfinished"
ESTIMATE = "estimate.json"  # finished folds of an estimate
_OURS = {"steps", SCORES_FOLDER, CURRENT, LOCK, UNFINISHED_STEP, ESTIMATE, _MARK}


class UnfinishedModel:
    """The folders of one ``learn``. ``out`` is None if the step is to be added to the model itself."""

    def __init__(self, model: str | Path, out: str | Path | None, in_place: bool) -> None:
        if (out is None) != in_place:
            raise ConfigError(
                "Both `out` and `in_place` were given."
                if in_place
                else "No folder for the new model was given.",
                remedy="Give `out=FOLDER` for a new model, or `in_place=True` to add the step to this one.",
            )
        ref = ModelRef.parse(model)
        if in_place and ref.step is not None:
            raise ConfigError(
                f"In place, a step is added after the current one, but step {ref.step} was requested.",
                where=ref.source,
                remedy=f"Give `out=FOLDER`, or make that step current: `rollback(MODEL, {ref.step})`.",
            )
        model = ref.source
        if in_place and not is_model_folder(model):
            raise ConfigError(
                "A step cannot be added to a checkpoint in place: only a model folder has steps.",
                where=str(model),
                remedy="Give `out=FOLDER`; the checkpoint becomes the first step there.",
            )
        self.source = ModelFolder(model) if is_model_folder(model) else None
        self.out = None if out is None else Path(out)
        self.target = Path(model if out is None else out).resolve()
        self.folder = self.target.with_name(f"{self.target.name}.unfinished")
        self._refuse_taken()
        if self.folder.exists() and Path(model).exists() and self.folder.samefile(model):
            raise ModelError(
                "The new model would be written into the folder of the model that it is learned from.",
                where=str(self.folder),
                remedy="Choose a different `out`.",
            )
        self._refuse_foreign()

    def refuse_learned(self, call: str) -> None:
        """Refuse a call that was stopped just after its step was added to the model: it would learn it twice.

        ``call`` is the hash of the data and settings.
        """
        if self.out is not None or self.source is None or self._mark().get("call") != call:
            return
        with locked(self.folder):
            saved = self._mark().get("step")
            steps = {self.source.step(name).hash: name for name in self.source.names()}
            if saved not in steps:
                return
            number = int(steps[saved])
            with writing(self.folder):
                self._remove()
        raise ModelError(
            f"This step is already learned: an earlier call was stopped after it had saved step {number}.",
            where=str(self.target),
            remedy="There is nothing to do. The same call again learns from this data a second time.",
        )

    @contextmanager
    def steps_so_far(self, tagger: ContinualTagger, call: str, first: Judgement | None) -> Iterator[None]:
        """Lock the folder, with the steps that the tagger comes from. A checkpoint becomes the first step.

        ``first``: the scores of the model before it learns this step. They are saved with its step.
        """
        with locked(self.folder):
            self._refuse_taken()  # by another call, whose lock this one waited for
            self._refuse_foreign()
            saved, here = tagger.saved_step, ModelFolder(self.folder)
            if self._mark().get("call") != call:  # scores of the same call are kept
                shutil.rmtree(here.path / SCORES_FOLDER, ignore_errors=True)
            self._write_mark(call=call)
            shutil.rmtree(here.steps_path, ignore_errors=True)  # linking again is faster than comparing
            (here.path / CURRENT).unlink(missing_ok=True)
            before: list[str] = []
            try:
                if self.source is None or saved is None:
                    scores, scored_on = (None, None) if first is None else (first.scores, first.scored_on)
                    tagger.save(here.path, scores, scored_on=scored_on)
                else:
                    link_steps(self.source, here)
                    before = here.names()
                    merge_scores(self.source, here)
                    if first is not None and first.scored_on is not None:
                        add_scores(here, first.scored_on, {saved.hash: first.scores})
                    here.point_to(saved.name)
                before = here.names()
                yield
            except Exception:
                # an error, not an interrupt: without a saved epoch there is nothing to resume
                with suppress(OSError, ModelError):  # report the first error
                    if here.names() == before and not (here.path / UNFINISHED_STEP).exists():
                        self._remove()
                raise

    def publish(self, accepted: bool) -> StoredStep:
        """Move the new model to its final folder, or to TARGET.refused; returns its new step there."""
        step = ModelFolder(self.folder).step()
        if not accepted or self.source is None or self.out is not None:
            return self._rename(step, _aside(self.target) if not accepted else self.target)
        with locked(self.target, wait=PATIENCE):
            self.source.sweep()
            if self.source.step().hash != read_facts(step)["parent"]:  # keep the learned step
                kept = self._rename(step, _aside(self.target)).folder.parent.parent
                raise ModelError(
                    "The folder's current step is not the one that this model was learned from. The learned "
                    f"step is saved separately in {kept}.",
                    where=str(self.target),
                    remedy="Use that folder, or learn again from the model as it is now.",
                )
            self._write_mark(**{**self._mark(), "step": step.hash})
            merge_scores(ModelFolder(self.folder), self.source)
            added = self.source.add(lambda folder: link_files(step, folder, leave_out={SEAL}))
        with suppress(OSError):  # the step is saved, and the mark shows that to the next call
            self._remove()
        return added

    def _rename(self, step: StoredStep, target: Path) -> StoredStep:
        with writing(target):
            self.folder.rename(target)
            flush(target.parent)
        for name in (UNFINISHED_STEP, ESTIMATE, _MARK):
            (target / name).unlink(missing_ok=True)
        return ModelFolder(target).step(step.name)

    def _write_mark(self, **said: Any) -> None:
        write_text_atomic(self.folder / _MARK, json.dumps({**said, "folder": self.folder.name}))

    def _mark(self) -> dict[str, Any]:
        """The mark in the folder; empty if the folder is not cfner's, or has its final name."""
        try:
            mark = json.loads((self.folder / _MARK).read_bytes())
        except (OSError, ValueError):
            return {}
        return mark if isinstance(mark, dict) and mark.get("folder") == self.folder.name else {}

    def _refuse_taken(self) -> None:
        if self.out is not None and (self.out.exists() or self.out.is_symlink()):
            raise ModelError(
                "The folder already exists.",
                where=str(self.out),
                remedy="Choose a new folder for `out`.",
            )

    def _refuse_foreign(self) -> None:
        """The folder will be replaced, so it must be one that cfner made."""
        steps, scores = self.folder / "steps", self.folder / SCORES_FOLDER
        for place in (self.folder, steps, scores):
            refuse_unusual(place, a_folder=True)
        if self._mark():
            strange = foreign_items(self.folder, _OURS)
            strange += [item for item in foreign_items(steps) if not is_step_name(item.name)]
            strange += [item for item in foreign_items(scores) if not is_score_file(item.name)]
        else:
            strange = [] if is_free(self.folder) else [self.folder]
        if strange:
            raise ModelError(
                "The folder is needed for the unfinished step, but contains something else.",
                where=str(min(strange)),
                remedy="Move it away" + (", or choose a different `out`." if self.out is not None else "."),
            )

    def _remove(self) -> None:
        """The mark is removed last, so that an interrupted removal can be continued."""
        ModelFolder(self.folder).sweep()
        for name in ("steps", SCORES_FOLDER):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        for name in (CURRENT, UNFINISHED_STEP, ESTIMATE):
            (self.folder / name).unlink(missing_ok=True)
        flush(self.folder)
        (self.folder / _MARK).unlink(missing_ok=True)
        with suppress(OSError):  # another process waits for the lock, or has written something here
            (self.folder / LOCK).unlink()
            self.folder.rmdir()


def _aside(target: Path) -> Path:
    """TARGET.refused, or the first of TARGET.refused-2, TARGET.refused-3 ... that does not exist."""
    endings = (".refused" if number == 1 else f".refused-{number}" for number in itertools.count(1))
    paths = (target.with_name(f"{target.name}{ending}") for ending in endings)
    return next(path for path in paths if not path.exists())
