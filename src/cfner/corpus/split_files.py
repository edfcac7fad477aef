"""Which files make up a corpus, and which reader reads each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, get_args

from cfner.corpus.formats import Format, Reading, ReadOptions, format_of, formats
from cfner.corpus.report import ReadReport
from cfner.errors import CorpusError
from cfner.files.near import did_you_mean

Split = Literal["train", "dev", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)

_NAMES: dict[Split, tuple[str, ...]] = {
    "train": ("train", "training"),
    "dev": ("dev", "devel", "valid", "validation", "val"),
    "test": ("test",),
}
_SPLIT_OF_NAME = {name: split for split, names in _NAMES.items() for name in names}


def read_splits(source: str, format: str | None, options: ReadOptions) -> Mapping[Split, Reading]:
    path = Path(source)
    chosen = format_of(path, format) if format is not None or path.is_dir() else None
    if chosen is not None and chosen.read_splits is not None:
        return known_splits(chosen.read_splits(source, options), source)
    if not path.is_dir():
        return {"train": read_file(path, format, options)}
    return {split: read_file(file, format, options) for split, file in _split_files(path, chosen).items()}


def known_splits(readings: Mapping[str, Reading], source: str) -> Mapping[Split, Reading]:
    """The readings of train, dev and test. The tokens of other splits are reported as left out."""
    found: dict[Split, Reading] = {}
    others = ReadReport()
    for name, (sentences, report) in readings.items():
        split = _SPLIT_OF_NAME.get(name.lower())
        if split is None or split in found:
            for sentence in sentences:
                report.leave_out(len(sentence), f"split '{name}' left out", sentence.source or name)
            others = others.merge(report)
        else:
            _refuse_empty((sentences, report), f"{source}[{name}]")
            found[split] = sentences, report
    if not found:
        raise CorpusError(
            f"the dataset has no split named train, dev, validation or test, only: {', '.join(readings)}.",
            where=source,
            remedy="Rename its splits.",
        )
    first, (sentences, report) = next(iter(found.items()))
    return found | {first: (sentences, report.merge(others))}


def _split_files(folder: Path, chosen: Format | None) -> dict[Split, Path]:
    suffixes = _suffixes([chosen] if chosen else formats().values())
    found: dict[Split, Path] = {}
    for file in sorted(folder.iterdir()):
        split = _SPLIT_OF_NAME.get(file.stem.lower())
        if split is None or file.suffix.lower() not in suffixes or not file.is_file():
            continue
        if split in found:
            raise CorpusError(
                f"two files for {split}: {found[split].name} and {file.name}.",
                where=str(folder),
                remedy="Keep one, or name the format to read.",
            )
        found[split] = file
    if not found:
        present = ", ".join(sorted(item.name for item in folder.iterdir())[:8]) or "nothing"
        raise CorpusError(
            f"the folder has no split that can be read; it contains: {present}.",
            where=str(folder),
            remedy="cfner expects files named train, dev (or valid, validation, val) and test "
            f"with one of the suffixes {', '.join(suffixes)}, or a dataset saved with save_to_disk.",
        )
    return {split: found[split] for split in SPLITS if split in found}


def _suffixes(of: Iterable[Format]) -> list[str]:
    return sorted({suffix for format in of for suffix in format.suffixes})


def read_file(path: Path, format: str | None, options: ReadOptions) -> Reading:
    chosen = format_of(path, format)
    if not path.exists() and not (chosen and chosen.read_splits):
        raise CorpusError(
            "no such file or folder.",
            where=str(path),
            remedy=f"{did_you_mean(path)}Check the path; for a dataset on the hub name the format "
            "huggingface.",
        )
    if chosen is None:
        unknown = f"unknown file type '{path.suffix}'."
        raise CorpusError(
            unknown if path.is_file() else "a folder, where a file was expected.",
            where=str(path),
            remedy=f"Known suffixes: {', '.join(_suffixes(formats().values()))}. "
            f"Or name the format: {', '.join(formats())}.",
        )
    report = ReadReport(format=chosen.name, files=(str(path),))
    reading = chosen.read(path, options, report), report
    _refuse_empty(reading, str(path))
    report.verified()
    return reading


def _refuse_empty(reading: Reading, source: str) -> None:
    sentences, report = reading
    if not sentences:
        reasons = ", ".join(f"{kind}: {count}" for kind, count in report.repairs.items())
        raise CorpusError(
            f"there is no sentence to use{f' ({reasons})' if reasons else ''}.",
            where=source,
            remedy="Check that it is the right file or list; remove it if the corpus has no such split.",
        )
