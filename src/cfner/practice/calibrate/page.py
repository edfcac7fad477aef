"""A calibration as one self-contained HTML page: a reliability diagram and the figures per type."""

from __future__ import annotations

from typing import Final

from cfner.files.html import text, word
from cfner.pages import svg
from cfner.pages.page import head, table, whole_page
from cfner.practice.calibrate.calibrate import CalibrationReport, TypeReport, Verdict
from cfner.practice.calibrate.fit import FEWEST
from cfner.practice.calibrate.measure import Reliability, Share

_AFTER, _BEFORE = 0, 1  # series: their colours, marks and dashes
_SIDE, _LEFT, _TOP = 200, 44, 40  # of the square, in pixels
_COLUMNS = (
    *("type", "mentions", "error before", "error after", "precision before", "precision after"),
    *("recall before", "recall after", "verdict"),
)
VERDICTS: Final[dict[Verdict, str]] = {
    "calibrated": "scores fitted, decisions as before",
    "promised": "the precision asked for was shown for text like this (a test at 95 %)",
    "aimed at": "the precision is reached on these sentences, but not certain",
    "not reached": "no shift reaches the precision; decisions as before",
    "too few mentions": f"fewer than {FEWEST} mentions found; not changed, nothing is promised",
}


def page(report: CalibrationReport) -> str:
    """The complete page, to be encoded as UTF-8."""
    parts = [_header(report), _figures(report), _diagrams(report)]
    return whole_page(f"{report.folder.name}: how sure is it?", "calibrate", parts, style=svg.STYLE)


def _header(report: CalibrationReport) -> str:
    asked = ""
    if report.precision is not None:
        names = ", ".join(f"<b>{word(type_)}</b>" for type_ in report.promised) or "no type"
        asked = f" Asked for: a precision of <b>{report.precision:g}</b>, promised of {names}."
    return (
        f"<header><p class='over'>{word(report.folder.name)}, step {report.step}</p><h1>How sure is it?</h1>"
        f"<p class='lead'>Measured on {report.sentences:,} sentences of {word(report.data)}.{asked} <b>Error"
        "</b> is the expected calibration error: the average difference between a mention's score and the "
        "share of such mentions that is right. All figures after calibration are measured by "
        "cross-validation, on sentences that were not used for fitting (five parts). Intervals: 95 %, "
        "bootstrap over sentences.</p></header>"
    )


def _figures(report: CalibrationReport) -> str:
    rows = "".join(_row(one) for one in report.types)
    shown = {one.verdict for one in report.types}
    legend = "".join(
        f"<li><b>{text(verdict)}</b>: {text(meaning)}</li>"
        for verdict, meaning in VERDICTS.items()
        if verdict in shown
    )
    return (
        f"<section><h2>Per type</h2><div class='scroll'>{table(head(*_COLUMNS), rows, 'types')}</div>"
        f"<ul class='legend'>{legend}</ul></section>"
    )


def _row(one: TypeReport) -> str:
    pairs = (
        (one.before.error, one.after.error),
        (one.before.precision, one.after.precision),
        (one.before.recall, one.after.recall),
    )
    cells = "".join(f"<td>{_share(share)}</td>" for pair in pairs for share in pair)
    kind = one.verdict.replace(" ", "-")
    return (
        f"<tr><td>{word(one.type)}</td><td>{one.mentions:,}</td>{cells}"
        f"<td class='verdict {kind}'>{text(one.verdict)}</td></tr>"
    )


def _share(share: Share | None) -> str:
    if share is None:
        return "·"
    return f"{share.value:.2f}<small>{share.low:.2f} to {share.high:.2f}</small>"


def _diagrams(report: CalibrationReport) -> str:
    drawn = "".join(f"<figure class='box'>{diagram(one).inline()}</figure>" for one in report.types)
    return (
        "<section><h2>Reliability <span>score of mentions, and the share of them that is right</span></h2>"
        "<p class='lead'>On the diagonal, scores are reliable. Above it the model is underconfident, "
        "below it overconfident. The larger a mark, the more mentions have such a score.</p>"
        f"<div class='diagrams'>{drawn}</div></section>"
    )


def diagram(one: TypeReport) -> svg.Svg:
    """The bins of one type: score on the x axis, precision on the y axis."""
    parts = [
        svg.rect(_LEFT, _TOP, _SIDE, _SIDE, "v-empty", opacity=0.25, round_=0),
        svg.line(_LEFT, _TOP + _SIDE, _LEFT + _SIDE, _TOP, "v-axis"),
    ]
    for share in (0.0, 0.5, 1.0):
        x, y = _place(share, share)
        parts.append(svg.text(x, _TOP + _SIDE + 16, f"{share:g}", size=11, anchor="middle", ink="v-soft"))
        parts.append(svg.text(_LEFT - 6, y + 4, f"{share:g}", size=11, anchor="end", ink="v-soft"))
    for series, measured in ((_BEFORE, one.before), (_AFTER, one.after)):
        parts += _marks(measured, series)
    under = _TOP + _SIDE + 36
    for series, name, x in ((_BEFORE, "before", _LEFT), (_AFTER, "after", _LEFT + 90)):
        parts += [svg.mark(x + 5, under - 4, series, 4.5), svg.text(x + 15, under, name, size=11)]
    width, height = _LEFT + _SIDE + 16, under + 12
    title = svg.text(14, 24, one.type, size=14, weight=600, room=width - 28)
    return svg.Svg(f"{one.type}: reliability", width, height, (title, *parts))


def _marks(measured: Reliability, series: int) -> list[str]:
    points = [_place(one.score, one.right) for one in measured.bins]
    sizes = [2.5 + 6 * (one.mentions / measured.found) ** 0.5 for one in measured.bins]
    line = [svg.curve(points, series)] if len(points) > 1 else []
    return line + [
        svg.mark(*point, series, size, opacity=0.85) for point, size in zip(points, sizes, strict=True)
    ]


def _place(score: float, right: float) -> tuple[float, float]:
    return _LEFT + score * _SIDE, _TOP + (1 - right) * _SIDE
