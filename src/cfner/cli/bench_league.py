"""``cfner bench league`` and ``merge``: all methods side by side, on one machine or several."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cfner.cli import bench_run as b
from cfner.cli import options as o
from cfner.cli.settings import from_flags, load_methods, names
from cfner.cli.show import console, say
from cfner.errors import ConfigError

Flag = o.Flag


def league(
    data: Annotated[
        list[str],
        Flag(
            "--data",
            "-d",
            help="A corpus; may be repeated. Corpora of the yardstick use its steps and settings.",
        ),
    ],
    out: b.Out = Path("runs/league"),
    seeds: Annotated[str, Flag(help="Seeds of the test, comma-separated.")] = "2,3,4",
    methods: Annotated[str | None, Flag("--methods", "-m", help="Comma-separated. Default: all.")] = None,
    search_on: Annotated[
        str | None, Flag(help="The corpus on whose dev split settings are chosen. Default: the first.")
    ] = None,
    search_seed: Annotated[int, Flag(min=0, help="Seed of the search for settings.")] = 0,
    first: Annotated[int | None, Flag(min=1, help="Types in the first step.")] = None,
    per_step: Annotated[int | None, Flag(min=1, help="Types in each later step.")] = None,
    every: Annotated[int | None, Flag(min=1, help="Use only every n-th sentence of the data.")] = None,
    score_every: o.ScoreEvery = None,
    min_mentions: Annotated[int | None, Flag(min=0, help="Drop types with fewer training mentions.")] = None,
    encoder: o.Encoder = None,
    epochs: o.Epochs = None,
    preset: o.Preset = None,
    config: o.Config = None,
    set_: b.Set = None,
    use: o.Use = None,
    device: o.DeviceSetting = None,
    jobs: b.Jobs = None,
    processes: b.Processes = 1,
    ray: b.Ray = None,
    cores: b.Cores = 1,
    gpus: b.Gpus = 0,
    keep_models: b.KeepModels = False,
    dry_run: o.DryRun = False,
) -> None:
    """Compare all methods, each at the best of three values of its main parameter, chosen on dev data.

    The search is part of the grid. Stop it at any time and run the command again: finished runs are kept.
    """
    given_flags = from_flags(locals(), set_)
    arguments = locals()
    from cfner.benchmark.cells import MethodChoice
    from cfner.benchmark.grid import GridFolder, plan
    from cfner.benchmark.league import LeagueStream, choose, league_stream, scored_cells, search_cells
    from cfner.benchmark.league_file import read_league, write_league
    from cfner.methods import method_class, method_names
    from cfner.training.config import TrainingConfig, given_settings

    uses = load_methods(use)
    given = given_settings(given_flags, file=config, preset=preset)
    common = TrainingConfig.build(given)
    chosen_names = names(methods) or method_names()
    for name in chosen_names:
        method_class(name)
    places = [b.place(path) for path in data]
    searched = places[0] if search_on is None else b.place(search_on)
    shape = {"first": first, "per_step": per_step, "every": every}
    shape |= {"score_every": score_every, "min_mentions": min_mentions}
    streams = {path: league_stream(path, common, given, **shape) for path in {*places, searched}}
    numbers = b.seeds_of(seeds, common, 3)
    if search_seed in numbers:
        raise ConfigError(
            f"Seed {search_seed} is used both to choose settings and to test them.",
            remedy="Choose another with --search-seed, or other --seeds.",
        )
    searching, screen = streams[searched], console(stderr=True)
    cells = search_cells(chosen_names, searching, search_seed, uses)
    folder, planned = GridFolder(out), plan(cells)
    complete = len(folder.finished(planned)) == len(planned)
    screen.print(
        f"Search: {len(planned)} runs of {len(chosen_names)} methods on dev data, seed {search_seed}."
    )
    b.carry_out(cells, out, "league", arguments)
    best = {} if dry_run and not complete else choose(folder, planned, searching)
    if best:
        screen.print("Test: each method with the setting that was best on dev data.")
        if not dry_run:
            write_league(out, read_league(out) | best)
    else:
        screen.print("Test: with the default settings; the search may choose different ones.")

    def choices(stream: LeagueStream) -> list[MethodChoice]:
        if not best:
            return [MethodChoice(name) for name in chosen_names]
        return [MethodChoice.parse(one.chosen_for(stream.config.epochs)) for one in best.values()]

    tested = [
        cell
        for stream in map(streams.__getitem__, places)
        for cell in scored_cells(choices(stream), stream, numbers, uses)
    ]
    b.carry_out(tested, out, "league", arguments)


def merge(
    grids: Annotated[list[Path], typer.Argument(help="Folders of grids.")],
    out: Annotated[Path, Flag("--out", "-o", help="A new folder, or an existing grid to add to.")],
    results_only: Annotated[
        bool,
        Flag("--results-only", help="Copy results without features, logs and unfinished runs, to publish."),
    ] = False,
) -> None:
    """Join grids that were computed on several machines. Contradicting results are an error."""
    from cfner.benchmark.merge import merge as joined

    done = joined(grids, out, results_only=results_only)
    more = f" {done.same} were in several grids, with the same result." if done.same else ""
    summary = (
        f"{out}: {done.new} finished runs were added.{more} Tables and pictures: cfner bench report {out}"
    )
    say(summary, wrap=False)
