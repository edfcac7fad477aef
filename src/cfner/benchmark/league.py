"""A league: all methods on the same streams, each at the best of three settings of its knob.

The knob is the weight of keeping old types, or the learning rates where a method has no such weight. Half,
once and twice the usual value are tried on dev data, with one seed on one stream. Bounds are also tried with
twice as many updates. Then every method is scored on test data, with its best setting and different seeds.
The search is part of the grid: it is never done twice, and the usual value is the same run as in any other
grid.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from cfner.benchmark.cells import Cell, MethodChoice
from cfner.benchmark.grid import GridFolder, Planned, cells_of
from cfner.benchmark.league_file import UPDATES, Searched, Tried
from cfner.benchmark.streams import Division, Source
from cfner.benchmark.yardstick import STREAMS
from cfner.methods.registry import create, method_class
from cfner.training.config import USUAL_EPOCHS, TrainingConfig

FACTORS: Final = {"× 1": 1.0, "× 0.5": 0.5, "× 2": 2.0}  # the usual value first: it wins ties
RATES: Final = "the learning rates"
JUDGED_BY: Final = "last_micro_f1"


@dataclass(frozen=True)
class LeagueStream:
    """A corpus, its division into steps, and the settings that all methods have on it."""

    source: Source
    division: Division
    config: TrainingConfig


def league_stream(
    path: str,
    config: TrainingConfig,
    given: Collection[str],
    *,
    first: int | None = None,
    per_step: int | None = None,
    every: int | None = None,
    score_every: int | None = None,
    min_mentions: int | None = None,
) -> LeagueStream:
    """``given``: the settings that the user chose. A corpus of the yardstick otherwise has the yardstick's
    division and settings, so that its runs are shared with it.
    """
    own = next((stream for stream in STREAMS if stream.corpus == Path(path).name), None)
    if own is None:
        source = Source(
            path,
            every=every or 1,
            score_every=score_every,
            min_mentions=50 if min_mentions is None else min_mentions,
        )
        # a number, not the usual rule, which depends on the sentences: only that can be doubled for bounds
        fixed = config.model_copy(update={"epochs": config.epochs or USUAL_EPOCHS})
        return LeagueStream(source, Division(first or 1, per_step or 1), fixed)
    usual = own.source(Path(path).parent, "test", text=False)
    source = replace(
        usual,
        every=every or usual.every,
        score_every=score_every or usual.score_every,
        min_mentions=usual.min_mentions if min_mentions is None else min_mentions,
    )
    division = Division(first or own.first, per_step or own.per_step)
    return LeagueStream(source, division, config.model_copy(update=own.settings(given)))


def knob_of(method: str, config: TrainingConfig) -> tuple[str, dict[str, float]]:
    """(the name of a method's knob; its usual values by parameter). A weight of 0 cannot be tried."""
    kind = method_class(method)
    known = {k: v for k, v in config.parameters.items() if k in kind.Parameters.model_fields}
    if kind.knob is not None:
        usual = getattr(create(method, known, as_published=config.as_published).parameters, kind.knob)
        if usual:
            return kind.knob, {kind.knob: float(usual)}
    return RATES, {"lr_encoder": config.lr_encoder, "lr_head": config.lr_head}


def settings_of(method: str, config: TrainingConfig) -> dict[str, MethodChoice]:
    """The settings to try, by what they change. With the usual one it is the same run as in any grid."""
    values = knob_of(method, config)[1]
    changed = {
        setting: {k: v * factor for k, v in values.items()} if factor != 1 else {}
        for setting, factor in FACTORS.items()
    }
    if method_class(method).from_scratch:  # a ceiling must not be low because it was trained too briefly
        changed[UPDATES] = {"epochs": 2 * (config.epochs or USUAL_EPOCHS)}
    return {setting: MethodChoice(method, tuple(sorted(own.items()))) for setting, own in changed.items()}


def search_cells(
    methods: Sequence[str], stream: LeagueStream, seed: int, uses: Sequence[str] = ()
) -> list[Cell]:
    """The runs of the search, scored on dev data."""
    source = replace(stream.source, score_on="dev")
    choices = [choice for method in methods for choice in settings_of(method, stream.config).values()]
    return list(cells_of([source], [stream.division], choices, [seed], stream.config, uses))


def scored_cells(
    choices: Sequence[MethodChoice], stream: LeagueStream, seeds: Sequence[int], uses: Sequence[str] = ()
) -> list[Cell]:
    """Each method with its chosen setting, scored on test data."""
    return list(cells_of([stream.source], [stream.division], choices, seeds, stream.config, uses))


def choose(folder: GridFolder, planned: Sequence[Planned], stream: LeagueStream) -> dict[str, Searched]:
    """The best setting of each method, by F1 after the last step on dev data.

    ``planned``: the cells of the search, which must be finished.
    """
    by_name = {one.cell.method: one for one in planned}
    found = {}
    for method in dict.fromkeys(one.cell.config.method for one in planned):
        tried = []
        for setting, choice in settings_of(method, stream.config).items():
            one = by_name[str(choice)]
            tried.append(Tried(setting, str(choice), float(folder.result(one)[JUDGED_BY]), one.key))
        best = max(tried, key=lambda row: row.dev_f1)  # the first of equals
        knob, _ = knob_of(method, stream.config)
        where = f"{planned[0].data} {stream.division.setting}"
        found[method] = Searched(knob, best.method, tuple(tried), where, planned[0].cell.seed)
    return found
