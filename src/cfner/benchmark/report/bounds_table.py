"""How far the methods are from the bounds: points above ``finetune``, and the share of the way to a bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cfner.benchmark.report.document import Block, Cell, Heading, Paragraph, Table
from cfner.benchmark.report.grouping import BOUNDS, NONE, Group, Pick, shown
from cfner.evaluation.forgetting import MeanStd, mean_and_std
from cfner.evaluation.type_losses import ENOUGH_MENTIONS

FLOOR: Final = "finetune"
_POINTS = "After the last step. Above finetune: points of F1, seed by seed."
_FREQUENT = f"Macro is over the types with at least {ENOUGH_MENTIONS} test mentions."
_SHARE = (
    "Share of the way: (method − finetune) / (bound − finetune) in percent, computed for each seed, then "
    "averaged. 0 is finetune, 100 is the bound, below 0 is worse than finetune. There is no share where the "
    "bound is not above finetune in every seed."
)
_BEYOND = (
    "More than 100 % of the way to joint-own is possible: a method that uses the words of other slices as "
    "negatives learns from more than joint-own does."
)


def bounds_table(group: Group) -> list[Block]:
    """Empty for a single method, or if neither ``finetune`` nor a bound was run."""
    bounds = [bound for bound in BOUNDS if bound in group.by_method]
    heading = Heading("How far from the bounds", 3)
    if len(group.methods) < 2 or not (bounds or FLOOR in group.by_method):
        return []
    if FLOOR not in group.by_method:
        told = f"There is no finished run of '{FLOOR}', which is needed to compute the share of the way."
        return [heading, Paragraph(told)]
    figures = _figures(group)  # each is followed by its points and shares
    head = ["method"]
    for name, _ in figures:
        head += [name, f"above {FLOOR}", *(f"% of the way to {bound}" for bound in bounds)]
    rows: list[list[str | Cell]] = []
    for method in group.methods:
        row: list[str | Cell] = [method]
        for _, pick in figures:
            points = NONE if method == FLOOR else shown(group.difference(method, FLOOR, pick), "+")
            row += [shown(group.mean(method, pick)), points]
            row += [_share(group, method, bound, pick) for bound in bounds]
        rows.append(row)
    return [heading, Table.of(head, rows), Paragraph(" ".join(_notes(group, bounds)))]


def _figures(group: Group) -> list[tuple[str, Pick]]:
    """Macro without rare types, where all runs recorded which types are rare."""
    micro: tuple[str, Pick] = ("last micro", lambda run: run.last_micro_f1)
    if _knows_mentions(group):
        return [micro, (f"last macro ({ENOUGH_MENTIONS}+)", lambda run: run.last_macro_f1_30)]
    return [micro, ("last macro", lambda run: run.last_macro_f1)]


def _knows_mentions(group: Group) -> bool:
    return all(run.last_macro_f1_30 is not None for run in group.runs)


def _notes(group: Group, bounds: Sequence[str]) -> list[str]:
    missing = [f"'{bound}'" for bound in BOUNDS if bound not in bounds]
    notes = [_POINTS, _FREQUENT] if _knows_mentions(group) else [_POINTS]
    if bounds:
        notes.append(_SHARE)
    if "joint-own" in bounds:
        notes.append(_BEYOND)
    if missing:
        notes.append(f"No run of {' or of '.join(missing)} is finished, so the way to it is not shown.")
    return notes


def _share(group: Group, method: str, bound: str, pick: Pick) -> str:
    share = None if method in {FLOOR, bound} else share_of_the_way(group, method, bound, pick)
    if share is None:
        return NONE
    deviation = "" if share.std is None else f" ± {share.std:.1f}"
    return f"{share.mean:.1f}{deviation}".replace("-", "−")


def share_of_the_way(group: Group, method: str, bound: str, pick: Pick) -> MeanStd | None:
    """From ``finetune`` to the bound, in percent, over the seeds that all three have; None where the bound
    is not above ``finetune``, because the share would be meaningless."""
    mine, floor, top = (
        {run.seed: value for run in group.by_method[name] if (value := pick(run)) is not None}
        for name in (method, FLOOR, bound)
    )
    seeds = sorted(mine.keys() & floor.keys() & top.keys())
    if not seeds or any(top[seed] <= floor[seed] for seed in seeds):
        return None
    return mean_and_std([100 * (mine[s] - floor[s]) / (top[s] - floor[s]) for s in seeds])
