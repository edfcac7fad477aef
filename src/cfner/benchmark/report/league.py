"""The section of a league: every method at its best setting, ranked; what it learned, lost and cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Final

from cfner.benchmark.league_file import Searched, chosen_settings
from cfner.benchmark.report.bounds_table import FLOOR, share_of_the_way
from cfner.benchmark.report.charts import picture_of
from cfner.benchmark.report.cost_picture import costs
from cfner.benchmark.report.document import Block, Cell, Heading, Paragraph, Picture, Table
from cfner.benchmark.report.dumbbells import Ends, dumbbells
from cfner.benchmark.report.grouping import BOUNDS, NONE, Group, Pick, base_of, number, shown
from cfner.benchmark.report.reading import Run, Runs
from cfner.benchmark.report.significance import Scores, compare, draws, resampled

_WAY: Final = "joint-own"
ENOUGH: Final = 8  # methods, so that a stream is shown although some are missing
_HOW = (
    "Every method at the best of three settings of its knob: half, once and twice the weight of keeping old "
    "types, or the learning rates where it has no such weight. Bounds were also tried with twice as many "
    "updates. The setting was chosen by micro F1 after the "
    "last step on dev data, with one seed on one stream. All else is the same for all methods. Then each "
    "method was run once on test data, with different seeds."
)
_RANK = (
    "Rank: 1 + the number of methods that are significantly better (paired bootstrap of the mean micro F1, p "
    "below 0.05), so methods without a significant difference may share a rank. Bounds are not ranked, and "
    "neither are methods that have fewer than two seeds in common with the others. Above finetune: points of "
    "last micro F1. Way: the share of the way from finetune to joint-own, in percent."
)


def league_section(runs: Runs, groups: Sequence[Group], searched: Mapping[str, Searched]) -> list[Block]:
    """Empty if there was no league, or if too few of its methods were scored on test data: a rank among few
    says little.
    """
    begun = [league for group in groups if (league := league_of(group, searched)) is not None]
    leagues = [league for league in begun if len(league.methods) >= min(ENOUGH, len(searched))]
    if not leagues:
        return []
    blocks: list[Block] = [Heading("The league"), *_summary_picture(leagues), Paragraph(_HOW)]
    for league in leagues:
        blocks += [Heading(league.title, 3), _table(league, runs), *_costs(league)]
    unfinished = [
        f"{league.setting.steps} has no run of {', '.join(missing)}."
        for league in begun
        if (missing := [method for method in searched if method not in league.by_method])
    ]
    return [*blocks, Paragraph(" ".join([_RANK, *unfinished])), *_search(searched)]


def league_of(group: Group, searched: Mapping[str, Searched]) -> Group | None:
    """The runs of a setting on test data without unlabelled text, of each method with its chosen setting,
    under its plain name.
    """
    shared = dict(group.setting.shared)
    if shared.get("score_on", "test") != "test" or shared.get("unlabelled", "none") != "none":
        return None
    name_of = {name: method for method, name in chosen_settings(searched, shared).items()}
    by_method = {name_of[name]: found for name, found in group.by_method.items() if name in name_of}
    cells = [
        cell.model_copy(update={"method": name_of[cell.method]})
        for cell in group.cells
        if cell.method in name_of
    ]
    if len(by_method) < 2 or group.setting.labels != "own":
        return None
    return Group(group.number, group.setting, group.apart, cells, by_method)


def at_chosen_settings(group: Group, searched: Mapping[str, Searched]) -> Group:
    """Each method once, under its plain name: with the setting that the league chose, or with its usual one
    where that was not run or nothing was chosen. Variants of a method with neither keep their names.
    """
    chosen = chosen_settings(searched, dict(group.setting.shared))
    by_method: dict[str, list[Run]] = {}
    for method in dict.fromkeys(map(base_of, group.methods)):
        if runs := group.by_method.get(chosen.get(method, method)) or group.by_method.get(method):
            by_method[method] = runs
        else:
            by_method |= {name: runs for name, runs in group.by_method.items() if base_of(name) == method}
    return replace(group, by_method=by_method)


def _last(run: Run) -> float:
    return run.last_micro_f1


def _ranked(league: Group, ranks: Mapping[str, int]) -> list[str]:
    """By rank, then by the mean micro F1, on which ranks are based; bounds at the end."""

    def place(method: str) -> tuple[bool, int, float]:
        mean = fmean(run.mean_micro_f1 for run in league.by_method[method])
        return method in BOUNDS, ranks.get(method, len(ranks) + 1), -mean

    return sorted(league.methods, key=place)


def _table(league: Group, runs: Runs) -> Table:
    ranks = ranks_of(league, runs)
    picks: tuple[tuple[str, Pick], ...] = (
        ("when learned", lambda run: run.mean_when_learned),
        ("at the end", lambda run: run.mean_at_the_end),
        ("lost", lambda run: run.mean_lost),
        ("mean micro", lambda run: run.mean_micro_f1),
        ("last micro", _last),
    )
    head = ["method", "rank", *(name for name, _ in picks), f"above {FLOOR}", "way, %", "seconds", "MiB"]
    rows: list[list[str | Cell]] = []
    for method in _ranked(league, ranks):
        above = way = None
        if FLOOR in league.by_method and method != FLOOR:
            above = league.difference(method, FLOOR, _last)
            if _WAY in league.by_method and method != _WAY:
                way = share_of_the_way(league, method, _WAY, _last)
        seconds, memory = _cost(league, method)
        rows.append(
            [
                method,
                str(ranks.get(method, NONE)),
                *(shown(league.mean(method, pick)) for _, pick in picks),
                shown(above, "+"),
                NONE if way is None else number(way.mean),
                NONE if seconds is None else f"{seconds:,.0f}",
                NONE if memory is None else f"{memory:,.0f}",
            ]
        )
    return Table.of(head, rows)


def ranks_of(league: Group, runs: Runs) -> dict[str, int]:
    """For each method with counts per test sentence that shares at least two seeds with every other such
    method; empty if runs cannot be paired.
    """
    counts = {
        method: {run.seed: found for run in league.by_method[method] if (found := runs.counts(run))}
        for method in league.rivals
    }
    counts = {method: by_seed for method, by_seed in counts.items() if len(by_seed) > 1}
    counts = {
        method: by_seed
        for method, by_seed in counts.items()
        if all(len(by_seed.keys() & other.keys()) > 1 for other in counts.values())
    }
    sizes = {int(one.sentences) for by_seed in counts.values() for one in by_seed.values()}
    if len(sizes) != 1 or len(counts) < 2:
        return {}
    weights = draws(sizes.pop())
    scores: Scores = {
        method: {seed: resampled(one, weights) for seed, one in by_seed.items()}
        for method, by_seed in counts.items()
    }
    return {method: 1 + sum(_surely_better(scores, other, method) for other in scores) for method in scores}


def _surely_better(scores: Scores, one: str, other: str) -> bool:
    found = None if one == other else compare(scores, one, other, "micro")
    return found is not None and found.sure and found.value > 0


def _cost(league: Group, method: str) -> tuple[float | None, float | None]:
    """(seconds, MiB), means over seeds."""
    seconds = league.mean(method, lambda run: run.measured.seconds)
    memory = league.mean(method, lambda run: run.measured.peak_memory)
    return None if seconds is None else seconds.mean, None if memory is None else memory.mean / 2**20


def _costs(league: Group) -> list[Block]:
    panels: dict[str, dict[str, tuple[float, float]]] = {"seconds per run": {}, "peak memory, MiB": {}}
    for method in league.methods:
        f1 = fmean(map(_last, league.by_method[method]))
        for points, cost in zip(panels.values(), _cost(league, method), strict=True):
            if cost is not None:
                points[method] = (cost, f1)
    drawn = {unit: points for unit, points in panels.items() if points}
    if not drawn:
        return []
    title = f"What the last micro F1 costs: {league.title}"
    told = "Seconds and memory as measured, mean over seeds. Runs that share a machine are slower."
    return [picture_of(league, "league-cost", costs(drawn, title)), Paragraph(told)]


def _summary_picture(leagues: Sequence[Group]) -> list[Block]:
    """A panel per stream, a row per method: F1 of its old types when learned and at the end. Empty if no old
    type has enough mentions in the test data.
    """
    ends = [_ends(league) for league in leagues]
    methods = list(dict.fromkeys(method for league in leagues for method in league.methods))

    def behind(method: str) -> float:
        """Points at the end below the best of a stream: streams differ, and a method may lack some."""
        there = [panel for panel in ends if method in panel]
        return fmean(max(end for _, end in panel.values()) - panel[method][1] for panel in there)

    drawn = [method for method in methods if any(method in panel for panel in ends)]
    rows = sorted(drawn, key=lambda method: (method in BOUNDS, behind(method)))
    if not rows:
        return []
    panels = [
        Ends(league.setting.data, league.setting.steps.partition(", ")[2], panel)
        for league, panel in zip(leagues, ends, strict=True)
    ]
    title = "F1 of the types of earlier steps, when learned and at the end"
    return [Picture("league", dumbbells(panels, [rows], BOUNDS, title))]


def _ends(league: Group) -> dict[str, tuple[float, float]]:
    ends = {}
    for method in league.methods:
        when = league.mean(method, lambda run: run.mean_when_learned)
        end = league.mean(method, lambda run: run.mean_at_the_end)
        if when is not None and end is not None:
            ends[method] = (when.mean, end.mean)
    return ends


def _search(searched: Mapping[str, Searched]) -> list[Block]:
    """Micro F1 on dev data of all settings tried; the chosen one in bold."""
    settings = list(dict.fromkeys(tried.setting for one in searched.values() for tried in one.tried))
    head = ["method", "knob", *settings, "searched on"]
    rows: list[list[str | Cell]] = []
    for method, one in searched.items():
        found = {tried.setting: tried for tried in one.tried}
        cells = [
            Cell(f"{found[s].dev_f1:.2f}", bold=found[s].method == one.chosen) if s in found else NONE
            for s in settings
        ]
        rows.append([method, one.knob, *cells, f"{one.searched_on}, seed {one.seed}"])
    told = (
        "What was tried on dev data: last micro F1 with once, half and twice the usual value of the knob. "
        "Bold: chosen."
    )
    return [Heading("The search", 3), Paragraph(told), Table.of(head, rows, left=2)]
