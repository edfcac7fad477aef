"""The pictures of a report, made from its groups of runs."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from cfner.benchmark.report.document import Block, Heading, Paragraph, Picture
from cfner.benchmark.report.grouping import Group, base_of
from cfner.benchmark.report.plots import Cloud, Series, bars, clouds, curves
from cfner.benchmark.report.reading import Features, Run, Runs, Setting, StepScores
from cfner.benchmark.report.tsne import tsne
from cfner.pages import svg
from cfner.pages.heat_map import Heat, heat_picture

_POINTS = 600  # exact t-SNE compares every pair
Pick = Callable[[StepScores], float | None]
_F1: Mapping[str, Pick] = {"micro F1": lambda step: step.micro_f1, "macro F1": lambda step: step.macro_f1}
_CONFUSED: Mapping[str, Pick] = {
    "words of old types taken for O, %": lambda step: step.confused("old_to_other"),
    "O and old words taken for a new type, %": lambda step: step.confused("to_new"),
}


def curve_pictures(group: Group) -> list[Block]:
    """Micro and macro F1 after each step: the methods, then each method's variants."""
    plain = [method for method in group.methods if base_of(method) == method]
    families = [("", some) for some in _parts(plain, svg.SERIES)]
    for base in dict.fromkeys(base_of(method) for method in group.methods):
        variants = [m for m in group.methods if base_of(m) == base and m != base]
        whole = [base] if base in group.by_method else []
        for some in _parts(variants, svg.SERIES - 1):
            families.append((f" ({base} and its variants)", [*whole, *some]))
    pictures = [
        _curves(group, methods, f"F1 of all types so far, after each step{whose}", f"curves-{number}", _F1)
        for number, (whose, methods) in enumerate(families, start=1)
    ]
    return [Heading("Step by step", 3), *pictures]


def _parts(methods: list[str], most: int) -> list[list[str]]:
    """Split into parts with few enough curves to distinguish."""
    return [methods[start : start + most] for start in range(0, len(methods), most)]


def confusion_pictures(group: Group) -> list[Block]:
    """The two ways in which learning new types hurts old ones. Empty where old slices are kept: their steps
    learn all types so far, so none of them is old."""
    if group.setting.labels != "own":
        return []
    methods = [m for m in group.plain if any(_confused(run) for run in group.by_method[m])]
    pictures = [
        _curves(group, some, "What is confused, after each step", f"confusion-{number}", _CONFUSED)
        for number, some in enumerate(_parts(methods, svg.SERIES), start=1)
    ]
    return [Heading("Confusions", 3), *pictures] if pictures else []


def _confused(run: Run) -> bool:
    return any(pick(step) is not None for step in run.steps for pick in _CONFUSED.values())


def _curves(
    group: Group, methods: Sequence[str], title: str, what: str, figures: Mapping[str, Pick]
) -> Picture:
    """A panel per figure, a curve per method. Variants of the first are labelled by their difference."""
    named = {m.removeprefix(f"{methods[0]} "): group.by_method[m] for m in methods}
    return picture_of(group, what, curves(_panels(named, figures), f"{title}: {group.title}"))


def _panels(named: Mapping[str, Sequence[Run]], figures: Mapping[str, Pick]) -> dict[str, Series]:
    return {
        title: {name: over_seeds(runs, pick) for name, runs in named.items()}
        for title, pick in figures.items()
    }


def over_seeds(runs: Sequence[Run], pick: Pick) -> tuple[float | None, ...]:
    """The mean of a figure over the seeds, step by step; None where no run has it."""
    means: list[float | None] = []
    for step in range(max(len(run.steps) for run in runs)):
        values = [pick(run.steps[step]) for run in runs if step < len(run.steps)]
        known = [value for value in values if value is not None]
        means.append(statistics.fmean(known) if known else None)
    return tuple(means)


def heat_map_picture(group: Group) -> list[Block]:
    """F1 by step and type, a panel per method, mean over seeds."""
    picks: list[Pick] = [*(partial(_f1_of, type_) for type_ in group.types), *_F1.values()]
    rows = (*group.types, "micro", "macro")
    panels = [
        Heat(method, rows, tuple(over_seeds(runs, pick) for pick in picks), apart=2)
        for method, runs in group.by_method.items()
    ]
    return [
        Heading("Type by type", 3),
        picture_of(group, "types", heat_picture(panels, f"F1 by step and type: {group.title}")),
        Paragraph("Mean over seeds. A row that fades from left to right is a type that is being forgotten."),
    ]


def _f1_of(type_: str, step: StepScores) -> float | None:
    return step.per_type.get(type_)


def forgetting_picture(group: Group) -> list[Block]:
    means = {method: group.mean(method, lambda run: run.mean_forgetting) for method in group.methods}
    lost = {method: mean for method, mean in means.items() if mean is not None}
    if not lost:
        return []
    unit = "points of F1 lost since a type's best step, mean over types"
    drawn = bars(lost, f"Forgetting: {group.title}", unit=unit)
    return [Heading("Forgetting", 3), picture_of(group, "forgetting", drawn)]


