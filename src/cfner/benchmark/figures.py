"""Pictures as plain SVG: no plotting library, sharp at any size, readable on light and dark pages."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from cfner.evaluation.forgetting import StepMatrix

_CELL_W, _CELL_H, _GAP, _LABEL_W, _TOP = 58, 24, 3, 150, 74


def heat_maps(matrices: Mapping[str, StepMatrix], title: str) -> str:
    """Step x type F1, one panel per method: a row that fades is a type that is being forgotten."""
    first = next(iter(matrices.values()))
    panel = len(first.steps) * (_CELL_W + _GAP)
    width = _LABEL_W + len(matrices) * (panel + 36)
    height = _TOP + (len(first.types) + 2) * (_CELL_H + _GAP) + 22
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="system-ui, sans-serif" font-size="12" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        _text(14, 24, title, size=15, weight="600"),
    ]
    rows = [*first.types, "micro", "macro"]
    for index, row in enumerate(rows):
        y = _row_y(index, len(first.types))
        weight = "600" if row in {"micro", "macro"} and index >= len(first.types) else "400"
        parts.append(_text(_LABEL_W - 10, y + 16, row, anchor="end", weight=weight))
    for number, (name, matrix) in enumerate(matrices.items()):
        parts += _panel(name, matrix, _LABEL_W + number * (panel + 36))
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def _panel(name: str, matrix: StepMatrix, left: int) -> list[str]:
    parts = [_text(left, 46, name, size=13, weight="600")]
    for step in range(len(matrix.steps)):
        x = left + step * (_CELL_W + _GAP)
        parts.append(_text(x + _CELL_W / 2, 66, f"step {step + 1}", anchor="middle", fill="#57606a"))
        values = [matrix.per_type[step][type_] for type_ in matrix.types]
        for index, value in enumerate([*values, matrix.micro[step], matrix.macro[step]]):
            parts.append(_cell(x, _row_y(index, len(matrix.types)), value))
    return parts


def _row_y(index: int, types: int) -> int:
    return _TOP + index * (_CELL_H + _GAP) + (8 if index >= types else 0)


def _cell(x: float, y: float, value: float | None) -> str:
    if value is None:
        return f'<rect x="{x}" y="{y}" width="{_CELL_W}" height="{_CELL_H}" rx="3" fill="#f3f4f6"/>'
    share = value / 100
    # from pale to deep teal: lightness falls with F1, so the map also reads in grey
    colour = tuple(round(a + (b - a) * share) for a, b in ((253, 13), (238, 94), (220, 99)))
    ink = "#ffffff" if share > 0.62 else "#1f2328"
    return f'<rect x="{x}" y="{y}" width="{_CELL_W}" height="{_CELL_H}" rx="3" fill="rgb{colour}"/>' + _text(
        x + _CELL_W / 2, y + 16, f"{value:.0f}", anchor="middle", fill=ink
    )


def _text(
    x: float,
    y: float,
    text: str,
    *,
    size: int = 12,
    anchor: str = "start",
    weight: str = "400",
    fill: str = "#1f2328",
) -> str:
    return (
        f'<text x="{x}" y="{y}" font-size="{size}" text-anchor="{anchor}" font-weight="{weight}" '
        f'fill="{fill}">{escape(text)}</text>'
    )
