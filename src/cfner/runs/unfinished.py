"""Where a new model is made, and where it goes: nothing of the user's is touched before it is whole.

While a step is learned it lives in ``OUT.unfinished`` (an interrupted one goes on from there). A folder of
that name that does not say that it was made so is somebody's, whatever is in it. A model that the guard
refused is kept as ``OUT.refused``.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from cfner.errors import ConfigError, ModelError
from cfner.files.atomic import PARTIAL, flush, flush_tree, is_partial, write_text_atomic, writing
from cfner.files.json_files import refuse_unusual
from cfner.files.lock import FILE as LOCK
from cfner.files.lock import locked
from cfner.store.model_folder import CURRENT, ModelFolder, is_step_name
from cfner.store.open import is_model_folder
from cfner.store.save import as_stored
from cfner.store.step_files import read_facts
from cfner.stream.manifest import settings_hash
from cfner.tagger import ContinualTagger
from cfner.training.checkpoint import FILE as UNFINISHED_STEP

_SAVING = "saving"  # names the step that is being added in place, and the call that learned it
# Holds the folder's name, so it is void in the moment in which the folder gets its final one.
_MARK = "unfinished"
_OURS = {"steps", CURRENT, LOCK, UNFINISHED_STEP, _SAVING, _MARK}


class Workplace:
    """The folders of one ``learn``. ``out`` is None when the step is added to the model itself."""

    def __init__(self, model: str | Path, out: Path | None) -> None:
        self.model = model
        self.out = out
        self.call = ""
        target = (out if out is not None else Path(model)).resolve()
        self.unfinished = target.with_name(f"{target.name}.unfinished")
        self.aside = _free(target.with_name(f"{target.name}.refused"))

    @classmethod
    def choose(cls, model: str | Path, out: str | Path | None, in_place: bool) -> Workplace:
        if (out is None) != in_place:
            raise ConfigError(
                "Both --out and --in-place were given." if in_place else "Where should the new model go?",
                remedy="Give --out FOLDER for a new model, or --in-place to add the step to this one.",
            )
        if in_place and not is_model_folder(model):
            raise ConfigError(
                "A step cannot be added to a checkpoint in place: only a model folder has steps.",
                where=str(model),
                remedy="Give --out FOLDER; the checkpoint becomes the first step there.",
            )
        place = cls(model, None if out is None else Path(out))
        place._refuse_taken()
        place._refuse_source()
        place._refuse_unlocked()
        return place

    def _refuse_taken(self) -> None:
        if self.out is not None and (self.out.exists() or self.out.is_symlink()):
            raise ModelError(
                "There is something here already.",
                where=str(self.out),
                remedy="Choose a new folder for --out.",
            )

    def _refuse_source(self) -> None:
        source = Path(self.model)
        if self.unfinished.exists() and source.exists() and self.unfinished.samefile(source):
            raise ModelError(
                "The new model would be made in the folder of the model that it is learned from.",
                where=str(self.unfinished),
                remedy="Choose another --out.",
            )

    def _refuse_unlocked(self) -> None:
        """A folder of ours has a lock before it has anything else. In another one none is made."""
        refuse_unusual(self.unfinished, a_folder=True)
        inside = {path.name for path in _items(self.unfinished)}
        if inside and LOCK not in inside and not _is_marked(self.unfinished):
            raise self._something_else(self.unfinished)

    def begin(self, call: str) -> None:
        """Refuse a call that was stopped when its step was saved, and its folder not yet removed: the step
        would be learned twice. ``call`` is the same for the same data and settings, and for no others.
        """
        self.call = call
        if self.out is not None or not (self.unfinished / _SAVING).is_file():
            return
        with locked(self.unfinished):
            self._refuse_strange(ModelFolder(self.unfinished))
            done = self._saved_before()
            if done is None:
                return
            with writing(self.unfinished):
                _remove(self.unfinished)
        raise ModelError(
            f"This was learned already: an earlier call was stopped after it had saved step {int(done)}.",
            where=str(self.model),
            remedy="Nothing is left to do. The same call once more learns from this data again.",
        )

    def _saved_before(self) -> str | None:
        """The step that this very call has saved, whatever was added or made current since."""
        note = self.unfinished / _SAVING
        noted = note.read_bytes() if note.is_file() else b""
        model = ModelFolder(self.model)
        for name in reversed(model.names()):
            if self._note(read_facts(model.step(name))).encode() == noted:
                return name
        return None

    def _note(self, facts: Mapping[str, Any]) -> str:
        return settings_hash({"call": self.call, "step": facts})

    def start(
        self, tagger: ContinualTagger, settings: Mapping[str, Any], what: Mapping[str, Any]
    ) -> ContinualTagger:
        """Put the steps so far into the unfinished folder; the tagger as it goes on from there.

        A checkpoint becomes the first step, saved with ``what``. What an interrupted ``learn`` left
        there is used again.
        """
        here = ModelFolder(self.unfinished)
        self._refuse_taken()  # by another call, whose lock this one has waited for
        self._refuse_strange(here)
        write_text_atomic(here.path / _MARK, _mark_of(here.path))
        if self.out is None:
            (here.path / _SAVING).unlink(missing_ok=True)  # of a step that was not saved, or another call's
            return tagger
        if not here.exists() and here.steps_path.is_dir():
            shutil.rmtree(here.steps_path)  # stopped before even the steps so far were there
        if is_model_folder(self.model):
            source = ModelFolder(self.model)
            if not here.exists():
                _copy_steps(source, here)
            elif here.step().hash != source.step().hash:
                self._take_back(here, source)
            return tagger
        if here.exists():
            first = here.names()[0]
            left = ContinualTagger.load(here.path, int(first), **settings)
            if not _same_weights(tagger, left):
                raise self._left_by_another()
            _keep_only(here, {first}, first)
            return left
        tagger.save(here.path, **what)
        return tagger

    def _refuse_strange(self, here: ModelFolder) -> None:
        """What is in the way of an unfinished step is going to be removed: it must be of our own making."""
        refuse_unusual(here.path, a_folder=True)
        refuse_unusual(here.steps_path, a_folder=True)
        items = [item for item in _items(here.path) if not is_partial(item)]
        if not _is_marked(here.path) and any(item.name != LOCK for item in items):
            raise self._something_else(here.path)
        strange = [item for item in items if item.name not in _OURS]
        strange += [
            item
            for item in _items(here.steps_path)
            if not (is_step_name(item.name) or item.name.startswith(PARTIAL))
        ]
        if strange:
            raise self._something_else(min(strange))
        if self.out is None and is_model_folder(self.model):
            ours = {ModelFolder(self.model).step(name).hash for name in ModelFolder(self.model).names()}
            for step in map(here.step, here.names()):  # of a refused step that was about to be put aside
                if step.hash not in ours and read_facts(step)["parent"] not in ours:
                    raise self._left_by_another()

    def _something_else(self, where: Path) -> ModelError:
        return ModelError(
            "The folder is needed for the unfinished step, but holds something else.",
            where=str(where),
            remedy="Move it away" + (", or choose another --out." if self.out is not None else "."),
        )

    def _take_back(self, here: ModelFolder, source: ModelFolder) -> None:
        """Stopped when the step was saved but not yet in its place: nobody was told, so learn it anew."""
        known = {source.step(name).hash: name for name in source.names()}
        if here.step().hash in known or read_facts(here.step())["parent"] != source.step().hash:
            raise self._left_by_another()
        _keep_only(here, {n for n in here.names() if here.step(n).hash in known}, source.current_name())

    def _left_by_another(self) -> ModelError:
        return ModelError(
            "An interrupted 'learn' from another model left this folder.",
            where=str(self.unfinished),
            remedy="Remove it if it is not needed, or move it away.",
        )

    def accept(self, tagger: ContinualTagger, what: Mapping[str, Any]) -> Path:
        """Save the learned step and put the model in its place."""
        if self.out is not None:
            return self._move(tagger, what, self.out)
        facts = (
            {} if tagger.record is None else as_stored(tagger.record.to_json(tagger.parent), tagger.parent)
        )
        write_text_atomic(self.unfinished / _SAVING, self._note(facts))
        try:
            tagger.save(self.model, **what)
        except ModelError as error:  # somebody changed the model meanwhile: what was learned is not lost
            kept = self.refuse(tagger, what)
            raise ModelError(
                f"{error.what} The step that was learned is kept aside in {kept}.",
                where=error.where,
                remedy="Use that folder, or learn again from the model as it is now.",
            ) from error
        with suppress(OSError):  # the step is saved, and what stays here tells the next call so
            _remove(self.unfinished)
        return Path(self.model)

    def refuse(self, tagger: ContinualTagger, what: Mapping[str, Any]) -> Path:
        """Keep the refused model aside, whole, so that it can be looked at."""
        if self.out is None:
            aside = ModelFolder(self.unfinished)
            (aside.path / _SAVING).unlink(missing_ok=True)
            shutil.rmtree(aside.steps_path, ignore_errors=True)
            _copy_steps(ModelFolder(self.model), aside, tagger.parent)
        return self._move(tagger, what, self.aside)

    def _move(self, tagger: ContinualTagger, what: Mapping[str, Any], target: Path) -> Path:
        tagger.save(self.unfinished, **what)
        with writing(target):
            self.unfinished.rename(target)
            flush(target.parent)
        # only now: stopped before, the same call goes on from its last epoch
        for name in (UNFINISHED_STEP, _MARK):
            (target / name).unlink(missing_ok=True)
        return target


def _mark_of(folder: Path) -> str:
    return json.dumps(folder.name)  # in ASCII, whatever the name is made of


def _is_marked(folder: Path) -> bool:
    """Whether ``learn`` made it, and has not yet given it its final name."""
    mark = folder / _MARK
    return mark.is_file() and mark.read_bytes() == _mark_of(folder).encode()


def _items(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except FileNotFoundError:
        return []


def _remove(folder: Path) -> None:
    """Only what is ours. The notes go last: stopped half-way, they still tell what the rest is."""
    for item in _items(folder):
        if item.name == "steps":
            shutil.rmtree(item)
        elif item.name in {CURRENT, UNFINISHED_STEP} or is_partial(item):
            item.unlink()
    for name in (_SAVING, _MARK):
        flush(folder)
        (folder / name).unlink(missing_ok=True)
    with suppress(OSError):  # somebody waits for the lock, or has put something here
        (folder / LOCK).unlink()
        folder.rmdir()


def _copy_steps(source: ModelFolder, target: ModelFolder, current: str | None = None) -> None:
    """All steps; the current one is the one with the hash ``current``, or the source's."""
    with writing(target.path):
        shutil.copytree(source.steps_path, target.steps_path, ignore=_left_out)
        flush_tree(target.steps_path)
    steps = {source.step(name).hash: name for name in source.names()}
    target.point_to(source.current_name() if current is None else steps[current])


def _left_out(folder: str, names: Collection[str]) -> set[str]:
    """Not copied: a step that another process is still writing. A link would be copied as what it leads to,
    and is refused.
    """
    hidden = {name for name in names if name.startswith(".")}
    for path in (Path(folder, name) for name in names if name not in hidden):
        refuse_unusual(path, a_folder=path.is_dir())
    return hidden


def _keep_only(folder: ModelFolder, names: Collection[str], current: str) -> None:
    if folder.current_name() != current:
        folder.point_to(current)
    for item in folder.steps_path.iterdir():
        if item.name not in names:
            folder.remove(item.name)


def _same_weights(one: ContinualTagger, other: ContinualTagger) -> bool:
    first, second = one.model.network.state_dict(), other.model.network.state_dict()
    same = one.model.labels == other.model.labels and first.keys() == second.keys()
    return same and all(torch.equal(value, second[key]) for key, value in first.items())


def _free(path: Path) -> Path:
    """The path, or the first of path-2, path-3 ... that is not taken."""
    number, candidate = 1, path
    while candidate.exists():
        number += 1
        candidate = path.with_name(f"{path.name}-{number}")
    return candidate
