"""Steps with the same weights: types renamed, merged or forgotten, and what else needs no training."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cfner.errors import ModelError, StreamError
from cfner.evaluation.measured import Measured
from cfner.files.json_files import write_json
from cfner.files.lock import PATIENCE, locked
from cfner.network.calibration import Calibration
from cfner.practice.history.history import PastStep, past_step
from cfner.store.lineage import lineage_step
from cfner.store.link_steps import link_files
from cfner.store.model_folder import SEAL, ModelFolder, StoredStep
from cfner.store.save import as_stored
from cfner.store.step_files import (
    FACTS,
    LABELS,
    REPORT,
    SCORES,
    read_facts,
    read_if_there,
    read_labels,
    stored_calibration,
)
from cfner.stream.labels import LabelSpace

_WRITTEN_ANEW = {SEAL, LABELS, FACTS, SCORES, REPORT}
# record fields that a step with the same weights does not have
_OF_TRAINING = {"data", "history", "best_epoch"}


def rename(model: str | Path, old: str, new: str) -> PastStep:
    """Rename a type, as a new step with the same weights."""
    return _relabelled(model, "rename", [old], new)


def merge(model: str | Path, types: Sequence[str], into: str) -> PastStep:
    """Merge several types into ``into``, as a new step with the same weights."""
    if len(set(types)) < 2:
        raise StreamError(
            "A merge needs at least two types.", remedy="To change the name of one type, rename it."
        )
    return _relabelled(model, "merge", list(dict.fromkeys(types)), into)


def forget(model: str | Path, types: str | Sequence[str]) -> PastStep:
    """Remove types, as a new step with the same weights: their mentions are now O.

    The scores of all other types stay the same. ``rollback`` brings the types back, and they can be learned
    again.
    """
    gone = [types] if isinstance(types, str) else list(dict.fromkeys(types))
    if not gone:
        raise StreamError("No type to forget was given.", remedy="Name at least one.")
    return _relabelled(model, "forget", gone, None)


def _relabelled(model: str | Path, kind: str, types: Sequence[str], into: str | None) -> PastStep:
    return add_step(model, lambda path, source: _write_relabelled(path, source, kind, types, into))


def add_step(
    model: str | Path, write: Callable[[Path, StoredStep], None], *, expected: str | None = None
) -> PastStep:
    """Add a step derived from the current one, which is passed to ``write``.

    ``expected``: the hash that the current step must have, if the new step depends on it.
    """
    folder = ModelFolder(model)
    folder.current_name()  # raises if there is no model
    with locked(folder.path, wait=PATIENCE):
        folder.sweep()
        source = folder.verified()
        if expected not in (None, source.hash):
            raise ModelError(
                "Another step became current in the meantime, so nothing was added.",
                where=str(model),
                remedy="Start again.",
            )
        added = folder.add(lambda path: write(path, source))
    return past_step(lineage_step(model, added.name), current=True)


def write_same_weights(
    path: Path,
    source: StoredStep,
    labels: LabelSpace,
    calibration: Calibration | None,
    record: Mapping[str, Any],
) -> None:
    """The files of ``source`` with new labels, calibration and record; without its scores and report."""
    facts = {key: value for key, value in source.read_json(LABELS).items() if key != "calibration"}
    calibrated = {} if calibration is None else {"calibration": calibration.to_json()}
    link_files(source, path, leave_out=_WRITTEN_ANEW)
    write_json(path / LABELS, {**facts, **labels.to_json(), **calibrated})
    stored = {key: value for key, value in record.items() if key not in _OF_TRAINING}
    has = {"experts": "experts" in facts, "calibrated": calibration is not None, "parts": "parts" in facts}
    has["ordered"] = labels.ordered
    write_json(path / FACTS, as_stored(stored, source.hash, **has))


def _write_relabelled(
    path: Path, source: StoredStep, kind: str, types: Sequence[str], into: str | None
) -> None:
    """The step ``source`` with ``types`` renamed to ``into``; None removes them."""
    step, measured = read_facts(source), read_if_there(source, SCORES, Measured.from_json)
    before, calibration = read_labels(source), stored_calibration(source)
    labels = _without(before, types) if into is None else before.renamed(types, into)
    dropped: list[str] = []
    if calibration is not None and kind == "rename":
        calibration = calibration.renamed(types[0], str(into))
    elif calibration is not None:  # the calibration of the parts does not hold for the merged type
        dropped = [type_ for type_ in types if type_ in calibration.types]
        calibration = calibration.without(types)

    def names(old: Sequence[str]) -> list[str]:
        new = (into if type_ in types else type_ for type_ in old)
        return list(dict.fromkeys(type_ for type_ in new if type_ is not None))

    # a merged type must not be both learned here and known before
    current = names(step["types"])
    record = {
        **step,
        "kind": kind,
        "name": f"{kind} {', '.join(types)}" + ("" if into is None else f" -> {into}"),
        "types": current,
        "known": [type_ for type_ in names(step["known"]) if type_ not in current],
        "operation": {"types": list(types), "into": into, **({"uncalibrated": dropped} if dropped else {})},
    }
    write_same_weights(path, source, labels, calibration, record)
    # after a merge or removal, words may get other labels, so the model must be scored again
    if kind == "rename" and measured is not None and into is not None:
        write_json(path / SCORES, measured.renamed(types, into).to_json())


def _without(labels: LabelSpace, types: Sequence[str]) -> LabelSpace:
    left = labels.without(types)
    if not left.types:
        raise StreamError(
            f"These are all types that the model knows ({', '.join(labels.types)}): nothing would be left.",
            remedy="Keep at least one, or train a new model.",
        )
    return left
