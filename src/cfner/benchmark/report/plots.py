"""The kinds of pictures in a report: curves, bars, clouds of points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from cfner.pages import svg

_LEFT, _TOP, _PLOT_W, _BOTTOM = 46, 62, 300, 40
_LABEL = 15  # height of a line of names


@dataclass(frozen=True)
class Series:
    """A curve: its colour's number, its name, a value per step or None."""

    number: int
    name: str
    values: tuple[float | None, ...]


@dataclass(frozen=True)
class Panel:
    title: str
    series: tuple[Series, ...]


def curves(panels: Sequence[Panel], title: str) -> svg.Svg:
    """Panels beside one another; every curve has its name at its end."""
    named = [series.name for panel in panels for series in panel.series]
    room = min(220.0, max(svg.width_of(name) for name in named)) + 26
    tall = max(210, _LABEL * max(len(panel.series) for panel in panels))
    steps = max(len(series.values) for panel in panels for series in panel.series)
    across = _LEFT + _PLOT_W + room
    parts = [svg.text(14, 24, title, size=15, weight=600)]
    for number, panel in enumerate(panels):
        parts += _curve_panel(panel, number * across + _LEFT, tall, steps, room - 24)
    width = max(across * len(panels), svg.width_of(title, 15) + 28)
    return svg.Svg(title, round(width), _TOP + tall + _BOTTOM, tuple(parts))


