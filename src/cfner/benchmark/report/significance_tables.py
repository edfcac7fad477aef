"""The section on significance: every method against the best, and all pairs."""

from __future__ import annotations

from statistics import fmean

from cfner.benchmark.report.document import Block, Cell, Heading, Paragraph, Table
from cfner.benchmark.report.grouping import NONE, Group, number
from cfner.benchmark.report.reading import Runs
from cfner.benchmark.report.significance import Difference, Kind, Scores, compare, draws, resampled

_KINDS: tuple[Kind, ...] = ("micro", "macro")


def significance(group: Group, runs: Runs) -> list[Block]:
    """Empty for a single method or seed; a sentence where counts per sentence are missing."""
    if len(group.rivals) < 2 or group.lone_seed:
        return []
    heading = Heading("Is the difference real?", 3)
    counts = {
        method: {run.seed: found for run in group.by_method[method] if (found := runs.counts(run))}
        for method in group.rivals
    }
    missing = [method for method, by_seed in counts.items() if not by_seed]
    counts = {method: by_seed for method, by_seed in counts.items() if by_seed}
    notes: list[Block] = []
    if missing:
        told = f"Not compared, because their runs saved no counts per test sentence: {', '.join(missing)}."
        notes.append(Paragraph(told, loud=True))
    if len(counts) < 2:
        return [heading, *notes, Paragraph("There are fewer than two methods to compare.")]
    sizes = {int(one.sentences) for by_seed in counts.values() for one in by_seed.values()}
    if len(sizes) > 1:
        told = "The runs were scored on different numbers of test sentences, so they cannot be paired."
        return [heading, *notes, Paragraph(told, loud=True)]
    weights = draws(sizes.pop())
    scores = {
        method: {seed: resampled(one, weights) for seed, one in by_seed.items()}
        for method, by_seed in counts.items()
    }
    return [heading, _beside_highest(scores), *_matrix(scores), *notes]


def highest(scores: Scores, kind: Kind) -> str:
    """The method with the highest mean over its seeds, which need not be significantly better."""

    def mean(method: str) -> float:
        return fmean(one[kind][0] for one in scores[method].values())

    return max(scores, key=mean)


def _beside_highest(scores: Scores) -> Table:
    tops = {kind: highest(scores, kind) for kind in _KINDS}
    head = ["method"]
    for kind in _KINDS:
        head += [f"{kind}: difference to {tops[kind]}", "p"]
    rows: list[list[str | Cell]] = []
    for method in scores:
        row: list[str | Cell] = [method]
        for kind in _KINDS:
            if method == tops[kind]:
                row += [_standing(scores, method, kind), NONE]
                continue
            found = compare(scores, method, tops[kind], kind)
            row += [NONE, NONE] if found is None else [_interval(found), _p(found)]
        rows.append(row)
    return Table.of(head, rows)


def _standing(scores: Scores, top: str, kind: Kind) -> Cell:
    """Best only if every other method is significantly worse; else the highest mean."""
    others = [compare(scores, top, method, kind) for method in scores if method != top]
    if all(found is not None and found.sure for found in others):
        return Cell("best", bold=True)
    return Cell("highest mean")


def _interval(found: Difference) -> str:
    return f"{number(found.value, '+')} [{number(found.low)}, {number(found.high)}]"


def _p(found: Difference) -> str:
    return f"{found.p:.3f}" if found.p >= 0.002 else "<0.002"


def _matrix(scores: Scores) -> list[Block]:
    """p for every pair: micro above the diagonal, macro below. Empty for two methods."""
    methods = list(scores)
    if len(methods) < 3:
        return []
    rows: list[list[str | Cell]] = []
    for i, one in enumerate(methods):
        row: list[str | Cell] = [f"{i + 1}. {one}"]
        for j, other in enumerate(methods):
            found = None if i == j else compare(scores, one, other, "micro" if j > i else "macro")
            row.append("·" if i == j else NONE if found is None else Cell(_p(found), bold=found.sure))
        rows.append(row)
    head = ["method", *(str(i + 1) for i in range(len(methods)))]
    told = "p of every pair: for micro F1 above the diagonal, for macro F1 below. Bold: below 0.05."
    return [Paragraph(told), Table.of(head, rows)]
