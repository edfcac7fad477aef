"""The stream of a run, built again from the same corpus, and checked to be the same."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from cfner.corpus.corpus import Corpus
from cfner.errors import ModelError, StreamError
from cfner.stream.stream import TaskStream

RUN = "run.json"


def recorded_stream(folder: str | Path, corpus: Corpus) -> TaskStream:
    """The stream that the run in ``folder`` learned, or an error if it learned from another corpus."""
    record = Path(folder) / RUN
    manifest = _manifest(record)
    setting = re.fullmatch(r"FG-(\d+)-PG-(\d+)", str(manifest["setting"]))
    if setting is None:
        raise ModelError(f"The run has an unknown setting '{manifest['setting']}'.", where=str(record))
    try:
        stream = TaskStream.split(
            corpus,
            first=int(setting[1]),
            per_step=int(setting[2]),
            # dropped types were candidates too, and the hash covers them
            order=[*manifest["order"], *manifest["dropped_types"]],
            sampling=manifest["sampling"],
            seed=manifest["seed"],
            min_mentions=manifest["min_mentions"],
        )
    except StreamError as error:
        raise _other_data(record, corpus, error.what) from error
    if stream.manifest()["hash"] != manifest["hash"]:
        learned = sum(step["sentences"] for step in manifest["steps"])
        here = sum(len(part) for part in stream.slices)
        raise _other_data(record, corpus, f"the run's slices have {learned} sentences, these have {here}.")
    return stream


def _other_data(record: Path, corpus: Corpus, why: str) -> StreamError:
    return StreamError(
        f"'{corpus.name}' is not the data that this run learned from: {why}",
        where=str(record),
        remedy="Give the same corpus, read with the same --every, --format and --tag-column as in training.",
    )


def _manifest(record: Path) -> dict[str, Any]:
    try:
        manifest: dict[str, Any] = json.loads(record.read_text(encoding="utf-8"))["manifest"]
        for key in ("setting", "order", "dropped_types", "sampling", "seed", "min_mentions", "steps", "hash"):
            manifest[key]
    except FileNotFoundError:
        raise ModelError(
            "There is no run here.", where=str(record), remedy="Give a folder written by 'cfner train'."
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"The record of the run cannot be read: {error}.", where=str(record)) from error
    return manifest
