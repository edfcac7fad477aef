"""A model folder: one immutable folder per step, sealed with hashes, and an atomic pointer to the current.

    MODEL/
      CURRENT                  name and hash of the current step, replaced atomically
      steps/0001/              model.safetensors  weights of encoder and head
                               expert-N.safetensors  weights of the N-th expert after the first
                               config.json        the encoder's architecture
                               tokenizer*.json    its tokenizer
                               labels.json        the label space (append-only from step to step)
                               step.json          lineage: parent's hash, data, settings, seed, versions;
                                                  and the number of this format
                               scores.json        scores measured after the step, if there are any
                               seal.json          SHA-256 of every file above, and of them all
                               pruned.json        the weights were removed to free the disk
      scores/                  scores measured later, one file for each set of sentences (see series.py)

A step folder is written atomically: under a temporary name, flushed to disk, and renamed.
Nothing here is ever unpickled, and no link is followed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from cfner.errors import ModelError
from cfner.files.atomic import atomic_folder, flush, is_partial, write_text_atomic
from cfner.files.json_files import as_json, read_json, refuse_unusual, sha256_of, write_json
from cfner.files.near import did_you_mean

CURRENT = "CURRENT"
SCORES_FOLDER = "scores"  # scores measured after a step was saved, see store/series.py
SEAL = "seal.json"
PRUNED = "pruned.json"  # the only file that may be added to a sealed step: its weights were removed
_LONGEST_NAME = 9  # digits
_HASH = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class StoredStep:
    """A step on disk."""

    folder: Path
    name: str
    hash: str

    def read_json(self, file: str) -> Any:
        return read_json(self.folder / file)

    @property
    def pruned(self) -> bool:
        """Whether its weights were removed; its record is still there."""
        return (self.folder / PRUNED).is_file()

    def saved(self) -> str:
        """When it was saved, as ISO 8601 in UTC."""
        path = self.folder / SEAL
        try:
            return datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat("T", "seconds")
        except (ValueError, OverflowError, OSError) as error:  # files from an archive may have any date
            raise ModelError(
                f"The date of the file is invalid: {error}.",
                where=str(path),
                remedy="Set a different date, for example with 'touch'.",
            ) from error


class ModelFolder:
    """The steps of one model."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.steps_path = self.path / "steps"

    def exists(self) -> bool:
        return (self.path / CURRENT).is_file()

    def names(self) -> list[str]:
        """Names of all complete steps, oldest first."""
        refuse_unusual(self.steps_path, a_folder=True)
        if not self.steps_path.is_dir():
            return []
        found = (p.name for p in self.steps_path.iterdir() if is_step_name(p.name) and (p / SEAL).is_file())
        return sorted(found, key=int)

    def current_name(self) -> str:
        return self._pointer()[0]

    def _pointer(self) -> tuple[str, str | None]:
        """Name and hash of the current step in the CURRENT file."""
        path = self.path / CURRENT
        if not os.path.lexists(path):
            whole, at, step = str(self.path).rpartition("@")
            if at and is_step_name(f"{step:0>4}") and ModelFolder(whole).exists():
                raise ModelError(
                    f"Step {step} was given, but this applies to the complete model folder.",
                    where=str(self.path),
                    remedy=f"Leave out @{step}; `rollback` makes a different step the current one.",
                )
            raise ModelError(
                "There is no model here.",
                where=str(self.path),
                remedy=("" if self.path.exists() else did_you_mean(self.path, Path.is_dir))
                + "Give a folder written by `train` (it contains a file CURRENT and a folder steps).",
            )
        try:
            refuse_unusual(path)
            # as bytes: reading text would accept any line ending
            pointer = path.read_bytes().decode("ascii")
            found = re.fullmatch(r"(\d{4,9})(?: ([0-9a-f]{64}))?\n?", pointer)
        except (OSError, ValueError) as error:
            raise self._misled(f"cannot be read: {error}") from error
        if found is None:
            raise self._misled("is damaged")
        return found[1], found[2]

    def _misled(self, how: str) -> ModelError:
        remedy = "Point it to a step: `rollback(MODEL, STEP)`."
        return ModelError(f"The pointer CURRENT {how}.", where=str(self.path), remedy=remedy)

    def step(self, name: str | int | None = None) -> StoredStep:
        """A step by name or number; the current one by default."""
        if not self.path.is_dir():
            self._pointer()  # says so, and names similar folders
        wanted, sealed = self._pointer() if name is None else (step_name(name), None)
        if wanted not in self.names():
            raise ModelError(
                f"There is no step '{wanted}'.",
                where=str(self.path),
                remedy=f"Steps here: {', '.join(self.names()) or 'none'}.",
            )
        folder = self.steps_path / wanted
        refuse_unusual(folder, a_folder=True)
        seal = _read_seal(folder)
        if sealed not in {None, seal["hash"]}:
            raise self._misled(f"names step '{wanted}', but with a different hash")
        return StoredStep(folder, wanted, seal["hash"])

    def verified(self, name: str | int | None = None) -> StoredStep:
        """The same, with every byte verified, and with its weights."""
        step = self.step(name)
        if step.pruned:
            raise ModelError(
                f"The weights of step {int(step.name)} were removed to free the disk (`prune`). Only its "
                "record is left.",
                where=str(step.folder),
                remedy=f"Choose a different step. With weights: {', '.join(self._with_weights())}.",
            )
        self.verify(step)
        return step

    def _with_weights(self) -> list[str]:
        return [str(int(name)) for name in self.names() if not (self.steps_path / name / PRUNED).is_file()]

    def verify(self, step: StoredStep) -> None:
        """Check that every byte is unchanged since the step was sealed; the error names the changed file.

        A pruned step has everything but its weights.
        """
        seal = _read_seal(step.folder)
        files = {p.name for p in step.folder.iterdir()} - {SEAL}
        removed: set[str] = set()
        if step.pruned and PRUNED not in seal["files"]:
            refuse_unusual(step.folder / PRUNED)
            files.discard(PRUNED)
            removed = {name for name in seal["files"] if is_weights(name)} - files
        for file in files:
            refuse_unusual(step.folder / file)
        for file in sorted(files | set(seal["files"]) - removed):
            if file not in files or file not in seal["files"]:
                problem = "missing" if file not in files else "not part of the step"
                # the name may be anything, even a path elsewhere
                raise damaged(f"The file is {problem}.", f"{step.folder}/{file}")
            if sha256_of(step.folder / file) != seal["files"][file]:
                raise damaged("The file has changed since the step was saved.", step.folder / file)
        as_written = as_json(seal).encode() == (step.folder / SEAL).read_bytes()
        if _hash_of(seal["files"]) != seal["hash"] or not as_written:
            raise damaged("The seal does not match the files.", step.folder / SEAL)

    def refuse_unsealed(self) -> None:
        """A step is sealed before it gets its name: a step without a seal has lost it."""
        for item in sorted(self.steps_path.iterdir()):
            if item.name.isdigit() and item.name not in self.names():
                raise ModelError(
                    "This looks like a step, but it has no seal."
                    if is_step_name(item.name)
                    else "This looks like a step, but its name is not a step name.",
                    where=str(item),
                    remedy="Restore the step from a copy, or move this elsewhere if it is not one.",
                )

    def add(self, write: Callable[[Path], None]) -> StoredStep:
        """Add a step: ``write(folder)`` fills it, then it is sealed, flushed, renamed and made current."""
        refuse_unusual(self.steps_path, a_folder=True)
        taken = [int(item.name) for item in self.steps_path.glob("*") if is_step_name(item.name)]
        name = step_name(max(taken, default=0) + 1)
        with atomic_folder(self.steps_path / name) as partial:
            write(partial)
            files = {file.name: sha256_of(file) for file in sorted(partial.iterdir())}
            write_json(partial / SEAL, {"files": files, "hash": _hash_of(files)})
        flush(self.path)  # its folder of steps may be new
        self.point_to(name)
        return self.step(name)

    def point_to(self, name: str | int) -> None:
        """Make a step current, atomically."""
        step = self.step(name)
        write_text_atomic(self.path / CURRENT, f"{step.name} {step.hash}\n")

    def sweep(self) -> None:
        """Remove partial files of killed processes. Only for the holder of the folder's lock."""
        for place in (self.steps_path, self.path / SCORES_FOLDER):
            refuse_unusual(place, a_folder=True)  # or files elsewhere could be removed through a link
        for step in self.steps_path.glob(".*"):
            if is_partial(step) and not step.is_symlink():  # cfner never leaves a link
                shutil.rmtree(step, ignore_errors=True)
        for file in (*self.path.glob(".*"), *(self.path / SCORES_FOLDER).glob(".*")):
            if is_partial(file) and file.is_file() and not file.is_symlink():
                file.unlink(missing_ok=True)


