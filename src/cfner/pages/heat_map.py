"""The picture of a run: F1 by step and type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cfner.evaluation.forgetting import StepMatrix
from cfner.pages import svg

_CELL_H, _GAP, _BETWEEN = 24, 3, 30
_HEAD = 44  # height of the names of panels and columns
_WIDEST = 1000


@dataclass(frozen=True)
class Heat:
    """One panel: a value in percent, or None, for every row and step."""

    name: str
    rows: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]  # by row
    apart: int = 0  # the last rows to set apart, in bold

    @property
    def steps(self) -> int:
        return len(self.values[0])


def heat_maps(matrices: Mapping[str, StepMatrix], title: str) -> str:
    """Step x type F1, one panel per method: a row that fades is a type that is being forgotten."""
    return heat_picture([_of_matrix(name, matrix) for name, matrix in matrices.items()], title).file()


def heat_picture(panels: Sequence[Heat], title: str) -> svg.Svg:
    """Panels with the same rows, side by side while there is room, then below."""
    first = panels[0]
    cell = 58 if first.steps <= 6 else 44 if first.steps <= 10 else 34
    labels = min(190.0, max(80.0, *(svg.width_of(row) for row in first.rows))) + 16
    panel = first.steps * (cell + _GAP)
    in_a_row = max(1, min(len(panels), int((_WIDEST - labels + _BETWEEN) // (panel + _BETWEEN))))
    block = _HEAD + len(first.rows) * (_CELL_H + _GAP) + 8 + _BETWEEN
    parts: list[str] = []
    for number, heat in enumerate(panels):
        top = 32 + number // in_a_row * block
        if number % in_a_row == 0:
            parts += _row_names(heat, labels - 10, top + _HEAD)
        parts += _panel(heat, labels + number % in_a_row * (panel + _BETWEEN), top, cell)
    height = 32 + -(-len(panels) // in_a_row) * block
    return svg.Svg.titled(title, labels + in_a_row * (panel + _BETWEEN), height, parts)


def _of_matrix(name: str, matrix: StepMatrix) -> Heat:
    rows = [tuple(step[type_] for step in matrix.per_type) for type_ in matrix.types]
    return Heat(name, (*matrix.types, "micro", "macro"), (*rows, matrix.micro, matrix.macro), apart=2)


def _row_names(heat: Heat, right: float, top: float) -> list[str]:
    told = []
    for index, row in enumerate(heat.rows):
        weight = 600 if index >= len(heat.rows) - heat.apart else 400
        y = _row_y(heat, index, top) + 16
        told.append(svg.text(right, y, row, anchor="end", weight=weight, room=right - 4))
    return told


def _panel(heat: Heat, left: float, top: float, cell: int) -> list[str]:
    room = heat.steps * (cell + _GAP) + _BETWEEN - 6
    parts = [svg.text(left, top + 16, heat.name, size=13, weight=600, room=room)]
    named = "" if cell < svg.width_of("step 10") else "step "
    for column in range(heat.steps):
        x = left + column * (cell + _GAP)
        parts.append(svg.text(x + cell / 2, top + 36, f"{named}{column + 1}", anchor="middle", ink="v-soft"))
        for index, row in enumerate(heat.values):
            parts.append(_cell(x, _row_y(heat, index, top + _HEAD), row[column], cell))
    return parts


def _row_y(heat: Heat, index: int, top: float) -> float:
    return top + index * (_CELL_H + _GAP) + (8 if index >= len(heat.rows) - heat.apart else 0)


def _cell(x: float, y: float, value: float | None, width: int) -> str:
    if value is None:
        return svg.rect(x, y, width, _CELL_H, "v-empty", opacity=0.4)
    share = min(max(value / 100, 0), 1)
    # opacity rises with the value, so the map is readable in grey
    ink = "v-low" if share < 0.55 else "v-mid" if share < 0.75 else "v-high"
    shown = svg.text(x + width / 2, y + 16, f"{value:.0f}", anchor="middle", ink=ink)
    return svg.rect(x, y, width, _CELL_H, "v-heat", opacity=0.05 + 0.9 * share) + shown
