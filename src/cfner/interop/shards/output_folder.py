"""The folder of outputs: what is done, what is begun, and with which model and settings.

    OUT/
      NAME.jsonl               an output; of a docbin a folder NAME with parts
      .cfner/run.json          the model and the settings of all outputs here
      .cfner/files/NAME.json   the input: its path, size and time; the number of texts once it is tagged
      .cfner/shards/NAME/      finished shards of an unfinished file: NUMBER-TEXTS

Everything is written atomically. The record of a file is written before its output gets its name, so an
output without a record is not cfner's.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cfner.errors import ConfigError, CorpusError, ModelError
from cfner.files.atomic import atomic_file, atomic_folder
from cfner.files.json_files import read_json, write_json_atomic
from cfner.interop.shards.inputs import Input
from cfner.interop.shards.model_source import ModelSource
from cfner.interop.shards.tagging import Settings, Tagged
from cfner.store.link_steps import link_or_copy

HIDDEN = ".cfner"
_SHARD = re.compile(r"(\d+)-(\d+)")
_AGAIN = "Choose a different folder, or set `overwrite=True`"


class OutputFolder:
    """Only for the holder of the folder's lock."""

    def __init__(self, path: Path, model: ModelSource, settings: Settings, *, overwrite: bool) -> None:
        self.path, self.settings, self.overwrite = path, settings, overwrite
        self._hidden = path / HIDDEN
        facts = {
            "model": {"source": model.source, "step": model.step, "hash": model.identity},
            "settings": {**asdict(settings), "runtime": settings.runtime or "torch"},
        }
        record = self._hidden / "run.json"
        if record.exists() and (different := _differences(_held(record), facts)):
            if not overwrite:
                raise ConfigError(
                    f"This folder was begun with {different}.",
                    where=str(path),
                    remedy=f"{_AGAIN} to tag everything in it again.",
                )
            shutil.rmtree(self._hidden)
        if not record.exists():
            write_json_atomic(record, facts)

    def begin(self, one: Input) -> int | None:
        """The number of its texts if the file is tagged, else None; a changed file is refused."""
        target, record = self.target(one), self._record(one)
        held = _held(record) if record.exists() else None
        if held is None:
            if target.exists() and not self.overwrite:
                raise ConfigError(
                    "The output exists, and was not written by this run.",
                    where=str(target),
                    remedy=f"{_AGAIN} to replace it.",
                )
            return None
        if {key: held.get(key) for key in ("bytes", "modified")} != size_and_time(one.path):
            if not self.overwrite:
                raise ConfigError(
                    f"The file changed since it was tagged into {self.path} (then {held.get('input')}).",
                    where=str(one.path),
                    remedy=f"{_AGAIN} to tag it again; files that did not change are kept.",
                )
            record.unlink()
            shutil.rmtree(self._shards(one), ignore_errors=True)
            return None
        return int(held["texts"]) if held.get("texts") is not None and target.exists() else None

    def shards(self, one: Input) -> dict[int, int]:
        """Finished shards of an unfinished file: the number of texts by the number of the shard."""
        return {number: texts for number, (_, texts) in self._stored(one).items()}

    def store(self, one: Input, number: int, tagged: Tagged) -> None:
        if not self._record(one).exists():
            write_json_atomic(self._record(one), {"input": str(one.path), **size_and_time(one.path)})
        with atomic_file(self._shards(one) / f"{number:06d}-{tagged.texts}") as unfinished:
            unfinished.write_bytes(tagged.content)

    def finish(self, one: Input, before: Mapping[str, int], only: Tagged | None = None) -> int:
        """Put the output together, in the order of the shards; ``only``: that of a file with one shard.

        ``before``: size and time of the input when reading began.
        """
        stored = [] if only is not None else sorted(self._stored(one).items())
        texts = only.texts if only is not None else sum(texts for _, (_, texts) in stored)
        if size_and_time(one.path) != before:
            raise CorpusError(
                "The file changed while it was tagged.",
                where=str(one.path),
                remedy="Tag it again, with `overwrite=True`, when it is complete.",
            )
        parts = [path for _, (path, _) in stored]
        done = {"input": str(one.path), **before, "texts": texts}
        if self.settings.format == "docbin":
            with atomic_folder(self.target(one), refuse=_refuse_foreign_parts) as folder:
                for number, path in enumerate(parts, start=1):
                    link_or_copy(path, folder / _part(number))
                if only is not None:
                    (folder / _part(1)).write_bytes(only.content)
                write_json_atomic(self._record(one), done)
        else:
            with atomic_file(self.target(one)) as unfinished:
                with unfinished.open("xb") as file:
                    file.write(only.content if only is not None else b"")
                    for path in parts:
                        with path.open("rb") as part:
                            shutil.copyfileobj(part, file)
                write_json_atomic(self._record(one), done)
        shutil.rmtree(self._shards(one), ignore_errors=True)
        return texts

    def target(self, one: Input) -> Path:
        name = one.name if self.settings.format == "docbin" else f"{one.name}.{self.settings.format}"
        return self.path / name

    def _stored(self, one: Input) -> dict[int, tuple[Path, int]]:
        folder = self._shards(one)
        found = ((path, _SHARD.fullmatch(path.name)) for path in folder.iterdir()) if folder.is_dir() else ()
        return {int(match[1]): (path, int(match[2])) for path, match in found if match}

    def _record(self, one: Input) -> Path:
        return self._hidden / "files" / f"{one.name}.json"

    def _shards(self, one: Input) -> Path:
        return self._hidden / "shards" / one.name


def size_and_time(path: Path) -> dict[str, int]:
    found = path.stat()
    return {"bytes": found.st_size, "modified": found.st_mtime_ns}


def _held(record: Path) -> dict[str, Any]:
    """The content of a record; a damaged one fits nothing, so it is refused as if it had changed."""
    try:
        return dict(read_json(record))
    except (ModelError, TypeError, ValueError):
        return {}


def _differences(held: Mapping[str, Any], facts: Mapping[str, Any]) -> str:
    """What a run was begun with and is not now, in words; empty if there is nothing."""
    if not all(isinstance(held.get(key), dict) for key in facts):
        return "an unknown version of cfner"
    now, then = facts["settings"], held["settings"]
    settings = [
        f"`{name}` {then.get(name)!r} (now {now[name]!r})" for name in now if then.get(name) != now[name]
    ]
    if held["model"].get("hash") != facts["model"]["hash"]:
        step = held["model"].get("step")
        settings.insert(0, f"another model ({held['model'].get('source')}{f', step {step}' if step else ''})")
    return ", ".join(settings)


def _part(number: int) -> str:
    return f"part-{number:05d}.spacy"


def _refuse_foreign_parts(folder: Path) -> None:
    """A folder is replaced only if it contains nothing but such parts."""
    if folder.exists() and not (
        folder.is_dir() and all(file.match("part-*.spacy") for file in folder.iterdir())
    ):
        raise ConfigError("The folder contains other files.", where=str(folder), remedy="Move them away.")
