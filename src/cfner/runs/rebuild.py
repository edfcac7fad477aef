"""Builds the stream of a run again from the same corpus, and checks that it is the same."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from cfner.corpus.corpus import Corpus
from cfner.errors import ModelError, StreamError
from cfner.runs.run_folder import RUN, read_run
from cfner.stream.stream import TaskStream


def recorded_stream(folder: str | Path, corpus: Corpus) -> TaskStream:
    """The stream that the run in ``folder`` learned; an error if it learned from a different corpus."""
    record = Path(folder) / RUN
    manifest = read_run(Path(folder))["manifest"]
    setting = re.fullmatch(r"FG-(\d+)-PG-(\d+)", str(manifest["setting"]))
    if setting is None:
        raise ModelError(
            f"The run has an unknown setting '{manifest['setting']}'.",
            where=str(record),
            remedy="Use the version of cfner that trained it.",
        )
    try:
        stream = TaskStream.split(
            corpus,
            first=int(setting[1]),
            per_step=int(setting[2]),
            # dropped types must be named too, because the hash covers them
            order=[*manifest["order"], *manifest["dropped_types"]],
            sampling=manifest["sampling"],
            seed=manifest["seed"],
            min_mentions=manifest["min_mentions"],
        )
    except StreamError as error:
        raise _other_data(record, corpus, error.what) from error
    difference = _difference(manifest, stream.manifest())
    if difference is not None:
        raise _other_data(record, corpus, difference)
    return stream


def _difference(manifest: dict[str, Any], rebuilt: dict[str, Any]) -> str | None:
    """The first difference between the two streams in what was learned from; None if there is none.

    The test sentences may differ: a run may be scored on fewer, or on a different split.
    """
    for learned, here in zip(manifest["steps"], rebuilt["steps"], strict=False):
        if learned["sentences"] != here["sentences"]:
            return f"{learned['name']} had {learned['sentences']:,} sentences, here {here['sentences']:,}."
        if learned["sha256"] != here["sha256"]:
            return f"{learned['name']} was trained on different sentences."
    learned, here = (
        [(step["types"], step["sha256"]) for step in each["steps"]] for each in (manifest, rebuilt)
    )
    return None if learned == here else "the types are divided differently into steps."


def _other_data(record: Path, corpus: Corpus, why: str) -> StreamError:
    return StreamError(
        f"'{corpus.name}' is not the data that this run learned from: {why}",
        where=str(record),
        remedy="Give the same corpus, read with the same `every`, `format` and `tag_column` as in training, "
        "and use the version of cfner that trained it.",
    )
