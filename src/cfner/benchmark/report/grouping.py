"""Runs that may be compared, by method; means over their seeds; and how figures are written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from cfner.benchmark.report.reading import GridCell, Run, Runs, Setting
from cfner.evaluation.forgetting import MeanStd, mean_and_std

NONE: Final = "–"
BOUNDS: Final = ("joint-own", "joint")  # train on all slices so far, so they are not compared with methods
Pick = Callable[[Run], float | None]


@dataclass(frozen=True)
class Group:
    """All runs of one setting; methods in the order in which they were requested."""

    number: int  # from 1
    setting: Setting
    apart: str  # how it differs from other groups of the same data and steps
    cells: list[GridCell]
    by_method: dict[str, list[Run]]  # only methods with a finished run

    @property
    def title(self) -> str:
        labels = self.setting.labels
        return f"{self.setting.stream}{'' if labels == 'own' else f', labels: {labels}'}{self.apart}"

    @property
    def methods(self) -> list[str]:
        return list(self.by_method)

    @property
    def rivals(self) -> list[str]:
        return [method for method in self.methods if base_of(method) not in BOUNDS]

    @property
    def runs(self) -> list[Run]:
        return [run for runs in self.by_method.values() for run in runs]

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(type_ for run in self.runs for type_ in run.types))

    @property
    def plain(self) -> list[str]:
        """The methods without their variants."""
        return [method for method in self.methods if base_of(method) == method] or self.methods

    @property
    def twice(self) -> list[str]:
        """Methods with several runs of one seed that are not repetitions: something else differs."""
        return [m for m, runs in self.by_method.items() if len({run.seed for run in runs}) < len(runs)]

    @property
    def lone_seed(self) -> bool:
        """Whether all runs have the same seed, so that chance and merit cannot be separated."""
        return len({run.seed for run in self.runs}) == 1

    def asked(self, method: str) -> int:
        return len({cell.seed for cell in self.cells if cell.method == method})

    def mean(self, method: str, pick: Pick) -> MeanStd | None:
        """Over the seeds that have the figure; None where none has."""
        values = [value for run in self.by_method[method] if (value := pick(run)) is not None]
        return mean_and_std(values) if values else None

    def difference(self, method: str, other: str, pick: Pick) -> MeanStd | None:
        """``method`` less ``other``, seed by seed, over the seeds that both have."""
        values = {run.seed: pick(run) for run in self.by_method[other]}
        apart = [
            mine - theirs
            for run in self.by_method[method]
            if (mine := pick(run)) is not None and (theirs := values.get(run.seed)) is not None
        ]
        return mean_and_std(apart) if apart else None


def groups_of(runs: Runs) -> list[Group]:
    settings = list(dict.fromkeys(cell.setting for cell in runs.cells))
    groups = []
    for number, setting in enumerate(settings, start=1):
        cells = [cell for cell in runs.cells if cell.setting == setting]
        by_method: dict[str, list[Run]] = {cell.method: [] for cell in cells}
        for run in sorted(runs.runs, key=lambda run: run.seed):
            if run.setting == setting and run.method in by_method:
                by_method[run.method].append(run)
        finished = {method: found for method, found in by_method.items() if found}
        groups.append(Group(number, setting, _apart(setting, settings), cells, finished))
    return groups


def _apart(setting: Setting, settings: Sequence[Setting]) -> str:
    """', epochs 1' if others have 6 epochs; empty where all are the same."""
    alike = {one.shared for one in settings if one.steps == setting.steps}
    recorded, mine = [dict(shared) for shared in alike], dict(setting.shared)
    names = [
        name
        for name in sorted({name for one in recorded for name in one})
        if len({one.get(name) for one in recorded}) > 1
    ]
    plain = [name for name in names if name != "text"]  # a hash means little to a reader
    if len({tuple(one.get(name) for name in plain) for one in recorded}) == len(recorded):
        names = plain
    return "".join(f", {name} {mine.get(name, 'not recorded')}" for name in names)


def base_of(method: str) -> str:
    """'cfner' of 'cfner with k=1 without effect_o'."""
    return method.partition(" with ")[0].partition(" without ")[0]


def shown(value: MeanStd | None, sign: str = "") -> str:
    """'58.94 ± 0.57'; a single seed has no deviation."""
    if value is None:
        return NONE
    return number(value.mean, sign) + ("" if value.std is None else f" ± {value.std:.2f}")


def number(value: float | None, sign: str = "") -> str:
    """With two decimals; with ``sign`` "+", positive numbers get a plus sign."""
    return NONE if value is None else f"{value:{sign}.2f}".replace("-", "−")
