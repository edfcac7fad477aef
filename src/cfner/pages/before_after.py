"""The picture of a step: F1 of every type before and after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cfner.evaluation.intervals import Interval
from cfner.pages import svg

_BAR_W, _ROW, _TOP = 360, 44, 48


@dataclass(frozen=True)
class TypeBars:
    """One type; ``before`` is None where the step learned it."""

    name: str
    before: Interval | None
    after: Interval
    note: str


def before_after(types: Sequence[TypeBars], title: str) -> svg.Svg:
    """Two bars a type, before above after, from 0 to 100; a line shows the 95 % interval."""
    names = min(200.0, max((svg.width_of(row.name) for row in types), default=60.0)) + 14
    notes = max((svg.width_of(row.note) for row in types), default=0.0)
    left, bottom = names + 20, _TOP + _ROW * len(types)
    parts: list[str] = []
    for tick in range(0, 101, 25):
        x = left + _BAR_W * tick / 100
        parts.append(svg.line(x, _TOP - 4, x, bottom))
        parts.append(svg.text(x, bottom + 16, str(tick), anchor="middle", ink="v-soft"))
    for number, row in enumerate(types):
        y = _TOP + number * _ROW
        parts.append(svg.text(names + 6, y + 20, row.name, anchor="end", room=names - 4))
        if row.before is not None:
            parts += _bar(row.before, "before", left, y + 2, 0.3)
        parts += _bar(row.after, "after" if row.before else "new", left, y + (18 if row.before else 10), 0.85)
        parts.append(svg.text(left + _BAR_W + 92, y + 20, row.note, ink="v-soft"))
    return svg.Svg.titled(title, left + _BAR_W + 106 + notes, bottom + 30, parts)


def _bar(figure: Interval, when: str, left: float, y: float, opacity: float) -> list[str]:
    def x_of(value: float) -> float:
        return left + _BAR_W * min(max(value, 0.0), 100.0) / 100

    return [
        svg.rect(left, y, max(x_of(figure.value) - left, 0.5), 13, "v-heat", opacity=opacity),
        svg.line(x_of(figure.low), y + 6.5, x_of(figure.high), y + 6.5, "v-axis", 1.2),
        svg.text(left + _BAR_W + 10, y + 11, f"{when} {figure.value:.1f}", ink="v-soft", size=11),
    ]
