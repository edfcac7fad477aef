"""Which files make up a corpus, and which reader takes each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args

from cfner.corpus.formats import Format, Reading, ReadOptions, format_named, format_of, formats
from cfner.corpus.report import ReadReport
from cfner.errors import CorpusError

Split = Literal["train", "dev", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)

_SPLIT_OF_NAME: dict[str, Split] = {
    "train": "train",
    "training": "train",
    "dev": "dev",
    "devel": "dev",
    "valid": "dev",
    "validation": "dev",
    "val": "dev",
    "test": "test",
}


def read_splits(source: str, format: str | None, options: ReadOptions) -> Mapping[Split, Reading]:
    path = Path(source)
    chosen = format_named(format) if format is not None else format_of(path) if path.is_dir() else None
    if chosen is not None and chosen.read_splits is not None:
        return _known_splits(chosen.read_splits(source, options), source)
    if not path.is_dir():
        return {"train": read_file(path, format, options)}
    return {split: read_file(file, format, options) for split, file in _split_files(path, chosen).items()}


def _known_splits(readings: Mapping[str, Reading], source: str) -> Mapping[Split, Reading]:
    found: dict[Split, Reading] = {}
    others = ReadReport()
    for name, reading in readings.items():
        split = _SPLIT_OF_NAME.get(name.lower())
        if split is None or split in found:
            others = others.merge(_left_out(reading, name))
            continue
        _refuse_empty(reading, f"{source}[{name}]")
        found[split] = reading
    if not found:
        raise CorpusError(
            f"the dataset has no split named train, dev (or validation) or test, but: {', '.join(readings)}.",
            where=source,
            remedy="Rename its splits and save it with save_to_disk.",
        )
    first = next(iter(found))
    sentences, report = found[first]
    return found | {first: (sentences, report.merge(others))}


def _left_out(reading: Reading, name: str) -> ReadReport:
    """The report of a split that a corpus has no place for: its tokens were read, and none is used."""
    sentences, report = reading
    for sentence in sentences:
        report.leave_out(len(sentence), f"split '{name}' left out", sentence.source or name)
    return report


def _split_files(folder: Path, chosen: Format | None) -> dict[Split, Path]:
    suffixes = {
        suffix for format in ([chosen] if chosen else formats().values()) for suffix in format.suffixes
    }
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
            f"the folder holds no split that can be read; it holds: {present}.",
            where=str(folder),
            remedy=(
                "Expected are files named train, dev (or valid, validation, val) and test "
                f"with one of the suffixes {', '.join(sorted(suffixes))}, "
                "or a dataset saved with save_to_disk."
            ),
        )
    return dict(sorted(found.items(), key=lambda item: SPLITS.index(item[0])))


def read_file(path: Path, format: str | None, options: ReadOptions) -> Reading:
    if not path.exists() and not (format and format_named(format).read_splits):
        raise CorpusError(
            "no such file or folder.",
            where=str(path),
            remedy="Check the path; for a dataset on the hub name the format huggingface.",
        )
    chosen = format_named(format) if format is not None else format_of(path)
    if chosen is None:
        known = sorted({suffix for each in formats().values() for suffix in each.suffixes})
        raise CorpusError(
            f"unknown file type '{path.suffix}'."
            if path.is_file()
            else "a folder, where a file was expected.",
            where=str(path),
            remedy=f"Known suffixes: {', '.join(known)}. Or name the format: {', '.join(formats())}.",
        )
    reading = chosen.read(path, options)
    _refuse_empty(reading, str(path))
    reading[1].verified()
    return reading


def _refuse_empty(reading: Reading, source: str) -> None:
    sentences, report = reading
    if not sentences:
        reasons = ", ".join(f"{kind}: {count}" for kind, count in report.repairs.items())
        raise CorpusError(
            f"the file holds no sentence to use{f' ({reasons})' if reasons else ''}.",
            where=source,
            remedy="Check that it is the right file; remove it if the corpus has no such split.",
        )
