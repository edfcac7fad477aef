"""F1 and its cost: a point per method, F1 over seconds and over memory."""

from __future__ import annotations

import math
from collections.abc import Mapping

from cfner.benchmark.report.plots import spread
from cfner.pages import svg

_LEFT, _TOP, _WIDE, _TALL, _BOTTOM = 46, 62, 330, 260, 44
_LINE = 15  # height of a line of names
Points = Mapping[str, tuple[float, float]]  # by method: cost, F1 in percent


def costs(panels: Mapping[str, Points], title: str) -> svg.Svg:
    """``panels``: by the kind of cost, with its unit. Names are on the right, in the order of F1."""
    names = [name for points in panels.values() for name in points]
    room = min(200.0, max(map(svg.width_of, names))) + 30
    tall = max(_TALL, _LINE * max(len(points) for points in panels.values()))
    across = _LEFT + _WIDE + room
    parts: list[str] = []
    for number, (unit, points) in enumerate(panels.items()):
        parts += _panel(points, unit, number * across + _LEFT, tall, room - 28)
    return svg.Svg.titled(title, across * len(panels), _TOP + tall + _BOTTOM, parts)


def _panel(points: Points, unit: str, left: float, tall: float, room: float) -> list[str]:
    most = max(cost for cost, _ in points.values())
    by = round_step(most)
    end = by * max(1, math.ceil(most / by))

    def x_of(cost: float) -> float:
        return left + _WIDE * cost / end

    def y_of(f1: float) -> float:
        return _TOP + tall * (1 - f1 / 100)

    parts = [svg.text(left, _TOP - 14, f"F1 over {unit}", size=13, weight=600)]
    for value in range(0, 101, 20):
        parts.append(svg.line(left, y_of(value), left + _WIDE, y_of(value)))
        parts.append(svg.text(left - 7, y_of(value) + 4, str(value), anchor="end", ink="v-soft"))
    for tick in range(round(end / by) + 1):
        x = x_of(tick * by)
        parts.append(svg.text(x, _TOP + tall + 17, f"{tick * by:,g}", anchor="middle", ink="v-soft"))
    parts.append(svg.text(left + _WIDE / 2, _TOP + tall + 34, unit, anchor="middle", ink="v-soft"))
    placed = sorted((y_of(f1), x_of(cost), name) for name, (cost, f1) in points.items())
    at = left + _WIDE + 22
    for (y, x, name), place in zip(placed, spread([y for y, *_ in placed], _TOP, _TOP + tall), strict=True):
        parts.append(svg.line(x + 5, y, at - 3, place))
        parts.append(svg.dot(x, y, 0, 3.6))
        parts.append(svg.text(at, place + 4, name, room=room))
    return parts


def round_step(most: float) -> float:
    """1, 2 or 5 times a power of ten, so that an axis to ``most`` has at most six."""
    power = 10.0 ** math.floor(math.log10(max(most, 1e-9) / 6))
    return next(step * power for step in (1, 2, 5, 10) if most / (step * power) <= 6)
