"""A picture of what each type lost: F1 when learned and at the end, joined by a line; a panel per method."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from cfner.benchmark.report.plots import round_scale
from cfner.pages import svg

_TOP = 108  # of the first row; the title, the legend and the panels' names are above
_PANEL_W, _BETWEEN, _ROW = 190, 30, 20
_WHEN, _END = 4.4, 3.4  # radii: where both are equal, the hollow dot is a ring around the filled one


@dataclass(frozen=True)
class Ends:
    """One panel. ``by_type``: F1 in percent when learned and at the end; types without both are left out."""

    name: str
    note: str
    by_type: Mapping[str, tuple[float, float]]


def dumbbells(
    panels: Sequence[Ends], steps: Sequence[Sequence[str]], faint: Collection[str], title: str
) -> svg.Svg:
    """A row per type, the same in all panels; types of the same step share a band. Names of ``faint`` types
    are less prominent."""
    types = [type_ for step in steps for type_ in step]
    names = min(190.0, max(map(svg.width_of, types))) + 20
    wide = names + 16 + len(panels) * (_PANEL_W + _BETWEEN)
    values = [value for panel in panels for ends in panel.by_type.values() for value in ends]
    scale = round_scale(0.0, max(values, default=100.0))
    parts = [*_bands(steps, wide), *_legend(14, 50)]
    for row, type_ in enumerate(types):
        ink = "v-soft" if type_ in faint else "v-ink"
        parts.append(svg.text(names, _y(row) + 4, type_, anchor="end", ink=ink, room=names - 10))
    for number, panel in enumerate(panels):
        left = names + 16 + number * (_PANEL_W + _BETWEEN)
        parts += _panel(panel, number, left, types, scale)
    return svg.Svg.titled(title, wide, _y(len(types)) + 32, parts)


def _bands(steps: Sequence[Sequence[str]], wide: float) -> list[str]:
    """Behind every second step, to guide the eye along a row."""
    parts, row = [], 0
    for number, step in enumerate(steps):
        if number % 2 == 0:
            y = _y(row) - _ROW / 2
            parts.append(svg.rect(6, y, wide - 12, len(step) * _ROW, "v-empty", opacity=0.3))
        row += len(step)
    return parts


def _y(row: int) -> float:
    return _TOP + row * _ROW


def _legend(x: float, y: float) -> list[str]:
    """In the colour of the first panel; the shapes are the same in all."""
    return [
        svg.line(x + 6, y - 4, x + 34, y - 4, "v-s0", 2),
        svg.dot(x + 6, y - 4, 0, _END),
        svg.dot(x + 34, y - 4, 0, _WHEN, hollow=True),
        svg.text(x + 48, y, "filled: F1 at the end; hollow: F1 when learned", ink="v-soft"),
    ]


def _panel(
    panel: Ends, number: int, left: float, types: Sequence[str], scale: tuple[float, float, float]
) -> list[str]:
    low, high, by = scale
    bottom = _y(len(types)) - _ROW / 2

    def x_of(value: float) -> float:
        return left + _PANEL_W * (value - low) / (high - low)

    ink = f"v-f{number % svg.SERIES}"
    parts = [svg.text(left, _TOP - 32, panel.name, size=13, weight=600, ink=ink, room=_PANEL_W + 10)]
    parts.append(svg.text(left, _TOP - 17, panel.note, ink="v-soft", size=11, room=_PANEL_W + 10))
    for tick in range(round((high - low) / by) + 1):
        x = x_of(low + tick * by)
        parts.append(svg.line(x, _TOP - _ROW / 2, x, bottom))
        parts.append(svg.text(x, bottom + 15, f"{low + tick * by:g}", anchor="middle", ink="v-soft", size=11))
    for row, type_ in enumerate(types):
        if type_ in panel.by_type:
            when, end = map(x_of, panel.by_type[type_])
            parts.append(svg.line(when, _y(row), end, _y(row), f"v-s{number % svg.SERIES}", 2))
            parts.append(svg.dot(when, _y(row), number, _WHEN, hollow=True))
            parts.append(svg.dot(end, _y(row), number, _END))
    return parts
