"""Tag any number of files into a folder, and resume where an earlier run ended."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cfner.errors import CfnerError, ConfigError, CorpusError, nearest
from cfner.files.lock import locked
from cfner.interop.prediction_files import is_format_name
from cfner.interop.shards.bar import Progress
from cfner.interop.shards.cutting import Shard, cut
from cfner.interop.shards.inputs import Input, find_inputs
from cfner.interop.shards.model_source import ModelSource
from cfner.interop.shards.output_folder import OutputFolder, size_and_time
from cfner.interop.shards.processes import Workers, local_workers
from cfner.interop.shards.tagging import SEPARATORS, Refused, Settings, Tagged
from cfner.interop.text_stream import TextLayout

_PLACES = ("local", "ray")
_SHOWN = 3  # files that could not be tagged, named in the error


@dataclass(frozen=True)
class TaggedFiles:
    """``before``: how many of the files were tagged by an earlier run."""

    files: int
    texts: int
    before: int


def tag_files(
    model: str | Path,
    files: Iterable[str | Path],
    out: str | Path | None,
    settings: Settings,
    *,
    step: int | None = None,
    workers: int | None = None,
    on: str | None = None,
    address: str | None = None,
    device: str = "auto",
    overwrite: bool = False,
    progress: Progress | None = None,
) -> TaggedFiles:
    """Tag files into a folder, an output for each: the same bytes, whoever tags them.

    A file that cannot be read does not stop the others; it is reported at the end. What is finished is kept,
    and the same call goes on from there.
    """
    folder = _folder(out)
    if on not in (None, *_PLACES):
        raise ConfigError(f"There is no place '{on}' to run on.", remedy=nearest(str(on), _PLACES))
    if address is not None and on != "ray":
        raise ConfigError("`address` is that of a Ray cluster.", remedy="Add `on='ray'`, or leave it out.")
    inputs = find_inputs(files, folder)
    if not inputs:
        raise ConfigError("There is no file to tag.", remedy="Name files, folders or patterns.")
    source = ModelSource.of(model, step, settings.runtime)

    def start(temporary: Path) -> Workers:
        ready = source.exported(settings.runtime, device, temporary)
        if on == "ray":
            from cfner.interop.shards.cluster import RayWorkers

            return RayWorkers(address, workers, ready, settings, device)
        return local_workers(workers, ready, settings, device)

    with locked(folder):
        run = _Run(OutputFolder(folder, source, settings, overwrite=overwrite), inputs, progress)
        if run.unfinished:
            with tempfile.TemporaryDirectory(prefix="cfner-onnx-") as temporary:
                run.tag(start(Path(temporary)))
    return TaggedFiles(len(inputs), run.texts, run.before)


def _folder(out: str | Path | None) -> Path:
    if out is None:
        raise ConfigError("Many files need a folder for their outputs.", remedy="Add `out=FOLDER`.")
    if not Path(out).is_dir() and (is_format_name(Path(out)) or Path(out).exists()):
        raise ConfigError(
            "Files are tagged into a folder, an output for each; this is the name of one file.",
            where=str(out),
            remedy="Name a folder with `out=FOLDER`; `as_` says what format the outputs have.",
        )
    return Path(out)


def _refuse_own_input(folder: OutputFolder, inputs: Sequence[Input]) -> None:
    read = {one.path.resolve() for one in inputs}
    for one in inputs:
        if folder.target(one).resolve() in read:
            raise ConfigError(
                "The output would replace an input.",
                where=str(folder.target(one)),
                remedy="Choose a different folder for the outputs.",
            )


@dataclass
class _File:
    """An input while it is tagged."""

    input: Input
    stat: dict[str, int]  # size and time when reading began
    shards: int | None = None  # how many there are, once the file is read to its end
    done: set[int] = field(default_factory=set)


class _Run:
    def __init__(self, folder: OutputFolder, inputs: Sequence[Input], progress: Progress | None) -> None:
        self.folder, self.progress = folder, progress
        _refuse_own_input(folder, inputs)
        counts = {one: folder.begin(one) for one in inputs}
        self.unfinished = [one for one, texts in counts.items() if texts is None]
        self.before = len(inputs) - len(self.unfinished)
        self.texts = sum(texts or 0 for texts in counts.values())
        self.refused: dict[Path, CfnerError] = {}
        self._sizes = {one: one.path.stat().st_size for one in inputs}
        self._all_bytes = sum(self._sizes.values())
        self._bytes = sum(size for one, size in self._sizes.items() if counts[one] is not None)
        self._files: dict[str, _File] = {}

    def tag(self, workers: Workers) -> None:
        running = 0
        try:
            for shard in self._missing_shards():
                while running >= workers.slots:
                    self._take(*workers.next())
                    running -= 1
                workers.start(shard)
                running += 1
            for _ in range(running):
                self._take(*workers.next())
        finally:
            workers.stop()
        if self.refused:
            raise self._refusal()

    def _missing_shards(self) -> Iterator[Shard]:
        """Shards to tag, file after file; those that are finished already are counted."""
        settings = self.folder.settings
        for one in self.unfinished:
            file = _File(one, size_and_time(one.path))
            self._files[str(one.path)] = file
            stored = self.folder.shards(one)
            try:
                layout = TextLayout.of(one.path, settings.input_format)
                numbered = settings.format in SEPARATORS
                for shard in cut(one.path, layout, numbered=numbered, size=settings.shard_bytes):
                    if one.path in self.refused:
                        break
                    if shard.last:
                        file.shards = shard.number
                    if shard.number in stored:
                        self._count(file, shard, stored[shard.number])
                    else:
                        yield shard
            except CorpusError as error:
                self.refused[one.path] = error

    def _take(self, shard: Shard, answer: Tagged | Refused) -> None:
        file = self._files[shard.file]
        if isinstance(answer, Refused):
            error = CorpusError(answer.what, where=answer.where or shard.place, remedy=answer.remedy)
            self.refused.setdefault(file.input.path, error)
            return
        only = answer if shard.number == 1 and shard.last else None
        if only is None:
            self.folder.store(file.input, shard.number, answer)
        self._count(file, shard, answer.texts, only)

    def _count(self, file: _File, shard: Shard, texts: int, only: Tagged | None = None) -> None:
        file.done.add(shard.number)
        self.texts += texts
        self._bytes += len(shard.content)
        if self.progress is not None:
            self.progress(self._bytes, self._all_bytes, self.texts)
        if len(file.done) == file.shards and file.input.path not in self.refused:
            del self._files[shard.file]
            try:
                self.folder.finish(file.input, file.stat, only)
            except CorpusError as error:
                self.refused[file.input.path] = error

    def _refusal(self) -> CfnerError:
        """One error for all files that could not be tagged."""
        first, *others = self.refused.values()
        more = [str(error) for error in others[: _SHOWN - 1]]
        if left := len(others) - len(more):
            more.append(f"{left} more files could not be tagged.")
        return CorpusError(
            " ".join([first.what, first.remedy or "", *more]).replace("  ", " ").strip(),
            where=first.where,
            remedy=f"{len(self._sizes) - len(self.refused)} of {len(self._sizes)} files are tagged. Correct "
            "the rest and run it again with `overwrite=True`: files that did not change are kept.",
        )
