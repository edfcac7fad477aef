"""Hugging Face datasets: a folder from ``save_to_disk``, or a name on the hub (``owner/name:config``)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cfner.corpus.formats import Format, Reading, ReadOptions
from cfner.corpus.json_records import TAG_FIELDS, sentences_from_records
from cfner.corpus.report import ReadReport
from cfner.corpus.sentence import Sentence
from cfner.errors import CorpusError, import_extra


def read_splits(source: str, options: ReadOptions) -> Mapping[str, Reading]:
    readings = {}
    for name, split in _load(source).items():
        report = ReadReport(format="huggingface", files=(f"{source}[{name}]",))
        readings[name] = sentences_of_dataset(split, options, report), report
    return readings


def read(path: Path, options: ReadOptions, report: ReadReport) -> list[Sentence]:
    splits = _load(str(path))
    if len(splits) != 1:
        raise CorpusError(
            f"the dataset has {len(splits)} splits ({', '.join(splits)}).",
            where=str(path),
            remedy="Read it as a corpus, or name the folder of one split.",
        )
    ((name, split),) = splits.items()
    report.files = (f"{path}[{name}]",)
    return sentences_of_dataset(split, options, report)


def _load(source: str) -> Mapping[str, Any]:
    """The splits of a dataset by their names; a dataset without splits is one called 'train'."""
    datasets = import_extra("datasets", "hf", "Reading Hugging Face datasets")
    path = Path(source)
    try:
        if path.exists():
            _refuse_elsewhere(path)
            loaded = datasets.load_from_disk(str(path))
        else:
            name, _, config = source.partition(":")
            loaded = datasets.load_dataset(name, config or None)
        return dict(loaded) if isinstance(loaded, Mapping) else {"train": loaded}
    except CorpusError:
        raise
    except Exception as error:  # pyarrow and datasets raise any kind of exception for a damaged folder
        looked = "as a folder written by save_to_disk" if path.exists() else "as a folder and on the hub"
        raise CorpusError(
            f"the dataset cannot be loaded ({type(error).__name__}: {error}). cfner looked for it {looked}.",
            where=source,
            remedy="Check its name. Without a network, read a folder that was written with save_to_disk.",
        ) from error


def _refuse_elsewhere(folder: Path) -> None:
    """Refuse a saved dataset that lists tables or splits outside its folder."""
    for file in [*folder.glob("state.json"), *folder.glob("*/state.json"), *folder.glob("dataset_dict.json")]:
        facts = json.loads(file.read_text(encoding="utf-8"))
        names = [entry["filename"] for entry in facts.get("_data_files", [])] + list(facts.get("splits", []))
        for name in names:
            if Path(name).name != name or (file.parent / name).is_symlink():
                raise CorpusError(
                    f"the dataset names the file '{name}', which is outside its folder.",
                    where=str(file),
                    remedy="Save it again with save_to_disk.",
                )


def sentences_of_dataset(split: Any, options: ReadOptions, report: ReadReport) -> list[Sentence]:
    tags = options.tag_column or next((name for name in TAG_FIELDS if name in split.features), None)
    names = _label_names(split.features[tags]) if tags in split.features else None
    if names is not None and options.labels is None:
        options = replace(options, labels=names)
    return sentences_from_records(_records(split, report.files[0]), report, options)


def _label_names(feature: Any) -> list[str] | None:
    """Names of the classes of a list of ClassLabel; None for a list of anything else."""
    inner = feature[0] if isinstance(feature, list) and feature else getattr(feature, "feature", None)
    return getattr(inner, "names", None)


def _records(split: Any, source: str) -> Iterator[tuple[str, dict[str, Any]]]:
    number = 0
    try:
        for number, record in enumerate(split.with_format(None), start=1):
            yield f"{source}:{number}", record
    except Exception as error:  # tables are read lazily, so damage shows only here
        raise CorpusError(
            f"the record cannot be read ({type(error).__name__}: {error}).",
            where=f"{source}:{number + 1}",
            remedy="The table is damaged: save the dataset again with save_to_disk.",
        ) from error


def recognises(path: Path) -> bool:
    return path.is_dir() and any((path / marker).is_file() for marker in ("dataset_dict.json", "state.json"))


FORMAT = Format(
    name="huggingface",
    suffixes=(),
    read=read,
    recognises=recognises,
    read_splits=read_splits,
)
