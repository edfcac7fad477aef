"""The new model of a ``learn`` while it is made. Nothing of the user's is touched before it is complete.

It is made in ``TARGET.unfinished``, which is a model folder under another name. What can be on disk:

1. nothing, or a folder with no more than a lock;
2. the mark, then links to the steps so far, then finished folds of the estimate (see ``cross_validation``)
   and the state of the unfinished step (see ``run_step``);
3. the new step besides;
4. ``TARGET``, or ``TARGET.refused`` if the model was refused: the same folder renamed. In place: the step is
   added to the model, and the folder removed.

A call that is stopped in 2 or 3 goes on from the last epoch that was kept when it is made again; another call
takes the folder over. The mark holds the folder's name, so it is void in the moment in which the folder gets
its final one.
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
ESTIMATE = "estimate.json"  # folds of an estimate that are finished
_OURS = {"steps", SCORES_FOLDER, CURRENT, LOCK, UNFINISHED_STEP, ESTIMATE, _MARK}


class UnfinishedModel:
    """The folders of one ``learn``. ``out`` is None if the step is to be added to the model itself."""

    def __init__(self, model: str | Path, out: str | Path | None, in_place: bool) -> None:
        if (out is None) != in_place:
            raise ConfigError(
                "Both `out` and `in_place` were given." if in_place else "Where should the new model go?",
                remedy="Give `out=FOLDER` for a new model, or `in_place=True` to add the step to this one.",
            )
        ref = ModelRef.parse(model)
        if in_place and ref.step is not None:
            raise ConfigError(
                f"In place, a step is added after the current one, and step {ref.step} was named.",
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
                "The new model would be made in the folder of the model that it is learned from.",
                where=str(self.folder),
                remedy="Choose another `out`.",
            )
        self._refuse_foreign()

    def refuse_learned(self, call: str) -> None:
        """If this very call was stopped when its step was added to the model, it would be learned twice.

        ``call`` is the same for the same data and settings, and for no others.
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
            f"This was learned already: an earlier call was stopped after it had saved step {number}.",
            where=str(self.target),
            remedy="Nothing is left to do. The same call once more learns from this data again.",
        )

    @contextmanager
    def steps_so_far(self, tagger: ContinualTagger, call: str, first: Judgement | None) -> Iterator[None]:
        """Hold the folder, with the steps that the tagger comes from. A checkpoint becomes the first step.

        ``first``: how the model did before it learns this step. It is kept with its step.
        """
        with locked(self.folder):
            self._refuse_taken()  # by another call, whose lock this one has waited for
            self._refuse_foreign()
            saved, here = tagger.saved_step, ModelFolder(self.folder)
            if self._mark().get("call") != call:  # what the same call has scored is not scored again
                shutil.rmtree(here.path / SCORES_FOLDER, ignore_errors=True)
            self._write_mark(call=call)
            shutil.rmtree(here.steps_path, ignore_errors=True)  # quicker made again than compared
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
                # failed, not stopped: without a state to go on from there is nothing to keep
                with suppress(OSError, ModelError):  # what went wrong first is told
                    if here.names() == before and not (here.path / UNFINISHED_STEP).exists():
                        self._remove()
                raise

    def publish(self, accepted: bool) -> StoredStep:
        """Put the new model in its place, or aside; its new step as it is there."""
        step = ModelFolder(self.folder).step()
        if not accepted or self.source is None or self.out is not None:
            return self._rename(step, _aside(self.target) if not accepted else self.target)
        with locked(self.target, wait=PATIENCE):
            self.source.sweep()
            if self.source.step().hash != read_facts(step)["parent"]:  # what was learned is not lost
                kept = self._rename(step, _aside(self.target)).folder.parent.parent
                raise ModelError(
                    "The folder's current step is not the one that this model was learned from. The step "
                    f"that was learned is saved separately in {kept}.",
                    where=str(self.target),
                    remedy="Use that folder, or learn again from the model as it is now.",
                )
            self._write_mark(**{**self._mark(), "step": step.hash})
            merge_scores(ModelFolder(self.folder), self.source)
            added = self.source.add(lambda folder: link_files(step, folder, leave_out={SEAL}))
        with suppress(OSError):  # the step is saved, and the mark tells the next call so
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
        """What the folder says of itself; empty if it is not one of ours, or has its final name."""
        try:
            mark = json.loads((self.folder / _MARK).read_bytes())
        except (OSError, ValueError):
            return {}
        return mark if isinstance(mark, dict) and mark.get("folder") == self.folder.name else {}

    def _refuse_taken(self) -> None:
        if self.out is not None and (self.out.exists() or self.out.is_symlink()):
            raise ModelError(
                "There is something here already.",
                where=str(self.out),
                remedy="Choose a new folder for `out`.",
            )

    def _refuse_foreign(self) -> None:
        """What is in the way will be removed: it must be of our own making."""
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
                "The folder is needed for the unfinished step, but holds something else.",
                where=str(min(strange)),
                remedy="Move it away" + (", or choose another `out`." if self.out is not None else "."),
            )

    def _remove(self) -> None:
        """The mark goes last: stopped half-way, it still tells what the rest is."""
        ModelFolder(self.folder).sweep()
        for name in ("steps", SCORES_FOLDER):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        for name in (CURRENT, UNFINISHED_STEP, ESTIMATE):
            (self.folder / name).unlink(missing_ok=True)
        flush(self.folder)
        (self.folder / _MARK).unlink(missing_ok=True)
        with suppress(OSError):  # somebody waits for the lock, or has put something here
            (self.folder / LOCK).unlink()
            self.folder.rmdir()


def _aside(target: Path) -> Path:
    """TARGET.refused, or the first of TARGET.refused-2, TARGET.refused-3 ... that is not taken."""
    endings = (".refused" if number == 1 else f".refused-{number}" for number in itertools.count(1))
    paths = (target.with_name(f"{target.name}{ending}") for ending in endings)
    return next(path for path in paths if not path.exists())
