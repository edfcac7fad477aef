"""What each type lost: a picture of a few methods that span the range, and the worst type of every method."""

from __future__ import annotations

from collections.abc import Collection
from statistics import fmean

from cfner.benchmark.report.bounds_table import FLOOR
from cfner.benchmark.report.charts import picture_of
from cfner.benchmark.report.document import Block, Heading, Paragraph, Table
from cfner.benchmark.report.dumbbells import Ends, dumbbells
from cfner.benchmark.report.grouping import BOUNDS, Group, number, shown
from cfner.benchmark.report.score_table import worst_type
from cfner.evaluation.type_losses import ENOUGH_MENTIONS

_PAPER = "cfner"
_FEWEST = 3  # panels, if there are as many methods


def lost_types(group: Group) -> list[Block]:
    """Empty if no type was learned before the last step, or if the results do not record it."""
    panels = [panel for method in chosen(group) if (panel := _ends(group, method)).by_type]
    old = {type_ for run in group.runs for type_, lost in run.lost.items() if lost is not None}
    known = {type_ for panel in panels for type_ in panel.by_type}
    if not old or not known:
        return []
    mentions = {type_: count for run in group.runs for type_, count in run.mentions.items()}
    faint = {type_ for type_ in known if mentions.get(type_, 0) < ENOUGH_MENTIONS}
    drawn = dumbbells(panels, _by_step(group, known), faint, f"F1 when learned and at the end: {group.title}")
    told = (
        "Types in the order in which they are learned, those of a step in a band; means over seeds. A filled "
        "dot to the left of its hollow one is a loss. Types of the last step cannot have lost anything yet. "
        "Shown are finetune, cfner, the best other method by last micro F1, and a bound, as far as "
        "they were run; others follow if these are fewer than three."
    )
    rare = f" Types with a faint name have fewer than {ENOUGH_MENTIONS} test mentions." if faint else ""
    return [
        Heading("Learned and lost", 3),
        picture_of(group, "losses", drawn),
        Paragraph(told + rare),
        *_worst_types(group),
    ]


def _worst_types(group: Group) -> list[Block]:
    """The worst type of every method, with a lower limit of mentions than in the table of scores."""
    rows = []
    for method, runs in group.by_method.items():
        if (found := worst_type(runs, ENOUGH_MENTIONS)) is not None:
            type_, lost = found
            mentions = max(run.mentions.get(type_, 0) for run in runs)
            rows.append([method, type_, str(mentions), shown(lost)])
    head = ["method", f"worst type ({ENOUGH_MENTIONS}+)", "test mentions", "lost"]
    return [Table.of(head, rows, left=2)] if rows else []


def _by_step(group: Group, known: Collection[str]) -> list[list[str]]:
    """The known types of each step; steps without any are left out."""
    steps: dict[int, list[str]] = {}
    learned_in = {
        t: number for run in group.runs for number, step in enumerate(run.steps) for t in step.types
    }
    for type_ in group.types:
        if type_ in known:
            steps.setdefault(learned_in[type_], []).append(type_)
    return list(steps.values())


def chosen(group: Group) -> list[str]:
    """The floor, the paper's method, the best of the others by last micro F1, and the nearest bound.
    Others follow if these are too few: a grid may consist of variants of one method."""
    fixed = [method for method in (FLOOR, _PAPER) if method in group.by_method]
    others = [method for method in group.rivals if method not in fixed]
    best = sorted(others, key=lambda m: fmean(run.last_micro_f1 for run in group.by_method[m]))[-1:]
    bound = [method for method in BOUNDS if method in group.by_method][:1]
    first = [*fixed, *best, *bound]
    rest = [method for method in group.by_method if method not in first]
    return [*first, *rest[: max(0, _FEWEST - len(first))]]


def _ends(group: Group, method: str) -> Ends:
    runs, by_type = group.by_method[method], {}
    for type_ in group.types:
        pairs = [(run.when_learned.get(type_), run.at_the_end.get(type_)) for run in runs]
        known = [(when, end) for when, end in pairs if when is not None and end is not None]
        if known:
            by_type[type_] = fmean(when for when, _ in known), fmean(end for _, end in known)
    lost = group.mean(method, lambda run: run.mean_lost)
    return Ends(method, "" if lost is None else f"mean lost {number(lost.mean)}", by_type)
