"""Published figures next to the runs: for the same setting where there are any, and for orientation."""

from __future__ import annotations

from collections.abc import Sequence

from cfner.benchmark.published import Figure, load, same_corpus
from cfner.benchmark.report.document import Block, Heading, Paragraph, Table
from cfner.benchmark.report.grouping import NONE, Group, number, shown
from cfner.benchmark.report.reading import Setting
from cfner.evaluation.forgetting import MeanStd


def beside(setting: Setting) -> dict[str, Figure]:
    """By method: what the paper prints for the same corpus, steps and sampling; its main table first."""
    if setting.labels != "own":
        return {}
    found: dict[str, Figure] = {}
    for figure in load().of(setting.data, setting.first, setting.per_step):
        if figure.table == "later" or (figure.table == "random sampling") != (setting.sampling == "random"):
            continue
        found.setdefault(figure.method, figure)
    return found


def printed(figure: Figure | None, kind: str, *, deviation: bool = True) -> str:
    """Micro or macro, with a dagger if the printed figure is doubtful."""
    if figure is None or (value := getattr(figure, kind)) is None:
        return NONE
    std = getattr(figure, f"{kind}_std") if deviation else None
    return shown(MeanStd(value, std)) + _dagger(figure)


def _dagger(figure: Figure) -> str:
    return "†" if figure.doubtful else ""


def _why_daggers(figures: Sequence[Figure]) -> list[Block]:
    doubts = dict.fromkeys(figure.doubtful for figure in figures if figure.doubtful)
    return [Paragraph(f"† {doubt}") for doubt in doubts]


def published_notes(published: dict[str, Figure], methods: Sequence[str]) -> list[Block]:
    """The sources of published figures, and why some have a dagger."""
    figures = [published[method] for method in methods if method in published]
    if not figures:
        return []
    places: dict[str, set[str]] = {}
    for figure in figures:
        places.setdefault(figure.source, set()).add(figure.where)
    sources = [f"{source}, {', '.join(sorted(where))}" for source, where in places.items()]
    told = Paragraph(f"Published: {'; '.join(sources)}. bert-base-cased on the complete corpus.")
    return [told, *_why_daggers(figures)]


def orientation(groups: Sequence[Group]) -> list[Block]:
    """All published comparisons on the corpora that were run, or on all corpora if none of them was."""
    figures = [figure for figure in load().figures if figure.table in {"main", "combination", "later"}]
    names = list(dict.fromkeys(figure.data for figure in figures))
    ran = [name for name in names if any(same_corpus(name, group.setting.data) for group in groups)]
    listed = [figure for name in ran or names for figure in figures if figure.data == name]
    sources = dict.fromkeys(figure.source for figure in listed)
    told = (
        "Published mean micro / macro F1 over all steps, with bert-base-cased on the complete corpora. "
        "Compare them only with care with runs of a different encoder or on a part of a corpus."
    )
    blocks: list[Block] = [Heading("Published figures, for orientation"), Paragraph(told)]
    for name in ran or names:
        blocks += [Heading(name, 3), _table([figure for figure in listed if figure.data == name])]
    return [*blocks, *_why_daggers(listed), Paragraph(f"Sources: {'. '.join(sources)}.")]


def _table(figures: Sequence[Figure]) -> Table:
    settings = sorted({(figure.first, figure.per_step) for figure in figures})
    rows: dict[str, dict[tuple[int, int], str]] = {}
    for figure in figures:
        cell = f"{number(figure.micro)} / {number(figure.macro)}{_dagger(figure)}"
        rows.setdefault(figure.printed, {}).setdefault((figure.first, figure.per_step), cell)
    return Table.of(
        ["method", *(f"FG-{first}-PG-{per_step}" for first, per_step in settings)],
        [[name, *(row.get(setting, NONE) for setting in settings)] for name, row in rows.items()],
    )