def is_weights(file: str) -> bool:
    return file.endswith(".safetensors")


def damaged(what: str, where: Path | str) -> ModelError:
    return ModelError(what, where=str(where), remedy="Restore the step from a copy.")


def _read_seal(folder: Path) -> dict[str, Any]:
    """The seal of a step: the hash of each file and of all of them; a damaged seal is an error."""
    seal = read_json(folder / SEAL)
    whole = isinstance(seal, dict) and isinstance(seal.get("files"), dict)
    # pages and terminals show the hash, also of unverified steps: it must be nothing but hex digits
    if not whole or not (isinstance(seal.get("hash"), str) and _HASH.fullmatch(seal["hash"])):
        raise damaged(f"The seal of step '{folder.name}' is damaged.", folder / SEAL)
    return cast("dict[str, Any]", seal)


def step_name(number: str | int) -> str:
    text = str(number)
    # isdecimal alone accepts the digits of any script
    if not (text.isascii() and text.isdecimal() and len(text.lstrip("0")) <= _LONGEST_NAME):
        raise ModelError(f"'{text}' is not a step.", remedy="Steps are numbered: 1, 2, 3 ...")
    return f"{int(text.lstrip('0') or 0):04d}"


def is_step_name(name: str) -> bool:
    """Whether a folder of this name is a step: only one spelling of each number is."""
    try:
        return step_name(name) == name
    except ModelError:
        return False


def _hash_of(files: dict[str, str]) -> str:
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()