def feature_picture(group: Group, runs: Runs) -> list[Block]:
    """Maps of the features of test words, one per method, from its first seed that has them."""
    held: dict[str, Features] = {}
    for method in group.plain:
        found = (runs.features(run) for run in group.by_method[method])
        features = next((one for one in found if one is not None), None)
        if features is not None:
            held[method] = features
    heading = Heading("Features", 3)
    if not held:
        return [heading, Paragraph("No run saved features, so there is no map of them.")]
    types = list(dict.fromkeys(name for one in held.values() for name in one.types))
    panels = {method: _cloud(features, types) for method, features in held.items()}
    title = f"Features of test words after the last step (t-SNE): {group.title}"
    return [
        heading,
        picture_of(group, "features", clouds(panels, types, title)),
        Paragraph(
            "Each point is a word. Types that a model keeps apart form clusters; distances between clusters "
            "mean nothing. One seed per method."
        ),
    ]


def _cloud(features: Features, types: list[str]) -> Cloud:
    """Thinned evenly to a size that exact t-SNE can handle."""
    kept = np.unique(np.linspace(0, len(features.features) - 1, _POINTS).round().astype(int))
    places = tsne(features.features[kept])
    kinds = (types.index(features.types[kind]) for kind in features.type[kept])
    return [(float(x), float(y), kind) for (x, y), kind in zip(places, kinds, strict=True)]


def other_class_pictures(groups: Sequence[Group]) -> list[Block]:
    """The effect of labels in the Other class: the same data and steps with different labels."""
    blocks: list[Block] = []
    for alike in _alike(groups, lambda s: (s.stream, s.shared)):
        for method in dict.fromkeys(method for group in alike for method in group.methods):
            kept = {g.setting.labels: g.by_method[method] for g in alike if method in g.by_method}
            if len(kept) > 1:
                one = alike[0]
                title = f"Labels in the Other class ({method}): {one.setting.stream}{one.apart}"
                drawn = curves(_panels(kept, _F1), title)
                blocks.append(picture_of(one, f"other-class-{len(blocks) + 1}", drawn))
    if not blocks:
        return []
    told = (
        "own: a step has its own text, labelled with its own types, as in the rest of this report. In the "
        "other two all text so far is kept. none: each slice keeps the labels of its own step. current: "
        "the newest slice also has the labels of all types so far. The difference is the cost of labels "
        "hidden in O."
    )
    return [Heading("What the Other class hides"), Paragraph(told), *blocks]


def slice_pictures(groups: Sequence[Group]) -> list[Block]:
    """How mentions are distributed over the slices, greedy next to random where both were run."""
    blocks: list[Block] = []
    own = [group for group in groups if group.setting.labels == "own"] or list(groups)
    for alike in _alike(own, lambda s: (s.steps, s.shared)):
        runs = [next((run for run in group.runs if run.slices), None) for group in alike]
        panels = [_slices(run) for run in runs if run is not None]
        if panels:
            one = alike[0]
            title = f"Mentions per slice, in % of a type's mentions: {one.setting.steps}{one.apart}"
            blocks.append(picture_of(one, "slices", heat_picture(panels, title)))
    if not blocks:
        return []
    told = (
        "All true mentions are counted, also those whose label is hidden from the learner. Greedy sampling "
        "puts most mentions of a type into the slice in which it is learned (the steps on the diagonal)."
    )
    return [Heading("What the slices hold"), Paragraph(told), *blocks]


def _slices(run: Run) -> Heat:
    """Rows are types in the order in which they are learned, columns are slices."""
    rows = tuple(dict.fromkeys([*run.types, *(t for part in run.slices for t in sorted(part.mentions))]))
    values = []
    for type_ in rows:
        counts = [part.mentions.get(type_, 0) for part in run.slices]
        total = sum(counts)
        values.append(tuple(100 * count / total if total else None for count in counts))
    return Heat(f"{run.setting.sampling} sampling", rows, tuple(values))


def _alike(groups: Sequence[Group], key: Callable[[Setting], object]) -> list[list[Group]]:
    """Groups with a finished run, by what they share."""
    found: dict[object, list[Group]] = {}
    for group in groups:
        if group.by_method:
            found.setdefault(key(group.setting), []).append(group)
    return list(found.values())


def picture_of(group: Group, what: str, drawn: svg.Svg) -> Picture:
    """The file name has only letters, digits and hyphens, whatever the name of the data; a number makes it
    unique."""
    setting = group.setting
    data = re.sub(r"[^a-z0-9]+", "-", setting.data.lower()).strip("-")[:30].strip("-")
    parts = (str(group.number), data, f"fg{setting.first}-pg{setting.per_step}", what)
    return Picture("-".join(part for part in parts if part), drawn)
