"""The first picture of a report: how good every method is at the end, a panel per setting."""

from __future__ import annotations

from collections.abc import Sequence

from cfner.benchmark.report.document import Block, Paragraph, Picture
from cfner.benchmark.report.grouping import BOUNDS, Group, base_of
from cfner.evaluation.forgetting import MeanStd, mean_and_std
from cfner.pages import svg

_BAR_W, _NOTE_W, _ROW, _BETWEEN, _HEAD, _FOOT = 260, 150, 24, 36, 36, 22
_TITLE = "Micro F1 of all types after the last step"


def summary_picture(groups: Sequence[Group], *, chosen: bool = False) -> list[Block]:
    """Empty if no run is finished. ``chosen``: a league chose the settings of some methods."""
    shown = [group for group in groups if group.by_method]
    if not shown:
        return []
    told = (
        "Mean over seeds; the thin line is the deviation. Lost: what the types of earlier steps lost since "
        "they were learned, in points of F1. Pale bars are bounds, which train on the text of all steps."
    )
    told += " Methods have the settings that the search chose, where these were run." if chosen else ""
    return [Picture("summary", _picture(shown)), Paragraph(told)]


def _picture(groups: Sequence[Group]) -> svg.Svg:
    ranked = [_ranked(group) for group in groups]
    names = min(180.0, max(svg.width_of(m) for methods in ranked for m in methods)) + 12
    across = names + _BAR_W + _NOTE_W + _BETWEEN
    columns = min(2, len(groups))
    parts: list[str] = []
    top = 40.0
    for start in range(0, len(groups), columns):
        row = list(zip(groups, ranked, strict=True))[start : start + columns]
        for place, (group, methods) in enumerate(row):
            parts += _panel(group, methods, 14 + place * across, top, names)
        top += _HEAD + _ROW * max(len(methods) for _, methods in row) + _FOOT + 14
    return svg.Svg.titled(_TITLE, 14 + columns * across, top, parts)


def _ranked(group: Group) -> list[str]:
    """The highest mean first, bounds last. Variants of a method are in separate tables."""

    def rank(method: str) -> tuple[bool, float]:
        return method in BOUNDS, -_last(group, method).mean

    return sorted(group.plain, key=rank)


def _last(group: Group, method: str) -> MeanStd:
    return mean_and_std([run.last_micro_f1 for run in group.by_method[method]])


def _panel(group: Group, methods: Sequence[str], left: float, top: float, names: float) -> list[str]:
    """Always from 0 to 100, so that panels can be compared."""
    start, first = left + names + 6, top + _HEAD
    bottom = first + _ROW * len(methods)
    room = names + _BAR_W + _NOTE_W
    parts = [svg.text(left, top + 18, group.title, size=13, weight=600, room=room)]
    for tick in range(0, 101, 25):
        x = start + _BAR_W * tick / 100
        parts.append(svg.line(x, first - 4, x, bottom))
        parts.append(svg.text(x, bottom + 14, str(tick), anchor="middle", ink="v-soft", size=11))
    for row, method in enumerate(methods):
        mean, std = _last(group, method)
        y, wide = first + row * _ROW, _BAR_W * mean / 100
        opacity = 0.3 if base_of(method) in BOUNDS else 0.85
        parts.append(svg.text(left + names, y + 14, method, anchor="end", room=names - 4))
        parts.append(svg.rect(start, y + 3, max(wide, 0.5), _ROW - 9, "v-heat", opacity=opacity))
        if std is not None:
            ends = (min(max(value, 0), 100) * _BAR_W / 100 + start for value in (mean - std, mean + std))
            parts.append(svg.line(next(ends), y + 10.5, next(ends), y + 10.5, "v-axis", 1.5))
        parts.append(svg.text(start + _BAR_W + 10, y + 14, _note(group, method, mean, std), ink="v-soft"))
    return parts


def _note(group: Group, method: str, mean: float, std: float | None) -> str:
    lost = group.mean(method, lambda run: run.mean_lost)
    deviation = "" if std is None else f" ± {std:.1f}"
    return f"{mean:.1f}{deviation}" + (
        "" if lost is None else f", lost {round(lost.mean, 1) + 0.0:.1f}".replace("-", "−")
    )
