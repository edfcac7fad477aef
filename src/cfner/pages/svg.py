"""Draw plain SVG: no plotting library, sharp at any size, light or dark like the reader's system.

Colours are classes, so that pictures in files and in pages share one style. All text is escaped here, and
nowhere else.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from cfner.files.safe_text import visible

SERIES: Final = 8
# Series also differ without colour: by dashes, marks and names.
_LIGHT = ("#0b5c63", "#d9480f", "#5f3dc4", "#a87400", "#1971c2", "#c2255c", "#4f7f0a", "#495057")
_DARK = ("#5fd6c4", "#ff9a62", "#b197fc", "#f2c14e", "#74c0fc", "#ff8fab", "#a9e34b", "#ced4da")
_NARROWEST = 0.6  # character width, as a share of its height
_DASHES = ("", "7 3", "2 3", "9 3 2 3", "", "7 3", "2 3", "9 3 2 3")


def _scheme(
    ground: str,
    ink: str,
    soft: str,
    line: str,
    heat: str,
    low: str,
    high: str,
    middle: str,
    series: tuple[str, ...],
) -> str:
    rules = [
        f".v-ground{{fill:{ground}}}.v-ink{{fill:{ink}}}.v-soft{{fill:{soft}}}",
        f".v-line{{stroke:{line};fill:none}}.v-axis{{stroke:{soft};fill:none}}.v-empty{{fill:{line}}}",
        f".v-heat{{fill:{heat}}}.v-low{{fill:{low}}}.v-mid{{fill:{middle}}}.v-high{{fill:{high}}}",
    ]
    for number, colour in enumerate(series):
        rules.append(f".v-s{number}{{stroke:{colour};fill:none}}.v-f{number}{{fill:{colour}}}")
    return "".join(rules)


# "low", "mid" and "high" are inks on cells of rising opacity; each scheme inverts at a different opacity
STYLE: Final = (
    _scheme("#ffffff", "#1f2328", "#57606a", "#e3e1dc", "#0d5e63", "#1f2328", "#ffffff", "#1f2328", _LIGHT)
    + "@media (prefers-color-scheme: dark){"
    + _scheme("#1c2029", "#e8eaf0", "#a0a8b8", "#39404e", "#63d8c0", "#e8eaf0", "#0c1416", "#0c1416", _DARK)
    + "}"
)


@dataclass(frozen=True)
class Svg:
    """A finished drawing."""

    title: str
    width: int
    height: int
    parts: tuple[str, ...]

    @classmethod
    def titled(cls, title: str, width: float, height: float, parts: Sequence[str]) -> Svg:
        """With a title in the upper left corner, wide enough for it."""
        wide = max(width, width_of(title, 15) + 28)
        return cls(title, round(wide), round(height), (text(14, 24, title, size=15, weight=600), *parts))

    def inline(self) -> str:
        """For a page that already contains ``STYLE``."""
        return self._markup("")

    def file(self) -> str:
        """For a file of its own."""
        return self._markup(f"<style>{STYLE}</style>\n")

    def _markup(self, style: str) -> str:
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
            f'width="{self.width}" height="{self.height}" font-family="system-ui, sans-serif" font-size="12" '
            f'role="img">\n<title>{clean(self.title)}</title>\n{style}'
            f'<rect class="v-ground" width="{self.width}" height="{self.height}"/>\n'
        )
        return head + "\n".join(self.parts) + "\n</svg>\n"


def text(
    x: float,
    y: float,
    value: str,
    *,
    size: int = 12,
    anchor: str = "start",
    weight: int = 400,
    ink: str = "v-ink",
    room: float | None = None,
) -> str:
    """One line. With ``room`` (in pixels) it is shortened to fit, with the complete text in the tooltip."""
    shown = value if room is None else fitted(value, room, size)
    whole = "" if shown == value else f"<title>{clean(value)}</title>"
    bold = f' font-weight="{weight}"' if weight != 400 else ""
    place = f' text-anchor="{anchor}"' if anchor != "start" else ""
    sized = f' font-size="{size}"' if size != 12 else ""
    return f'<text class="{ink}" x="{at(x)}" y="{at(y)}"{sized}{place}{bold}>{clean(shown)}{whole}</text>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str = "v-line", width: float = 1) -> str:
    ends = f'x1="{at(x1)}" y1="{at(y1)}" x2="{at(x2)}" y2="{at(y2)}"'
    return f'<line class="{kind}" {ends} stroke-width="{at(width)}"/>'


def rect(
    x: float, y: float, width: float, height: float, kind: str, *, opacity: float = 1, round_: int = 3
) -> str:
    shade = f' fill-opacity="{opacity:.2f}"' if opacity < 1 else ""
    size = f'x="{at(x)}" y="{at(y)}" width="{at(width)}" height="{at(height)}"'
    return f'<rect class="{kind}" {size} rx="{round_}"{shade}/>'


def curve(points: list[tuple[float, float]], series: int) -> str:
    dashes = _DASHES[series % SERIES]
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    path = " ".join(f"{at(x)},{at(y)}" for x, y in points)
    return f'<polyline class="v-s{series % SERIES}" points="{path}" stroke-width="2"{dashed}/>'


def mark(x: float, y: float, series: int, size: float = 3.2, opacity: float = 1) -> str:
    """A small filled shape; series that differ by one differ in shape too."""
    kind, r = f"v-f{series % SERIES}", size
    shade = f' fill-opacity="{opacity:.2f}"' if opacity < 1 else ""
    shape = series % 4
    if shape == 0:
        return f'<circle class="{kind}" cx="{at(x)}" cy="{at(y)}" r="{at(r)}"{shade}/>'
    corners = {
        1: [(-r, -r), (r, -r), (r, r), (-r, r)],
        2: [(0, -1.3 * r), (1.2 * r, r), (-1.2 * r, r)],
        3: [(0, -1.4 * r), (1.4 * r, 0), (0, 1.4 * r), (-1.4 * r, 0)],
    }[shape]
    path = " ".join(f"{at(x + dx)},{at(y + dy)}" for dx, dy in corners)
    return f'<polygon class="{kind}" points="{path}"{shade}/>'


def dot(x: float, y: float, series: int, size: float, *, hollow: bool = False) -> str:
    """A round mark. A hollow one hides what is drawn below it, as a filled one does."""
    ring = f'cx="{at(x)}" cy="{at(y)}" r="{at(size)}"'
    if not hollow:
        return f'<circle class="v-f{series % SERIES}" {ring}/>'
    return (
        f'<circle class="v-ground" {ring}/><circle class="v-s{series % SERIES}" {ring} stroke-width="1.6"/>'
    )


def clean(value: str) -> str:
    """Escaped, in one line, without invisible characters, some of which XML forbids."""
    return escape(visible(value), quote=True)


def width_of(value: str, size: int = 12) -> float:
    """Estimated maximum width of a text in pixels, without a font."""
    return sum(_share(sign) for sign in value) * size


def _share(sign: str) -> float:
    """The character's width as a share of its height, in a wide sans-serif font."""
    if unicodedata.east_asian_width(sign) in "WF" or sign in "MWmw@%":
        return 1.0
    return 0.74 if sign.isupper() else _NARROWEST


def fitted(value: str, room: float, size: int = 12) -> str:
    if width_of(value, size) <= room:
        return value
    kept = value[: max(0, int(room / (_NARROWEST * size)) + 1)]  # more characters never fit
    while kept and width_of(kept + "…", size) > room:
        kept = kept[:-1]
    return kept + "…"


def at(number: float) -> str:
    """A coordinate with at most one decimal: files stay small."""
    shown = f"{number:.1f}".removesuffix(".0")
    return "0" if shown == "-0" else shown
