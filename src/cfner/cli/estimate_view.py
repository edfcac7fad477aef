"""What ``learn`` reports about new types in the terminal, and the result in one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console

from cfner.cli.guard_view import with_interval
from cfner.cli.show import say, table_of

if TYPE_CHECKING:
    from cfner.evaluation.estimate import Estimate
    from cfner.evaluation.intervals import Interval
    from cfner.practice.learn.guard_report import GuardReport


def tell_estimate(screen: Console, estimate: Estimate | None) -> None:
    """How well the step's types are found, and what that was measured on."""
    if estimate is None:
        screen.print("The new types were not scored: there is no test file and no estimate (--folds).")
        return
    rows = [
        (row.type, str(row.mentions), *map(_figure, (row.f1, row.precision, row.recall)))
        for row in estimate.types
    ]
    columns = ("type", "gold", "F1 (95 %)", "precision (95 %)", "recall (95 %)")
    table = table_of(columns, rows, title="New types: how well they are found", narrow=True)
    table.columns[0].overflow = "fold"
    for column in table.columns[1:]:
        column.no_wrap = True
    screen.print(table)
    say(f"Measured with {estimate.in_words()}.")
    if few := [row.type for row in estimate.types if not row.is_enough]:
        say(f"Too few mentions to rely on these figures: {', '.join(few)}.")


def in_short(estimate: Estimate | None, guard: GuardReport | None) -> str:
    """The result in one sentence, for readers who do not know F1 intervals."""
    said = []
    for row in estimate.types if estimate is not None else ():
        if row.is_enough:
            said.append(
                f"{row.type} is found with an F1 of about {row.f1.value:.0f} "
                f"({row.f1.low:.0f} to {row.f1.high:.0f})"
            )
    if guard is not None:
        limit = f"{guard.max_forgetting:g}"
        verdicts: dict[str, list[str]] = {}
        for old in guard.types:
            verdicts.setdefault(old.verdict, []).append(old.type)
        words = {
            "kept": f"as good as before (at most {limit} points lost)",
            "unchanged": "unchanged",
            "lost": f"worse by more than {limit} points",
            "accepted": f"worse by more than {limit} points, which was accepted",
            "undecided": "undecided: the guard has too few mentions",
            "too few mentions": "not judged: the guard hardly mentions them",
            "too few sentences": "not judged: the guard hardly mentions them",
        }
        said += [f"{', '.join(types)}: {words[verdict]}" for verdict, types in verdicts.items()]
    return f"In short: {'; '.join(said)}." if said else ""


def _figure(interval: Interval | None) -> str:
    return "nothing found" if interval is None else with_interval(interval)
