"""The result of ``learn`` as one HTML page: a picture of every type before and after, then the tables."""

from __future__ import annotations

from collections.abc import Iterator

from cfner.evaluation.estimate import Estimate
from cfner.evaluation.intervals import Interval
from cfner.files.html import text, word
from cfner.pages import svg
from cfner.pages.before_after import TypeBars, before_after
from cfner.pages.page import head, table, whole_page
from cfner.practice.learn.guard_report import GuardReport
from cfner.practice.learn.learned import Learned


def page(learned: Learned) -> str:
    """The complete page, to be encoded as UTF-8."""
    types = ", ".join((*learned.plan.new, *learned.plan.more))
    title = f"Step {learned.step} of {learned.folder.name}: {types}"
    return whole_page(title, "learn", _parts(learned, types), style=svg.STYLE)


def _parts(learned: Learned, types: str) -> Iterator[str]:
    verdict = "accepted" if learned.accepted else "refused"
    yield f"<header><p class='over'>{word(learned.folder.name)}, step {learned.step}</p>"
    yield f"<h1>Learned: {word(types)}</h1><p class='verdict {verdict}'>{_outcome(learned)}</p></header>"
    if bars := type_bars(learned.guard, learned.estimate):
        drawn = before_after(bars, "F1 of every type before and after, with 95 % intervals")
        yield f"<figure class='scroll'>{drawn.inline()}</figure>"
    if learned.guard is not None:
        yield from _old_types(learned.guard)
    if learned.estimate is not None:
        yield from _new_types(learned.estimate)
    yield f"<p class='lead'>{text(learned.promise)}</p>"
    if learned.what_to_try:
        tries = "".join(f"<li>{text(remedy)}</li>" for remedy in learned.what_to_try)
        yield f"<section><h2>What to try</h2><ol>{tries}</ol></section>"


def _outcome(learned: Learned) -> str:
    if learned.accepted:
        return f"The new model is step {learned.step} of {word(str(learned.folder))}."
    lost = learned.guard.lost if learned.guard is not None else ()
    why = [f"lost: {', '.join(map(word, lost))}"] if lost else []
    why += [f"not found well enough: {', '.join(map(word, learned.below))}"] if learned.below else []
    because = f" ({'; '.join(why)})" if why else ""
    return f"Refused{because}. The new model is saved separately in {word(str(learned.folder))}."


def type_bars(guard: GuardReport | None, estimate: Estimate | None) -> list[TypeBars]:
    """Bars of old types as measured by the guard, and of new types as estimated."""
    old = [TypeBars(row.type, row.before, row.after, row.verdict) for row in (guard.types if guard else ())]
    new = [
        TypeBars(row.type, None, row.f1, "" if row.is_enough else "too few mentions")
        for row in (estimate.types if estimate else ())
    ]
    return old + new


def _old_types(guard: GuardReport) -> Iterator[str]:
    rows = "".join(
        f"<tr><td>{word(row.type)}</td><td>{row.mentions:,}</td><td>{row.before.value:.1f}</td>"
        f"<td>{row.after.value:.1f}</td><td>{_interval(row.loss)}</td><td>{text(row.verdict)}</td></tr>"
        for row in guard.types
    )
    heads = head("type", "gold", "before", "after", "lost (95 %)", "verdict")
    yield f"<section><h2>Old types <span>F1 on {guard.sentences:,} sentences of the guard</span></h2>"
    yield f"<div class='scroll'>{table(heads, rows, 'types')}</div>"
    if guard.absent:
        yield f"<p class='lead'>Not in these sentences: {', '.join(map(word, guard.absent))}.</p>"
    limit = f"{guard.max_forgetting:g}"
    legend = f"lost: by more than {limit} points, and not by chance; kept: certainly by at most {limit}."
    yield f"<p class='lead'>{legend}</p></section>"


def _new_types(estimate: Estimate) -> Iterator[str]:
    rows = "".join(
        f"<tr><td>{word(row.type)}</td><td>{row.mentions:,}</td><td>{_interval(row.f1)}</td>"
        f"<td>{_interval(row.precision)}</td><td>{_interval(row.recall)}</td></tr>"
        for row in estimate.types
    )
    heads = head("type", "gold", "F1 (95 %)", "precision (95 %)", "recall (95 %)")
    yield "<section><h2>New types <span>how well they are found</span></h2>"
    yield f"<div class='scroll'>{table(heads, rows, 'types')}</div>"
    yield f"<p class='lead'>Measured with {text(estimate.in_words())}.</p></section>"


def _interval(figure: Interval | None) -> str:
    if figure is None:
        return "–"
    return f"{figure.value:.1f} <small>[{figure.low:.1f}, {figure.high:.1f}]</small>"
