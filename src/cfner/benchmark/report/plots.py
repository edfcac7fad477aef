"""The kinds of pictures in a report: curves, bars, scatter plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from cfner.evaluation.forgetting import MeanStd
from cfner.pages import svg

_LEFT, _TOP, _PLOT_W, _BOTTOM = 46, 62, 300, 40
_LABEL = 15  # height of a line of names


Values = Sequence[float | None]  # one per step
Series = Mapping[str, Values]  # the curves of one panel by name; their order decides the colours


def curves(panels: Mapping[str, Series], title: str) -> svg.Svg:
    """Panels beside one another; every curve has its name at its end."""
    room = min(220.0, max(svg.width_of(name) for series in panels.values() for name in series)) + 26
    tall = max(210, _LABEL * max(len(series) for series in panels.values()))
    steps = max(len(values) for series in panels.values() for values in series.values())
    across = _LEFT + _PLOT_W + room
    parts: list[str] = []
    for number, (name, series) in enumerate(panels.items()):
        left = number * across + _LEFT
        parts.append(svg.text(left, _TOP - 14, name, size=13, weight=600, room=_PLOT_W + room - 24))
        parts += _curve_panel(series, left, tall, steps, room - 24)
    return svg.Svg.titled(title, across * len(panels), _TOP + tall + _BOTTOM, parts)


def _curve_panel(series: Series, left: float, tall: float, steps: int, room: float) -> list[str]:
    known = [value for values in series.values() for value in values if value is not None]
    low, high, by = round_scale(min(known, default=0.0), max(known, default=100.0))

    def x_of(step: int) -> float:
        return left + 10 + (_PLOT_W - 20) * (step / (steps - 1) if steps > 1 else 0.5)

    def y_of(value: float) -> float:
        return _TOP + tall * (1 - (value - low) / (high - low))

    parts: list[str] = []
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
    for number, (name, values) in enumerate(series.items()):
        points = [(x_of(i), y_of(value)) for i, value in enumerate(values) if value is not None]
        if points:
            parts.append(svg.curve(points, number))
            parts += [svg.mark(x, y, number) for x, y in points]
            x, y = points[-1]
            ends.append((y, number, x, name))
    # names next to the last points, moved apart where they would overlap
    ends.sort()
    at = left + _PLOT_W + 20
    places = spread([y for y, *_ in ends], _TOP, _TOP + tall)
    for (y, number, x, name), place in zip(ends, places, strict=True):
        if abs(place - y) > 2:
            parts.append(svg.line(x + 5, y, at - 3, place))
        parts.append(svg.text(at, place + 4, name, ink=f"v-f{number % svg.SERIES}", room=room))
    return parts


def spread(wanted: Sequence[float], low: float, high: float, apart: float = _LABEL) -> list[float]:
    """Positions at least ``apart`` from each other, as close as possible to the rising ``wanted`` ones."""
    # minus i * apart they only need to be rising: neighbours that are not take their mean
    pools: list[list[float]] = []
    for i, place in enumerate(wanted):
        pools.append([place - i * apart])
        while len(pools) > 1 and fmean(pools[-2]) > fmean(pools[-1]):
            last = pools.pop()
            pools[-1] += last
    level = [fmean(pool) for pool in pools for _ in pool]
    highest = max(low, high - apart * (len(level) - 1))
    return [min(max(place, low), highest) + i * apart for i, place in enumerate(level)]


def round_scale(low: float, high: float) -> tuple[float, float, float]:
    """Round ends and steps for an axis. It begins at 0: otherwise small differences would look large."""
    start = min(0.0, low)
    reach = max(high - start, 1e-6)
    by = next(step for step in (0.5, 1, 2, 5, 10, 20, 25, 50, 100, 1e9) if reach / step <= 6)
    bottom = (start // by) * by
    top = -(-high // by) * by
    return bottom, top if top > bottom else bottom + by, by


def bars(items: Mapping[str, MeanStd], title: str, *, unit: str) -> svg.Svg:
    """Horizontal bars with a whisker for the deviation; they may be negative."""
    names = min(220.0, max(map(svg.width_of, items))) + 14
    low = min(0.0, *(mean - (std or 0) for mean, std in items.values()))
    high = max(1.0, *(mean + (std or 0) for mean, std in items.values()))
    low, high, by = round_scale(low, high)
    wide, tall, top = 420, 26, 44
    bottom = top + tall * len(items)

    def x_of(value: float) -> float:
        return names + 20 + wide * (value - low) / (high - low)

    parts: list[str] = []
    for tick in range(round((high - low) / by) + 1):
        x = x_of(low + tick * by)
        parts.append(svg.line(x, top, x, bottom))
        parts.append(svg.text(x, bottom + 16, f"{low + tick * by:g}", anchor="middle", ink="v-soft"))
    for place, (name, (mean, std)) in enumerate(items.items()):
        y = top + place * tall + 5
        left, right = sorted((x_of(0), x_of(mean)))
        parts.append(svg.text(names + 6, y + 12, name, anchor="end", room=names - 4))
        parts.append(svg.rect(left, y, max(right - left, 0.5), tall - 10, "v-heat", opacity=0.75))
        end = right
        if std is not None:
            parts.append(svg.line(x_of(mean - std), y + 8, x_of(mean + std), y + 8, "v-axis", 1.5))
            end = max(right, x_of(mean + std))
        parts.append(svg.text(end + 8, y + 12, f"{mean:.1f}", ink="v-soft"))
    parts.append(svg.line(x_of(0), top, x_of(0), bottom, "v-axis"))
    parts.append(svg.text(names + 20 + wide / 2, bottom + 32, unit, anchor="middle", ink="v-soft"))
    return svg.Svg.titled(title, names + wide + 90, bottom + 44, parts)


Cloud = Sequence[tuple[float, float, int]]  # points: x, y, the number of its kind


def clouds(panels: Mapping[str, Cloud], kinds: Sequence[str], title: str) -> svg.Svg:
    """Scatter plots without axes (the coordinates of such maps mean nothing), up to four in a row."""
    side, between, head = 226, 16, 26
    in_a_row = min(4, len(panels))
    wide = max(14 + in_a_row * (side + between), svg.width_of(title, 15) + 28, 480)
    parts: list[str] = []
    x, y = 20.0, 48.0
    for number, kind in enumerate(kinds):  # the legend, on as many lines as it needs
        shown = svg.fitted(kind, 170)
        if x + svg.width_of(shown) + 20 > wide and x > 20:
            x, y = 20.0, y + 18
        parts += [svg.mark(x, y - 4, number, 4), svg.text(x + 10, y, kind, room=170)]
        x += svg.width_of(shown) + 34
    top = y + 14
    for number, (name, cloud) in enumerate(panels.items()):
        left = 14 + number % in_a_row * (side + between)
        above = top + number // in_a_row * (side + head + between)
        parts.append(svg.text(left, above + 14, name, size=13, weight=600, room=side))
        parts.append(svg.rect(left, above + head, side, side, "v-line"))
        parts += _cloud(cloud, left + side / 2, above + head + side / 2, side - 20)
    rows = -(-len(panels) // in_a_row)
    return svg.Svg.titled(title, wide, top + rows * (side + head + between), parts)


def _cloud(cloud: Cloud, x: float, y: float, size: float) -> list[str]:
    """Points around a centre, filling a square of that size."""
    xs, ys = [x for x, _, _ in cloud], [y for _, y, _ in cloud]
    scale = size / (max(max(xs) - min(xs), max(ys) - min(ys)) or 1.0)
    middle_x, middle_y = (max(xs) + min(xs)) / 2, (max(ys) + min(ys)) / 2
    return [
        svg.mark(x + (point_x - middle_x) * scale, y + (point_y - middle_y) * scale, kind, 2.4, 0.75)
        for point_x, point_y, kind in cloud
    ]
