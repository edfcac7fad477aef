"""Bars and heat maps of types in the terminal. They fit into 80 columns and need no colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cfner.cli.show import plain, table_of

if TYPE_CHECKING:
    from cfner.evaluation.estimate import Estimate
    from cfner.practice.history.history import PastStep
    from cfner.practice.learn.guard_report import GuardReport

_EIGHTHS = " ▏▎▍▌▋▊▉"
_HEIGHTS = "▁▂▃▄▅▆▇█"  # of a heat map's cells, readable without colour
_BAR = 34  # characters that stand for an F1 of 100
_NAME = 18  # characters of a type's name; longer ones go on in the next line
_OLD_TYPES = 12  # with a bar
_STEPS = 9  # columns of a heat map
_COLOURS = {"kept": "green", "unchanged": "green", "lost": "bold red", "accepted": "yellow"}


def bar(share: float, width: int, full: str = "█") -> str:
    """``share`` of ``width`` characters, to an eighth of one; never empty for a share above 0."""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    if full != "█":
        return full * max(round(eighths / 8), share > 0)
    drawn = full * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
    return drawn or ("▏" if share > 0 else "")


def tell_before_after(screen: Console, guard: GuardReport | None, estimate: Estimate | None) -> None:
    """Bars of old types before and after, and of new types as estimated. Prints nothing without
    measurements."""
    rows: list[tuple[str | Text, ...]] = []
    worst = sorted(guard.types, key=lambda old: -old.loss.value)[:_OLD_TYPES] if guard is not None else []
    for old in worst:
        before, after = old.before.value, old.after.value
        verdict = Text(old.verdict, style=_COLOURS.get(old.verdict, ""))
        rows.append((old.type, "before", Text(bar(before / 100, _BAR, "░")), f"{before:.1f}", ""))
        rows.append(("", "after", Text(bar(after / 100, _BAR), style="cyan"), f"{after:.1f}", verdict))
    for new in estimate.types if estimate is not None else ():
        drawn = Text(bar(new.f1.value / 100, _BAR), style="cyan")
        rows.append((new.type, "new", drawn, f"{new.f1.value:.1f}", "" if new.is_enough else "few mentions"))
    if not rows:
        return
    screen.print(Text("F1 of every type, before and after", style="italic"))
    table = _unframed(("", "", "", "", ""), rows)
    table.columns[2].min_width = _BAR
    table.columns[4].justify = "left"
    screen.print(table)
    if guard is not None and (more := len(guard.types) - len(worst)):
        screen.print(f"These old types lost most; {more} more are in the table above.")


def mention_bars(mentions: Mapping[str, int], width: int = 24) -> dict[str, Text]:
    """A bar for each type, by its number of mentions."""
    most = max(mentions.values(), default=0) or 1
    return {type_: Text(bar(count / most, width), style="cyan") for type_, count in mentions.items()}


def tell_heat_map(screen: Console, steps: Sequence[PastStep]) -> None:
    """F1 by type and step, in the series that covers most steps. Needs two steps."""
    scored = [step for step in steps if step.figures is not None and step.figures.per_type]
    if len(scored) < 2:
        return
    types = list(dict.fromkeys(type_ for step in scored for type_ in step.all_types))
    for start in range(0, len(scored), _STEPS):
        some = scored[start : start + _STEPS]
        rows = [[plain(type_), *(_cell(step, type_) for step in some)] for type_ in types]
        columns = ("", *(str(step.number) for step in some))
        title = "F1 by type and step: a row that falls is a type that is being forgotten"
        if start:
            title = f"The same, from step {some[0].number} on"
        screen.print(Text(title, style="italic"))
        screen.print(_unframed(columns, rows))
    screen.print("·: not learned yet; –: not scored on these sentences.", style="dim")


def _cell(step: PastStep, type_: str) -> Text:
    """The figure and a block of that height; · if the step does not know the type, – if it has no score."""
    f1 = step.figures.per_type.get(type_) if step.figures is not None else None
    if f1 is None:
        return Text("– " if type_ in step.all_types else "· ", style="dim")
    height = _HEIGHTS[min(int(f1 / 100 * len(_HEIGHTS)), len(_HEIGHTS) - 1)]
    style = "green" if f1 >= 75 else "yellow" if f1 >= 40 else "red"
    return Text.assemble(f"{f1:.0f}", (height, style))


def _unframed(columns: Sequence[str], rows: Sequence[Sequence[str | Text]]) -> Table:
    table = table_of(columns, (), left=3 if not any(columns) else 1)
    table.box, table.padding, table.show_header = None, (0, 1, 0, 0), any(columns)
    table.columns[0].overflow, table.columns[0].max_width = "fold", _NAME
    for column in table.columns[1:]:
        column.no_wrap = True
    for row in rows:
        table.add_row(*(plain(cell) if isinstance(cell, str) else cell for cell in row))
    return table
