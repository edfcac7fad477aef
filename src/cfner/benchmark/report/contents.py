"""A folder of runs as a document: the content of a report and its order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from cfner.benchmark.league_file import read_league
from cfner.benchmark.report.bounds_table import bounds_table
from cfner.benchmark.report.charts import (
    confusion_pictures,
    curve_pictures,
    feature_picture,
    forgetting_picture,
    heat_map_picture,
    other_class_pictures,
    slice_pictures,
)
from cfner.benchmark.report.document import Block, Document, Heading, Paragraph
from cfner.benchmark.report.grouping import Group, groups_of
from cfner.benchmark.report.league import at_chosen_settings, league_section
from cfner.benchmark.report.loss_chart import lost_types
from cfner.benchmark.report.published_tables import orientation
from cfner.benchmark.report.reading import Runs
from cfner.benchmark.report.score_table import score_table
from cfner.benchmark.report.significance import RESAMPLES
from cfner.benchmark.report.significance_tables import significance
from cfner.benchmark.report.summary_picture import summary_picture
from cfner.benchmark.report.tables import (
    ablation_table,
    combination_table,
    cost_table,
    not_run,
    setting_table,
)
from cfner.evaluation.type_losses import ENOUGH_MENTIONS, MANY_MENTIONS


def document(runs: Runs) -> Document:
    groups = groups_of(runs)
    lone_seed = [Paragraph(_LONE_SEED, alarm=True)]
    lone = [group.lone_seed for group in groups if group.by_method]
    everywhere = bool(lone) and all(lone)  # then the warning appears once, at the top
    blocks = [*_summary(runs), *(lone_seed if everywhere else [])]
    searched = read_league(runs.folder)
    at_their_best = [at_chosen_settings(group, searched) for group in groups]
    blocks += [*summary_picture(at_their_best, chosen=bool(searched)), *_how_to_read()]
    for group in groups:
        blocks += _group(group, runs, lone_seed if group.lone_seed and not everywhere else [])
    blocks += other_class_pictures(groups)
    blocks += slice_pictures(groups)
    blocks += orientation(groups)
    blocks += not_run(groups)
    title = f"Benchmark report: {runs.name}" if runs.name else "Benchmark report"
    return Document(title, (*league_section(runs, groups, searched), *blocks))


def _summary(runs: Runs) -> list[Block]:
    """How many runs were requested, and how many are finished."""
    counted = Counter(cell.state for cell in runs.cells)
    methods = len({cell.method for cell in runs.cells})
    seeds = len({cell.seed for cell in runs.cells})
    told = f"{len(runs.cells)} runs were requested: {_of(methods, 'method')}, {_of(seeds, 'seed')}."
    if not counted["failed"] + counted["waiting"]:
        return [Paragraph(f"{told} All of them are finished.")]
    states = {"finished": "finished", "failed": "failed", "waiting": "not run yet"}
    stand = ", ".join(f"{counted[s]} {word}" for s, word in states.items() if counted[s] or s == "finished")
    missing = f"The grid is not complete: {stand}. The last section lists what was not run."
    return [Paragraph(told), Paragraph(missing, loud=True)]


def _how_to_read() -> list[Block]:
    return [
        Heading("How to read this"),
        Paragraph(
            "F1 is in percent and counts complete mentions: the same words and the same type. Micro: over "
            "all mentions; macro: the mean over types. Mean: over all steps, the first included. Last: after "
            "the last step. ± is the standard deviation over seeds. Bold: the best mean of a column. It need "
            "not be a real difference: see the test below each table of scores."
        ),
        Paragraph(
            "FG-a-PG-b says how many types a step adds, in the paper's notation: the first step learns a "
            "types, each later step b more. FG-2-PG-1: two types first, then one at a time."
        ),
        Paragraph(
            "Forgetting, as in the paper: the best earlier F1 of a type minus its last, mean over types. "
            "When learned: F1 of a type after the step that introduced it. At the end: after the last step. "
            "Lost: the difference. These three are means over the types that were learned before the last "
            f"step and have at least {ENOUGH_MENTIONS} mentions in the test data. Worst type: the type with "
            f"the largest loss, mean over seeds, among types with at least {MANY_MENTIONS} test mentions. "
            "Lower is better for forgetting and losses."
        ),
        Paragraph(
            "A paired bootstrap tests whether a difference is real: the test sentences are resampled "
            f"{RESAMPLES} times, with the same draw for all methods and seeds. Differences are in points of "
            "F1, means over the steps and over the seeds that two methods share, with the middle 95 % of the "
            "draws in brackets; p is two-sided and not corrected for the number of comparisons. It measures "
            "the uncertainty for these trained models, not how much training varies. 'Best' is a method that "
            "is significantly better (p below 0.05) than each of the others; else it has the highest mean."
        ),
    ]


def _of(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


_LONE_SEED = (
    "Nothing can be concluded from one seed: with a different seed, the order of the methods may change. So "
    "no method is called best, and there is no p. Run at least three seeds (cfner bench run --seeds 0,1,2)."
)
_TWICE = (
    "Several runs of the same seed: {}. They differ in something that is not recorded here, the code of your "
    "own method, so their means are not means over seeds. Run changed code into a different folder."
)


def _group(group: Group, runs: Runs, alarm: Sequence[Block]) -> list[Block]:
    heading = Heading(group.title)
    if not group.by_method:
        return [heading, Paragraph("No run of this setting is finished.", loud=True)]
    absent = [m for m in dict.fromkeys(cell.method for cell in group.cells) if m not in group.by_method]
    notes = [f"Without a finished run, so not shown: {', '.join(absent)}."] if absent else []
    if group.twice:
        notes.append(_TWICE.format(", ".join(group.twice)))
    return [
        heading,
        *alarm,
        *(Paragraph(note, loud=True) for note in notes),
        *score_table(group),
        *bounds_table(group),
        *significance(group, runs),
        *ablation_table(group),
        *combination_table(group),
        *setting_table(group),
        *curve_pictures(group),
        *heat_map_picture(group),
        *lost_types(group),
        *forgetting_picture(group),
        *confusion_pictures(group),
        *feature_picture(group, runs),
        *cost_table(group),
    ]
