"""Calibrate a model on held-out sentences, as a new step with the same weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

from cfner.corpus.corpus import sentences_of
from cfner.corpus.in_memory import Data
from cfner.corpus.sentence import Sentence
from cfner.errors import ConfigError, CorpusError
from cfner.evaluation.measured import Measured
from cfner.files.json_files import write_json
from cfner.network.calibration import Calibration, TypeCalibration
from cfner.network.device import choose_device
from cfner.practice.calibrate.fit import FEWEST, enough_found, fit
from cfner.practice.calibrate.held_out import Found, HeldOut
from cfner.practice.calibrate.measure import Reliability, measure
from cfner.practice.history.relabel import add_step, write_same_weights
from cfner.practice.learn.folds import divided
from cfner.store.model_files import read_model
from cfner.store.model_folder import ModelFolder, StoredStep
from cfner.store.step_files import REPORT, SCORES, read_facts, read_if_there, read_labels, stored_calibration
from cfner.stream.manifest import sentences_hash

_FOLDS: Final = 5
Verdict = Literal["calibrated", "promised", "aimed at", "not reached", "too few mentions"]


@dataclass(frozen=True)
class TypeReport:
    """One type before and after. ``after`` is measured on sentences that were not used for fitting."""

    type: str
    mentions: int  # labelled
    before: Reliability
    after: Reliability
    figures: TypeCalibration | None  # None: not changed
    verdict: Verdict


@dataclass(frozen=True, repr=False)
class CalibrationReport:
    """What was measured, and the step that holds it."""

    folder: Path
    step: int
    parent: int
    data: str
    sentences: int
    precision: float | None  # the requested one
    types: tuple[TypeReport, ...]
    unlabelled: tuple[str, ...]  # types of the model that the sentences do not label: not measured
    unknown: tuple[str, ...]  # types of the sentences that the model does not know: ignored

    @property
    def promised(self) -> tuple[str, ...]:
        return tuple(report.type for report in self.types if report.verdict == "promised")

    def __repr__(self) -> str:
        asked = "" if self.precision is None else f", precision {self.precision:g}"
        lines = [f"Calibration of {self.folder} (step {self.step}) on {self.data}{asked}"]
        lines += [
            f"  {one.type}: {one.verdict}; {one.mentions} mentions; calibration error {one.before.error} -> "
            f"{one.after.error}; precision {one.before.precision} -> {one.after.precision}; recall "
            f"{one.before.recall} -> {one.after.recall}"
            for one in self.types
        ]
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "folder": str(self.folder)}


def calibrate(
    model: str | Path,
    data: Data,
    *,
    precision: float | None = None,
    format: str | None = None,
    tag_column: str | int | None = None,
    batch_size: int = 64,
    device: str = "auto",
) -> CalibrationReport:
    """As ``cfner.calibrate``, without a page."""
    if precision is not None and not 0 < precision < 1:  # also false for NaN
        raise ConfigError(f"`precision` must be between 0 and 1, got {precision}.", remedy="Try 0.95.")
    chosen = choose_device(device)
    sentences, _, name = sentences_of(data, "dev", format=format, tag_column=tag_column)
    stored = ModelFolder(model).verified()
    loaded = read_model(stored)
    labels = loaded.labels
    mentioned = {type_ for sentence in sentences for type_ in sentence.types}
    labelled = tuple(type_ for type_ in labels.types if type_ in mentioned)
    loaded.network.to(chosen)
    known = [sentence.only(labels.types) for sentence in sentences]
    held_out = HeldOut.of(loaded, known, batch_size=batch_size)
    earlier = loaded.calibration
    enough = enough_found(held_out, labelled, None if earlier is None else earlier.without(labelled))
    if not enough:
        raise CorpusError(
            f"The model finds fewer than {FEWEST} mentions of every type that is labelled here "
            f"({', '.join(labelled) or 'none that it knows'}): too few to measure anything.",
            where=name,
            remedy="Give more labelled sentences.",
        )
    # predictions change only if a precision is requested, and for types with enough mentions
    kept = earlier if earlier is None or precision is None else earlier.without(enough)
    calibration = fit(held_out, enough, precision, kept)
    before, after = held_out.found(earlier), _cross_fitted(held_out, sentences, enough, precision, kept)
    reached = held_out.found(calibration)
    types = tuple(
        TypeReport(
            type=type_,
            mentions=held_out.mentions_of(type_),
            before=measure(held_out, before, type_),
            after=measure(held_out, after, type_),
            figures=calibration.types.get(type_),
            verdict=verdict(type_, calibration, reached, precision),
        )
        for type_ in labelled
    )
    measured = {
        "data": name,
        "sentences": len(sentences),
        "hash": sentences_hash(sentences),
        "precision": precision,
        "types": [asdict(report) for report in types],
    }
    added = add_step(
        model,
        lambda path, source: _write(path, source, calibration, precision, enough, measured),
        expected=stored.hash,
    )
    return CalibrationReport(
        folder=Path(model),
        step=added.number,
        parent=int(stored.name),
        data=name,
        sentences=len(sentences),
        precision=precision,
        types=types,
        unlabelled=tuple(type_ for type_ in labels.types if type_ not in mentioned),
        unknown=tuple(sorted(mentioned.difference(labels.types))),
    )


def _cross_fitted(
    held_out: HeldOut,
    sentences: Sequence[Sentence],
    types: Sequence[str],
    precision: float | None,
    kept: Calibration | None,
) -> list[Found]:
    """Mentions found in each fifth of the sentences, with parameters fitted on the other four."""
    found: list[Found] = []
    parts = divided(sentences, _FOLDS)
    for part in parts:
        others = held_out.part([at for other in parts if other is not part for at in other])
        fitted = fit(others, enough_found(others, types, kept, share=1 - 1 / _FOLDS), precision, kept)
        found += held_out.part(part).found(fitted)
    return found


def verdict(
    type_: str, calibration: Calibration, reached: Sequence[Found], precision: float | None
) -> Verdict:
    """``reached``: the mentions found in the held-out sentences with this calibration."""
    if type_ not in calibration.types:
        return "too few mentions"
    if precision is None:
        return "calibrated"
    if calibration.types[type_].precision is not None:
        return "promised"
    right = [mention.right for mention in reached if mention.type == type_]
    return "aimed at" if sum(right) >= precision * len(right) else "not reached"


def _write(
    path: Path,
    source: StoredStep,
    calibration: Calibration,
    precision: float | None,
    types: Sequence[str],
    measured: Mapping[str, Any],
) -> None:
    record = {
        **read_facts(source),
        "kind": "calibrate",
        "name": "calibrate" if precision is None else f"calibrate, precision {precision:g}",
        "operation": {"types": list(types)},
    }
    write_same_weights(path, source, read_labels(source), calibration, record)
    write_json(path / REPORT, measured)
    before = stored_calibration(source) or Calibration()
    names = {*before.types, *calibration.types}
    same = all(before.of(type_).shift == calibration.of(type_).shift for type_ in names)
    if same and read_if_there(source, SCORES, Measured.from_json) is not None:
        write_json(path / SCORES, source.read_json(SCORES))  # predictions are the same, so the scores hold