def _curve_panel(panel: Panel, left: float, tall: float, steps: int, room: float) -> list[str]:
    values = [value for series in panel.series for value in series.values if value is not None]
    low, high, by = _scale(min(values, default=0.0), max(values, default=100.0))

    def x_of(step: int) -> float:
        return left + 10 + (_PLOT_W - 20) * (step / (steps - 1) if steps > 1 else 0.5)

    def y_of(value: float) -> float:
        return _TOP + tall * (1 - (value - low) / (high - low))

    parts = [svg.text(left, _TOP - 14, panel.title, size=13, weight=600, room=_PLOT_W + room)]
    for tick in range(round((high - low) / by) + 1):
        value = low + tick * by
        parts.append(svg.line(left, y_of(value), left + _PLOT_W, y_of(value)))
        parts.append(svg.text(left - 7, y_of(value) + 4, f"{value:g}", anchor="end", ink="v-soft"))
    every = -(-steps // 12)
    for step in range(0, steps, every):
        parts.append(svg.text(x_of(step), _TOP + tall + 17, str(step + 1), anchor="middle", ink="v-soft"))
    middle = left + _PLOT_W / 2
    parts.append(svg.text(middle, _TOP + tall + 33, "step", anchor="middle", ink="v-soft"))
    ends = []
    for series in panel.series:
        points = [(x_of(i), y_of(value)) for i, value in enumerate(series.values) if value is not None]
        if not points:
            continue
        parts.append(svg.curve(points, series.number))
        parts += [svg.mark(x, y, series.number) for x, y in points]
        ends.append((points[-1], series))
    return parts + _names_at_ends(ends, left + _PLOT_W + 20, tall, room)


def _names_at_ends(
    ends: list[tuple[tuple[float, float], Series]], left: float, tall: float, room: float
) -> list[str]:
    """Names beside the last points, moved apart where they would cover one another."""
    ends = sorted(ends, key=lambda end: (end[0][1], end[1].number))
    parts = []
    for ((x, y), series), place in zip(
        ends, spread([y for (_, y), _ in ends], _TOP, _TOP + tall), strict=True
    ):
        if abs(place - y) > 2:
            parts.append(svg.line(x + 5, y, left - 3, place))
        parts.append(
            svg.text(left, place + 4, series.name, ink=f"v-f{series.number % svg.SERIES}", room=room)
        )
    return parts


def spread(wanted: Sequence[float], low: float, high: float, apart: float = _LABEL) -> list[float]:
    """Places at least ``apart`` from each other, as near as can be to the rising places that are wanted."""
    # less i * apart they need only be rising: neighbours that are not share their mean
    pools: list[list[float]] = []
    for i, place in enumerate(wanted):
        pools.append([place - i * apart])
        while len(pools) > 1 and fmean(pools[-2]) > fmean(pools[-1]):
            last = pools.pop()
            pools[-1] += last
    level = [fmean(pool) for pool in pools for _ in pool]
    highest = max(low, high - apart * (len(level) - 1))
    return [min(max(place, low), highest) + i * apart for i, place in enumerate(level)]


def _scale(low: float, high: float) -> tuple[float, float, float]:
    """Round ends and steps for an axis; from 0 unless all values are far from it."""
    start = 0.0 if low >= 0 and low < 0.6 * high else low
    reach = max(high - start, 1e-6)
    by = next(step for step in (0.5, 1, 2, 5, 10, 20, 25, 50, 100, 1e9) if reach / step <= 6)
    bottom = (start // by) * by
    top = -(-high // by) * by
    return bottom, top if top > bottom else bottom + by, by


@dataclass(frozen=True)
class Bar:
    name: str
    value: float
    std: float | None


def bars(items: Sequence[Bar], title: str, *, unit: str) -> svg.Svg:
    """Lying bars with a whisker for the deviation; they may go to the left of zero."""
    names = min(220.0, max(svg.width_of(bar.name) for bar in items)) + 14
    low = min(0.0, *(bar.value - (bar.std or 0) for bar in items))
    high = max(0.0, *(bar.value + (bar.std or 0) for bar in items))
    low, high, by = _scale(min(low, 0.0), max(high, 1.0))
    wide, tall, top = 420, 26, 44
    bottom = top + tall * len(items)

    def x_of(value: float) -> float:
        return names + 20 + wide * (value - low) / (high - low)

    parts = [svg.text(14, 24, title, size=15, weight=600)]
    for tick in range(round((high - low) / by) + 1):
        x = x_of(low + tick * by)
        parts.append(svg.line(x, top, x, bottom))
        parts.append(svg.text(x, bottom + 16, f"{low + tick * by:g}", anchor="middle", ink="v-soft"))
    for place, bar in enumerate(items):
        y = top + place * tall + 5
        left, right = sorted((x_of(0), x_of(bar.value)))
        parts.append(svg.text(names + 6, y + 12, bar.name, anchor="end", room=names - 4))
        parts.append(svg.rect(left, y, max(right - left, 0.5), tall - 10, "v-heat", opacity=0.75))
        end = x_of(bar.value)
        if bar.std is not None:
            parts.append(
                svg.line(x_of(bar.value - bar.std), y + 8, x_of(bar.value + bar.std), y + 8, "v-axis", 1.5)
            )
            end = max(right, x_of(bar.value + bar.std))
        parts.append(svg.text(max(end, x_of(0)) + 8, y + 12, f"{bar.value:.1f}", ink="v-soft"))
    parts.append(svg.line(x_of(0), top, x_of(0), bottom, "v-axis"))
    parts.append(svg.text(names + 20 + wide / 2, bottom + 32, unit, anchor="middle", ink="v-soft"))
    width = max(names + wide + 90, svg.width_of(title, 15) + 28)
    return svg.Svg(title, round(width), bottom + 44, tuple(parts))


@dataclass(frozen=True)
class Cloud:
    """Points of one panel, each with the number of its kind."""

    name: str
    points: tuple[tuple[float, float], ...]
    kinds: tuple[int, ...]


def clouds(panels: Sequence[Cloud], kinds: Sequence[str], title: str) -> svg.Svg:
    """Scatter plots without axes (the coordinates of such maps mean nothing), up to four in a row."""
    side, between, head = 226, 16, 26
    in_a_row = min(4, len(panels))
    wide = max(14 + in_a_row * (side + between), svg.width_of(title, 15) + 28, 480)
    parts = [svg.text(14, 24, title, size=15, weight=600)]
    x, y = 20.0, 48.0
    for number, kind in enumerate(kinds):  # the legend, on as many lines as it needs
        shown = svg.fitted(kind, 170)
        if x + svg.width_of(shown) + 20 > wide and x > 20:
            x, y = 20.0, y + 18
        parts += [svg.mark(x, y - 4, number, 4), svg.text(x + 10, y, kind, room=170)]
        x += svg.width_of(shown) + 34
    top = y + 14
    for number, cloud in enumerate(panels):
        left = 14 + number % in_a_row * (side + between)
        above = top + number // in_a_row * (side + head + between)
        parts.append(svg.text(left, above + 14, cloud.name, size=13, weight=600, room=side))
        parts.append(svg.rect(left, above + head, side, side, "v-line"))
        parts += _cloud(cloud, left, above + head, side)
    rows = -(-len(panels) // in_a_row)
    return svg.Svg(title, round(wide), round(top + rows * (side + head + between)), tuple(parts))


def _cloud(cloud: Cloud, left: float, top: float, side: float) -> list[str]:
    xs, ys = [x for x, _ in cloud.points], [y for _, y in cloud.points]
    reach = max(max(xs) - min(xs), max(ys) - min(ys)) or 1.0
    scale = (side - 20) / reach
    middle_x, middle_y = (max(xs) + min(xs)) / 2, (max(ys) + min(ys)) / 2
    return [
        svg.mark(
            left + side / 2 + (x - middle_x) * scale, top + side / 2 + (y - middle_y) * scale, kind, 2.4, 0.75
        )
        for (x, y), kind in zip(cloud.points, cloud.kinds, strict=True)
    ]
