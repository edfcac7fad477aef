"""Print the guard's verdicts: a table, what is undecided, and what to try next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from cfner.cli.show import say, table_of

if TYPE_CHECKING:
    from cfner.evaluation.intervals import Interval
    from cfner.practice.learn.guard_report import GuardReport, Shift, TypeReport

_STYLE = {"kept": "green", "unchanged": "green", "lost": "bold red", "accepted": "yellow"}


def tell_guard(screen: Console, report: GuardReport) -> None:
    """Everything except whether the model is refused, which is printed last."""
    title = f"Old types before and after: F1 on {report.sentences:,} sentences"
    columns = ("type", "gold", "before", "after", "lost (95 %)", "P", "R", "verdict")
    table = table_of(columns, (_row(row) for row in report.types), title=title, narrow=True)
    table.columns[0].overflow = "fold"
    for column in table.columns[1:-1]:
        column.no_wrap = True
    table.columns[-1].justify = "left"
    screen.print(table)
    limit = f"{report.max_forgetting:g}"
    screen.print(
        f"lost: by more than {limit} points, and not by chance (5 % for all types together); kept: "
        f"certainly by at most {limit}; P and R: change of precision and recall."
    )
    for line in (*_undecided(report), *_warnings(report)):
        say(line)
    if report.absent:
        say(f"Not in the guard's sentences, so not tested: {', '.join(report.absent)}")
    if report.unknown:
        say(f"In the guard's sentences, but unknown to the model: {', '.join(report.unknown)}")
    if count := report.earlier_attempts:
        say(
            f"At least {count} earlier attempt{'s are' if count > 1 else ' is'} recorded on these guard "
            "sentences. Repeated attempts make the verdict unreliable: test the chosen model on other "
            "sentences."
        )


def why_refused(report: GuardReport) -> str:
    """The reasons in one sentence, with all types concerned."""
    reasons = [f"{', '.join(report.lost)} lost"] if report.lost else []
    doubts = [f"{type_} ({why})" for type_, why in report.not_shown.items() if type_ not in report.lost]
    if report.strict and doubts:
        reasons.append(f"--strict, and not shown to be kept: {', '.join(doubts)}")
    return "; ".join(reasons)


def tell_remedies(remedies: Sequence[str]) -> None:
    if remedies:
        say("What to try, most helpful first (measured in docs/questions/refused.md):")
    for number, remedy in enumerate(remedies, start=1):
        say(f"  {number}. {remedy}")


def _row(row: TypeReport) -> tuple[str | Text, ...]:
    return (
        row.type,
        str(row.mentions),
        f"{row.before.value:.1f}",
        f"{row.after.value:.1f}",
        with_interval(row.loss),
        _change(row.precision),
        _change(row.recall),
        Text(row.verdict, style=_STYLE.get(row.verdict, "")),
    )


def _undecided(report: GuardReport) -> Iterator[str]:
    for row in report.types:
        if row.power is None:
            continue
        line = f"{row.type} is undecided: at most {row.loss.high:.1f} points lost. "
        if row.power.seen is None:
            line += "This guard could not have shown any loss of it"
        else:
            line += f"A loss of {row.power.seen:.1f} would have been seen in 80 % of cases"
        if row.power.mentions is not None and row.power.mentions > row.mentions:
            line += f"; some {row.power.mentions:,} mentions would show {report.max_forgetting:g}"
        yield f"{line}."


def _warnings(report: GuardReport) -> Iterator[str]:
    for row in report.types:
        fell = [
            f"{name} ({shift.before:.1f} to {shift.after:.1f})"
            for name, shift in (("precision", row.precision), ("recall", row.recall))
            if shift.fell
        ]
        if fell:
            yield f"Warning: {row.type} clearly fell in {' and '.join(fell)}."


def _change(shift: Shift) -> str:
    return f"{shift.after - shift.before:+.1f}"


def with_interval(interval: Interval) -> str:
    return f"{interval.value:z.1f} [{interval.low:z.1f}, {interval.high:z.1f}]"  # z: no minus before 0
