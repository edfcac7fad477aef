"""Published figures beside one's own: in the same setting where there are any, and for orientation."""

from __future__ import annotations

from collections.abc import Sequence

from cfner.benchmark.published import Figure, load, same_corpus
from cfner.benchmark.report.document import Block, Heading, Paragraph, Table
from cfner.benchmark.report.grouping import NONE, Group, number
from cfner.benchmark.report.reading import Setting


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


def published_pair(figure: Figure | None) -> tuple[str, str]:
    """Micro and macro, with a dagger where the print is doubtful."""
    if figure is None:
        return NONE, NONE
    return (
        _printed(figure.micro, figure.micro_std, figure.doubtful),
        _printed(figure.macro, figure.macro_std, figure.doubtful),
    )


def _printed(value: float | None, std: float | None, doubtful: str | None) -> str:
    if value is None:
        return NONE
    deviation = "" if std is None else f" ± {std:.2f}"
    return f"{number(value)}{deviation}{'†' if doubtful else ''}"


def dagger_notes(published: dict[str, Figure], methods: Sequence[str]) -> list[Block]:
    """Why figures that are shown have a dagger; where published figures come from."""
    figures = [published[method] for method in methods if method in published]
    blocks: list[Block] = []
    if figures:
        places: dict[str, set[str]] = {}
        for figure in figures:
            places.setdefault(figure.source, set()).add(figure.where)
        sources = [f"{source}, {', '.join(sorted(where))}" for source, where in places.items()]
        blocks.append(Paragraph(f"Published: {'; '.join(sources)}. bert-base-cased on the whole corpus."))
    doubts = dict.fromkeys(figure.doubtful for figure in figures if figure.doubtful)
    return blocks + [Paragraph(f"† {doubt}") for doubt in doubts]


def orientation(groups: Sequence[Group]) -> list[Block]:
    """All published comparisons: of the corpora that were run, or of all where none of them was."""
    published = load()
    names = list(dict.fromkeys(figure.data for figure in published.figures))
    ran = [name for name in names if any(same_corpus(name, group.setting.data) for group in groups)]
    blocks: list[Block] = [Heading("Published figures, for orientation")]
    blocks.append(
        Paragraph(
            "Mean micro / macro F1 over all steps as others have published them, with bert-base-cased on the "
            "whole corpora. Set them beside runs of another encoder or of a part of a corpus only with care."
        )
    )
    doubts: dict[str, None] = {}
    shown: list[Figure] = []
    for name in ran or names:
        figures = [
            figure
            for figure in published.figures
            if figure.data == name and figure.table in {"main", "combination", "later"}
        ]
        blocks += [Heading(name, 3), _table(figures)]
        doubts |= {figure.doubtful: None for figure in figures if figure.doubtful}
        shown += figures
    blocks += [Paragraph(f"† {doubt}") for doubt in doubts]
    sources = dict.fromkeys(figure.source for figure in shown)
    return [*blocks, Paragraph(f"Sources: {'. '.join(sources)}.")]


def _table(figures: Sequence[Figure]) -> Table:
    settings = sorted({(figure.first, figure.per_step) for figure in figures})
    rows: dict[str, dict[tuple[int, int], str]] = {}
    for figure in figures:
        pair = "/".join(
            f" {NONE} " if value is None else f" {number(value)} " for value in (figure.micro, figure.macro)
        ).strip()
        cell = pair + ("†" if figure.doubtful else "")
        rows.setdefault(figure.printed, {}).setdefault((figure.first, figure.per_step), cell)
    return Table.of(
        ["method", *(f"FG-{first}-PG-{per_step}" for first, per_step in settings)],
        [[name, *(row.get(setting, NONE) for setting in settings)] for name, row in rows.items()],
    )
