"""Reads the files of a step as untrusted input: anyone can make a valid seal around any content."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, ValidationError, model_validator

from cfner.errors import CfnerError, ModelError, problems
from cfner.evaluation.estimate import Estimate, from_json
from cfner.network.calibration import Calibration, read_calibration
from cfner.store.model_folder import StoredStep, damaged
from cfner.stream.labels import LabelSpace

FACTS = "step.json"
LABELS = "labels.json"
SCORES = "scores.json"
REPORT = "report.json"  # how the step was judged
FORMAT = 6  # the newest format of a step's files that is read. cfner 0.1 wrote no number, which is 1
# the lowest that the files need is written, for older versions
_ONE_NETWORK, _EXPERTS, _CALIBRATED, _PARTS, _ORDERED = 2, 3, 4, 5, 6

Made = TypeVar("Made")


class _Open(BaseModel):
    model_config = ConfigDict(extra="allow")


class _Data(_Open):
    sentences: Annotated[StrictInt, Field(ge=0)]


class _Settings(_Open):
    method: StrictStr
    parameters: dict[str, Any] = {}


class _Operation(_Open):
    types: list[StrictStr]
    into: StrictStr | None = None  # None for removed types
    uncalibrated: list[StrictStr] = []


class _Facts(_Open):
    """What a step.json must contain. It has more, on which nothing depends."""

    format: Annotated[StrictInt, Field(ge=1)] = 1
    parent: StrictStr | None
    types: list[StrictStr]
    known: list[StrictStr]
    kind: StrictStr = "learn"
    name: StrictStr
    method: StrictStr | None = None
    config: _Settings
    data: dict[str, _Data] = {}
    operation: _Operation | None = None
    versions: dict[str, Any] = {}
    stream: dict[str, Any] | None = None
    from_scratch: bool = False

    @model_validator(mode="after")
    def _learned_from_something(self) -> _Facts:
        if self.kind == "learn" and "train" not in self.data:
            raise ValueError("a learned step must have training data")
        return self


def read_facts(step: StoredStep) -> dict[str, Any]:
    """step.json with validated content; a ModelError otherwise."""
    refuse_newer(step)
    return read_as(step, FACTS, _checked)


def format_of(experts: bool, calibrated: bool, parts: bool, ordered: bool) -> int:
    """The format number to write: no higher than the files need."""
    has = {_EXPERTS: experts, _CALIBRATED: calibrated, _PARTS: parts, _ORDERED: ordered}
    return max((number for number, needed in has.items() if needed), default=_ONE_NETWORK)


def refuse_newer(step: StoredStep) -> None:
    """An error if a later version of cfner wrote the step: the meaning of its files may have changed."""
    facts = step.read_json(FACTS) if os.path.lexists(step.folder / FACTS) else {}
    if not isinstance(facts, dict) or not isinstance(number := facts.get("format"), int) or number <= FORMAT:
        return
    versions = facts.get("versions")
    writer = str(versions.get("cfner")) if isinstance(versions, dict) else ""
    known = re.fullmatch(r"\d{1,6}(\.\w{1,9}){1,5}", writer, re.ASCII)  # untrusted, and shown in the error
    raise ModelError(
        f"The step was written by cfner {writer if known else '(a newer version)'} in format {number}; "
        f"this version reads formats up to {FORMAT}.",
        where=str(step.folder / FACTS),
        remedy=f"Install cfner {writer} or newer." if known else "Install a newer version of cfner.",
    )


def read_labels(step: StoredStep) -> LabelSpace:
    refuse_newer(step)
    return read_as(step, LABELS, LabelSpace.from_json)


def stored_calibration(step: StoredStep) -> Calibration | None:
    """The calibration of the step's types, if there is one."""
    types = read_labels(step).types
    return read_as(step, LABELS, lambda facts: read_calibration(facts, types))


def read_estimate(step: StoredStep) -> Estimate | None:
    """How well the step's types were found when it was learned; None if that was not measured."""
    return read_if_there(step, REPORT, _estimate)


def _estimate(report: dict[str, Any]) -> Estimate | None:
    told = report.get("new_types")
    return None if told is None else from_json(told)


def read_as(step: StoredStep, file: str, make: Callable[[dict[str, Any]], Made]) -> Made:
    """``make`` applied to the table in a JSON file; raises a ModelError that names the file if it does not
    fit.
    """
    value = step.read_json(file)
    try:
        if not isinstance(value, dict):
            raise TypeError("it is not a JSON object")
        return make(value)
    except (CfnerError, KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise damaged(f"The file is damaged or incomplete: {in_words(error)}", step.folder / file) from error


def read_if_there(step: StoredStep, file: str, make: Callable[[dict[str, Any]], Made]) -> Made | None:
    """The same for an optional file."""
    return read_as(step, file, make) if os.path.lexists(step.folder / file) else None


def _checked(facts: dict[str, Any]) -> dict[str, Any]:
    _Facts.model_validate(facts)
    return facts


def in_words(error: Exception) -> str:
    """What is wrong with a file, from the exception that reading it raised."""
    if isinstance(error, CfnerError):
        return error.what
    if isinstance(error, ValidationError):
        return f"{problems(error)}."
    if isinstance(error, KeyError):
        return f"there is no {error}."
    return f"{error}."
