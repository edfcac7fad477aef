"""Calibration of each type on held-out data: how reliable its scores are, and where to set its threshold."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

# The range of temperatures. Below the first, the server's rounding (serving.pipeline.NOISE) would no longer
# hide floating-point differences between batches.
COOLEST: Final = 0.25
HOTTEST: Final = 16.0
FURTHEST: Final = 1000.0  # larger log-odds mean a damaged file, not a measurement


@dataclass(frozen=True)
class TypeCalibration:
    """For one type: ``temperature`` and ``bias`` of the scores that are shown, and the ``shift`` of its
    decision threshold. Bias and shift are added to the log-odds of all its labels. ``precision``: the
    guaranteed precision of its mentions, if there is one.
    """

    temperature: float = 1.0
    bias: float = 0.0
    shift: float = 0.0
    precision: float | None = None


@dataclass(frozen=True)
class Calibration:
    """Figures per type. A type without an entry uses the network's scores and decisions unchanged."""

    types: Mapping[str, TypeCalibration] = field(default_factory=dict)

    def of(self, type_: str | None) -> TypeCalibration:
        return _AS_IT_IS if type_ is None else self.types.get(type_, _AS_IT_IS)

    def unshifted(self) -> Self:
        """The same scores, with the network's own decisions."""
        plain = {name: replace(one, shift=0.0, precision=None) for name, one in self.types.items()}
        return replace(self, types=plain)

    def without(self, types: Collection[str]) -> Self | None:
        """Without the figures of these types; None if nothing is left."""
        left = {name: one for name, one in self.types.items() if name not in types}
        return replace(self, types=left) if left else None

    def renamed(self, old: str, new: str) -> Self:
        named = {new if name == old else name: one for name, one in self.types.items()}
        return replace(self, types=named)

    def to_json(self) -> dict[str, Any]:
        return {
            name: {
                "temperature": one.temperature,
                "bias": one.bias,
                "shift": one.shift,
                **({} if one.precision is None else {"precision": one.precision}),
            }
            for name, one in self.types.items()
        }

    @classmethod
    def from_json(cls, data: Any, types: Collection[str]) -> Self:
        """Reads what ``to_json`` wrote for a model with these types; else a TypeError or ValueError."""
        if not isinstance(data, dict) or not data:
            raise TypeError("'calibration' is not a table of types")
        if strange := sorted(set(data).difference(types)):
            raise ValueError(f"'calibration' has a type that the model does not know: {strange[0]!r}")
        return cls({name: _read(name, one) for name, one in data.items()})


_AS_IT_IS: Final = TypeCalibration()
_FIGURES: Final = {
    "temperature": (COOLEST, HOTTEST),
    "bias": (-FURTHEST, FURTHEST),
    "shift": (-FURTHEST, FURTHEST),
}
_LIMITS: Final = {**_FIGURES, "precision": (0.0, 1.0)}


def _read(name: str, data: Any) -> TypeCalibration:
    if not isinstance(data, dict) or not _FIGURES.keys() <= data.keys() <= _LIMITS.keys():
        raise TypeError(f"the calibration of {name!r} needs {', '.join(_FIGURES)}")
    for key, value in data.items():
        low, high = _LIMITS[key]
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TypeError(f"the {key} of {name!r} is not a number")
        if not low <= value <= high:  # true for nan too
            raise ValueError(f"the {key} of {name!r} is {value}, which is not from {low:g} to {high:g}")
    return TypeCalibration(**{key: float(value) for key, value in data.items()})


def read_calibration(facts: Mapping[str, Any], types: Collection[str]) -> Calibration | None:
    """The calibration in a labels.json; None if nothing was calibrated."""
    return Calibration.from_json(facts["calibration"], types) if "calibration" in facts else None
