"""The tables of a group after its scores: parts left out, combinations, settings, cost; what was not run."""

from __future__ import annotations

from collections.abc import Sequence

from cfner.benchmark.published import Figure
from cfner.benchmark.report.document import Block, Cell, Heading, Paragraph, Table
from cfner.benchmark.report.grouping import NONE, Group, Pick, base_of, number, shown
from cfner.benchmark.report.published_tables import beside, printed
from cfner.evaluation.forgetting import MeanStd

_PICKS: tuple[Pick, ...] = (lambda run: run.mean_micro_f1, lambda run: run.mean_macro_f1)


def ablation_table(group: Group) -> list[Block]:
    """The contribution of each part of a method: rows 'X without Y' minus X."""
    return _variants(
        group,
        "Parts left out",
        {
            base: [method for method in group.methods if method.startswith(f"{base} without ")]
            for base in group.methods
            if " without " not in base
        },
        "Differences are to the method with all its parts, seed by seed. If a part helps, the difference "
        "without it is negative.",
    )


def combination_table(group: Group) -> list[Block]:
    """A method next to the same method with causal effects."""
    combined = {method.removesuffix("+cf"): [method] for method in group.methods if method.endswith("+cf")}
    return _variants(
        group,
        "With causal effects plugged in",
        {base: methods for base, methods in combined.items() if base in group.by_method},
        "Differences are to the method without them, seed by seed.",
    )


def setting_table(group: Group) -> list[Block]:
    """Other values of a method's parameters, next to its defaults."""
    varied = {
        base: sorted((m for m in group.methods if m.startswith(f"{base} with ")), key=_by_value)
        for base in dict.fromkeys(base_of(method) for method in group.methods)
    }
    return _variants(group, "Other parameters", varied, None, said="{}, defaults")


def _variants(
    group: Group, title: str, variants: dict[str, list[str]], note: str | None, said: str = "{}"
) -> list[Block]:
    """Methods, each followed by its variants and their differences to it."""
    published = beside(group.setting)
    rows: list[list[str | Cell]] = []
    for base, methods in variants.items():
        known = base if base in group.by_method else None
        if methods and known:
            rows.append(_compared(group, base, None, published, said.format(base)))
        rows += [_compared(group, method, known, published, method) for method in methods]
    if not rows:
        return []
    head = ["method", "mean micro", "difference", "mean macro", "difference"]
    if published:
        head += ["published micro", "difference", "published macro", "difference"]
    notes: list[Block] = [] if note is None else [Paragraph(note)]
    return [Heading(title, 3), Table.of(head, rows), *notes]


def _by_value(method: str) -> tuple[str, float, str]:
    """By the parameter's name, then its value as a number where it is one."""
    name, _, value = method.partition(" with ")[2].partition("=")
    try:
        return name, float(value), ""
    except ValueError:
        return name, 0.0, value


def _compared(
    group: Group, method: str, base: str | None, published: dict[str, Figure], said: str
) -> list[str | Cell]:
    row: list[str | Cell] = [said]
    for pick in _PICKS:
        apart = NONE if base is None else shown(group.difference(method, base, pick), "+")
        row += [shown(group.mean(method, pick)), apart]
    if published:
        mine, theirs = published.get(method), published.get(base or "")
        for kind in ("micro", "macro"):
            value, other = getattr(mine, kind, None), getattr(theirs, kind, None)
            less = None if value is None or other is None else value - other
            row += [printed(mine, kind, deviation=False), number(less, "+")]
    return row


def cost_table(group: Group) -> list[Block]:
    rows = []
    for method in group.methods:
        seconds = group.mean(method, lambda run: run.measured.seconds)
        memory = group.mean(method, lambda run: run.measured.peak_memory)
        if seconds is not None or memory is not None:
            rows.append([method, _whole(seconds), _whole(memory, 2**20)])
    if not rows:
        return []
    runs = [run for method in group.methods for run in group.by_method[method]]
    used = {run.measured.precision for run in runs if run.measured.precision is not None}
    computed = f" Computed in {' and '.join(sorted(used))}." if used else ""
    return [
        Heading("Time and memory", 3),
        Table.of(["method", "seconds per run", "peak memory, MiB"], rows),
        Paragraph(f"As measured, mean over seeds. Runs that share a machine are slower.{computed}"),
    ]


def _whole(value: MeanStd | None, unit: int = 1) -> str:
    if value is None:
        return NONE
    deviation = "" if value.std is None else f" ± {value.std / unit:,.0f}"
    return f"{value.mean / unit:,.0f}{deviation}"


def not_run(groups: Sequence[Group]) -> list[Block]:
    """Every cell without a result, with the seeds of one method together and the first line of its error."""
    rows: dict[tuple[str, str, str, str], list[int]] = {}
    for group in groups:
        for cell in group.cells:
            if cell.state != "finished":
                why = next(iter((cell.error or "").strip().splitlines()), NONE)
                rows.setdefault((cell.method, group.title, cell.state, why), []).append(cell.seed)
    if not rows:
        return []
    table = Table.of(
        ["method", "setting", "seeds", "state", "reason"],
        [
            [method, setting, ", ".join(map(str, sorted(seeds))), state, why]
            for (method, setting, state, why), seeds in rows.items()
        ],
        left=5,
    )
    return [Heading("What was not run"), table]
