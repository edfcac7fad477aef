"""The first table of a group: the scores of every method, and what it lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from cfner.benchmark.report.document import Block, Cell, Paragraph, Table
from cfner.benchmark.report.grouping import NONE, Group, Pick, shown
from cfner.benchmark.report.published_tables import beside, printed, published_notes
from cfner.benchmark.report.reading import Run
from cfner.evaluation.forgetting import MeanStd, mean_and_std
from cfner.evaluation.type_losses import MANY_MENTIONS

_COLUMNS: tuple[tuple[str, Pick, bool], ...] = (  # name, figure, lowest is best
    ("mean micro", lambda run: run.mean_micro_f1, False),
    ("mean macro", lambda run: run.mean_macro_f1, False),
    ("last micro", lambda run: run.last_micro_f1, False),
    ("last macro", lambda run: run.last_macro_f1, False),
    ("forgetting", lambda run: run.mean_forgetting, True),
    ("when learned", lambda run: run.mean_when_learned, False),
    ("at the end", lambda run: run.mean_at_the_end, False),
    ("lost", lambda run: run.mean_lost, True),
)

BOUND_NOTES: Mapping[str, str] = {
    "joint": "'joint' learns from all data at once, with all labels: an upper bound, not compared.",
    "joint-own": (
        "'joint-own' is trained from scratch on all slices so far, each annotated with its own types only: "
        "the same annotation as the other methods get, and nothing to forget. It is a fair upper bound, not "
        "a strict one, and not compared."
    ),
}


def score_table(group: Group) -> list[Block]:
    """Means over the seeds, the best in bold, next to published figures for the same data and setting."""
    published, methods = beside(group.setting), group.methods
    columns = [_figures(group, pick, lowest) for _, pick, lowest in _COLUMNS]
    columns.append(_worst_types(group))
    head = ["method", "seeds", *(name for name, _, _ in _COLUMNS), f"worst type ({MANY_MENTIONS}+)"]
    if published:
        head += ["published micro", "published macro"]
    rows: list[list[str | Cell]] = []
    for method in methods:
        row: list[str | Cell] = [method, _seeds(group, method), *(column[method] for column in columns)]
        if published:
            row += [printed(published.get(method), kind) for kind in ("micro", "macro")]
        rows.append(row)
    notes = _notes(group)
    told = [Paragraph(" ".join(notes))] if notes else []
    return [Table.of(head, rows), *told, *published_notes(published, methods)]


def _notes(group: Group) -> list[str]:
    notes = [note for bound, note in BOUND_NOTES.items() if bound in group.by_method]
    if any(len(group.by_method[m]) < group.asked(m) for m in group.methods):
        notes.append("Not all seeds are finished, so means are over the seeds that are.")
    return notes


def _seeds(group: Group, method: str) -> str:
    done, asked = len(group.by_method[method]), group.asked(method)
    return str(done) if done == asked else f"{done} of {asked}"


def _figures(group: Group, pick: Pick, lowest: bool) -> dict[str, Cell]:
    means = {method: group.mean(method, pick) for method in group.methods}
    return _best_in_bold(group, means, lowest, lambda method: shown(means[method]))


def _worst_types(group: Group) -> dict[str, Cell]:
    """A column: name and points of the worst type of each method; the smallest of these losses is best."""
    worst = {method: worst_type(runs, MANY_MENTIONS) for method, runs in group.by_method.items()}
    means = {method: None if found is None else found[1] for method, found in worst.items()}

    def said(method: str) -> str:
        found = worst[method]
        return NONE if found is None else f"{found[0]} {shown(found[1])}"

    return _best_in_bold(group, means, True, said)


def worst_type(runs: Sequence[Run], least: int) -> tuple[str, MeanStd] | None:
    """The type with the largest loss, mean over seeds: in a single seed, the worst type may be chance."""
    lost: dict[str, list[float]] = {}
    for run in runs:
        for type_, value in run.lost.items():
            if value is not None and run.mentions.get(type_, 0) >= least:
                lost.setdefault(type_, []).append(value)
    means = {type_: mean_and_std(values) for type_, values in lost.items()}
    return max(means.items(), key=lambda item: item[1].mean, default=None)


def _best_in_bold(
    group: Group, means: Mapping[str, MeanStd | None], lowest: bool, said: Callable[[str], str]
) -> dict[str, Cell]:
    """A column: the best mean in bold; none where no method can be called better."""
    known = {m: round(mean.mean, 2) for m, mean in means.items() if mean is not None and m in group.rivals}
    best = (min if lowest else max)(known.values()) if len(known) > 1 and not group.lone_seed else None
    return {method: Cell(said(method), bold=method in known and known[method] == best) for method in means}
