"""``cfner bench run`` and ``reproduce``: grids of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cfner.cli import options as o
from cfner.cli.settings import from_flags, load_methods, names
from cfner.cli.show import console, plain, say, table_of
from cfner.errors import ConfigError

if TYPE_CHECKING:
    from cfner.benchmark.backends import Backend
    from cfner.benchmark.cells import Cell
    from cfner.benchmark.grid import Job
    from cfner.training.config import TrainingConfig

Flag = o.Flag

Out = Annotated[Path, Flag("--out", "-o", help="Folder of the grid. Run again, the command resumes there.")]
Seeds = Annotated[
    str | None, Flag(help="Seeds, comma-separated. Default: the setting 'seed' if given, else several.")
]
Set = Annotated[list[str] | None, Flag("--set", help="Any other setting, as NAME=VALUE; for all methods.")]
Jobs = Annotated[int | None, Flag(min=1, help="Parallel runs. Default: as many as fit this machine.")]
Processes = Annotated[int, Flag(min=1, help="Processes (GPUs) per run, through accelerate.")]
Ray = Annotated[
    str | None, Flag("--ray", help="Address of a Ray cluster, 'auto', or 'local' to start one here.")
]
Cores = Annotated[int, Flag(min=1, help="With --ray: cores per run.")]
Gpus = Annotated[float, Flag(min=0, max=1024, help="With --ray: GPUs per run.")]
KeepModels = Annotated[bool, Flag("--keep-models", help="Keep each finished run's models, step by step.")]


def run(
    data: Annotated[list[str], Flag("--data", "-d", help="A corpus; may be repeated.")],
    out: Out,
    methods: Annotated[
        str | None,
        Flag(
            "--methods",
            "-m",
            help="Comma-separated; each may be 'NAME with k=1 & lambda_base=1' or 'NAME without effect_o'. "
            "'all': every method, the default unless a setting names one.",
        ),
    ] = None,
    first: o.First = 1,
    per_step: o.PerStep = 1,
    settings: Annotated[
        str | None, Flag(help="Several settings instead, as comma-separated FG-PG: 1-1,8-2.")
    ] = None,
    order: o.Order = None,
    sampling: Annotated[str, Flag(help="greedy, random, or both, comma-separated.")] = "greedy",
    labels: Annotated[
        str, Flag(help="own; none, current: old slices kept (the paper's Figure 1); comma-separated.")
    ] = "own",
    seeds: Seeds = None,
    encoder: o.Encoder = None,
    epochs: o.Epochs = None,
    every: o.Every = 1,
    score_every: o.ScoreEvery = None,
    score_on: o.ScoreOn = "test",
    unlabelled: o.Unlabelled = None,
    unlabelled_ratio: o.UnlabelledRatio = None,
    min_mentions: o.MinMentions = 50,
    preset: o.Preset = None,
    config: o.Config = None,
    set_: Set = None,
    use: o.Use = None,
    device: o.DeviceSetting = None,
    jobs: Jobs = None,
    processes: Processes = 1,
    ray: Ray = None,
    cores: Cores = 1,
    gpus: Gpus = 0,
    keep_models: KeepModels = False,
    dry_run: o.DryRun = False,
) -> None:
    """Compare methods: one run for each data x setting x method x seed.

    Stop it at any time and run the command again: finished runs are kept.
    """
    uses = load_methods(use)
    given_flags = from_flags(locals(), set_)
    from cfner.benchmark.cells import MethodChoice, parse_methods
    from cfner.benchmark.grid import cells_of
    from cfner.benchmark.streams import REST, Division, Source
    from cfner.methods import create, method_names
    from cfner.training.config import TrainingConfig, given_settings

    given = given_settings(given_flags, file=config)
    common = TrainingConfig.build(given, preset=preset)
    if methods is None and "method" in given:
        create(common.method, common.parameters, common.without)
        chosen = [MethodChoice(common.method, (), common.without)]
    elif common.without:
        raise ConfigError(
            "The setting 'without' applies to one method, but several are compared.",
            remedy="Write --methods 'NAME without PART', or name one with --set method=NAME.",
        )
    else:
        chosen = parse_methods(
            ",".join(method_names()) if methods is None or methods.strip() == "all" else methods
        )
    sources = [
        Source(
            place(path),
            every=every,
            score_every=score_every,
            score_on=score_on,
            min_mentions=min_mentions,
            order=tuple(names(order)) if order else None,
            unlabelled=tuple(text if text == REST else place(text) for text in unlabelled or ()),
        )
        for path in data
    ]
    divisions = [
        Division(fg, pg, how, which)
        for fg, pg in (settings_of(settings) if settings else [(first, per_step)])
        for how in names(sampling)
        for which in names(labels)
    ]
    cells = list(cells_of(sources, divisions, chosen, seeds_of(seeds, common, 3), common, uses))
    carry_out(cells, out, None, locals())


def reproduce(
    name: Annotated[str, typer.Argument(help="table1, table-ablation, figure-steps ...; 'list' lists all.")],
    out: Annotated[Path | None, Flag("--out", "-o", help="Folder of the grid. Default: runs/NAME.")] = None,
    root: Annotated[
        Path | None, Flag(help="Folder with the paper's corpora: i2b2, ontonotes5, conll2003.")
    ] = None,
    corpus: Annotated[
        list[str] | None, Flag(help="Use only this corpus of the paper; may be repeated.")
    ] = None,
    data: Annotated[
        str | None, Flag("--data", "-d", help="Make the same comparison on this corpus instead.")
    ] = None,
    first: o.First = 1,
    per_step: o.PerStep = 1,
    min_mentions: o.MinMentions = 50,
    anyway: Annotated[
        bool, Flag("--anyway", help="Run even if the corpora's counts differ from the paper's.")
    ] = False,
    seeds: Seeds = None,
    encoder: o.Encoder = None,
    epochs: o.Epochs = None,
    every: o.Every = 1,
    score_every: o.ScoreEvery = None,
    preset: Annotated[str, Flag(help="'paper': the paper's settings; 'none': cfner's.")] = "paper",
    set_: Set = None,
    device: o.DeviceSetting = None,
    jobs: Jobs = None,
    processes: Processes = 1,
    ray: Ray = None,
    cores: Cores = 1,
    gpus: Gpus = 0,
    keep_models: KeepModels = False,
    dry_run: o.DryRun = False,
) -> None:
    """Reproduce a table or figure of the paper, on its corpora or on other data."""
    given = from_flags(locals(), set_)
    from cfner.benchmark.reproduce import RECIPES, cells_on_other_data, cells_on_paper_corpora, expected_files
    from cfner.benchmark.streams import Source
    from cfner.training.config import TrainingConfig

    if name == "list":
        _tell_recipes()
        return
    common = TrainingConfig.build(given, preset=None if preset == "none" else preset)
    if data is not None:
        source = Source(place(data), every=every, score_every=score_every, min_mentions=min_mentions)
        cells = cells_on_other_data(name, source, (first, per_step), common, seeds_of(seeds, common, 5))
    elif root is not None:
        cells = cells_on_paper_corpora(
            name,
            root,
            common,
            seeds_of(seeds, common, 5),
            only=corpus or (),
            every=every,
            anyway=anyway,
            epochs_given="epochs" in given,
        )
    else:
        raise ConfigError(
            f"There is no data for '{name}'. {expected_files(name)}",
            remedy="Give --root, or --data CORPUS --first FG --per-step PG for other data. "
            f"The tables and figures are {', '.join(RECIPES)}.",
        )
    carry_out(cells, out or Path("runs") / name, name, locals())


def yardstick(
    root: Annotated[Path, typer.Argument(help="Folder with the corpora of the yardstick.")],
    out: Out = Path("runs/yardstick"),
    stream: Annotated[
        list[str] | None,
        Flag(help="Only this stream, by its corpus; may be repeated. Default: all but the long one."),
    ] = None,
    methods: Annotated[
        str | None, Flag(help="Methods trained on the slices only, comma-separated; '' for none.")
    ] = None,
    methods_with_text: Annotated[
        str | None, Flag(help="Methods that also get unlabelled text, comma-separated; '' for none.")
    ] = None,
    seeds: Annotated[
        str, Flag(help="Seeds, comma-separated. To choose settings: 0,1 on dev data.")
    ] = "2,3,4",
    score_on: o.ScoreOn = "test",
    unlabelled_ratio: o.UnlabelledRatio = None,
    set_: Set = None,
    use: o.Use = None,
    device: o.DeviceSetting = None,
    jobs: Jobs = None,
    processes: Processes = 1,
    ray: Ray = None,
    cores: Cores = 1,
    gpus: Gpus = 0,
    keep_models: KeepModels = False,
    dry_run: o.DryRun = False,
) -> None:
    """Measure methods on fixed streams, with and without unlabelled text, and compare with upper and lower
    bounds."""
    uses = load_methods(use)
    given = from_flags(locals(), set_)
    from cfner.benchmark.yardstick import yardstick_cells
    from cfner.training.config import TrainingConfig

    common = TrainingConfig.build(given)
    cells = yardstick_cells(
        root,
        common,
        seeds_of(seeds, common, 3),
        score_on=score_on,
        streams=stream or (),
        slices_only=methods,
        with_text=methods_with_text,
        uses=uses,
        given=given,
    )
    carry_out(cells, out, "yardstick", locals())


def _backend(given: Mapping[str, Any]) -> Backend:
    """Where jobs run; set up only if there is something to run. ``given``: the arguments."""
    from cfner.benchmark.backends import LocalProcesses, RayCluster

    processes = given["processes"]
    if given["ray"] is None:
        return LocalProcesses.sized(given["jobs"], processes)
    return RayCluster.at(given["ray"], cores=given["cores"], gpus=given["gpus"], processes=processes)


def carry_out(cells: Sequence[Cell], out: Path, name: str | None, given: Mapping[str, Any]) -> None:
    """``given``: the command's arguments."""
    from cfner.benchmark.grid import RESULTS, GridFolder, plan
    from cfner.benchmark.runner import run_grid
    from cfner.cli.grid_view import GridView
    from cfner.store.pretrained import require_encoder

    screen = console(stderr=True)
    planned = plan(cells)
    for line in dict.fromkeys(
        f"Note: {one.data} {one.cell.division.setting}: {what}." for one in planned for what in one.left_out
    ):
        screen.print(plain(line), soft_wrap=True)
    folder = GridFolder(out)
    if given["dry_run"]:
        for one in planned:
            say(
                f"{one.key} {one.cell.method}, {one.data} {one.cell.division.setting} "
                f"{one.cell.division.sampling}, seed {one.cell.seed}",
                wrap=False,
            )
        done = len(folder.finished(planned))
        finished = f", {done} of them finished before" if done else ""
        screen.print(f"{len(planned)} runs{finished}. Nothing was trained.")
        return
    if given["ray"] is None:  # a cluster's machines may have encoders that this one does not
        for encoder in dict.fromkeys(one.cell.config.encoder for one in planned):
            require_encoder(encoder)
    jobs = folder.add(planned, name, keep_models=given["keep_models"])
    finished_before = len(planned) - _cells(jobs)
    if finished_before:
        screen.print(f"{finished_before} of {len(planned)} runs were finished before.")
    with GridView(screen) as view:
        standing = run_grid(folder, jobs, _backend(given), view)
    say(
        f"{out / RESULTS}: {len(planned) - _cells(standing.failed)} of {len(planned)} runs. "
        f"Tables and pictures: cfner bench report {out}",
        wrap=False,
    )
    if standing.failed:
        screen.print(
            f"{len(standing.failed)} failed; their errors are in {out}/grid.json. The same command "
            "tries them again."
        )
        raise typer.Exit(1)


def _cells(jobs: Sequence[Job]) -> int:
    """How many of the jobs are runs: first steps that several runs share are jobs too."""
    return sum(job.folder.parent.name == "cells" for job in jobs)


def _tell_recipes() -> None:
    from cfner.benchmark.reproduce import RECIPES, Recipe

    def settings(recipe: Recipe) -> str:
        return "; ".join(
            f"{corpus} {', '.join(f'{a}-{b}' for a, b in pairs)}" for corpus, pairs in recipe.settings.items()
        )

    rows = ([name, recipe.what, settings(recipe)] for name, recipe in RECIPES.items())
    columns = ("name", "what", "corpora of the paper and their settings (FG-PG)")
    console().print(table_of(columns, rows, left=3))


def place(data: str) -> str:
    """An absolute path, for other processes; a dataset name on the hub unchanged."""
    return str(Path(data).resolve()) if Path(data).exists() else data


def seeds_of(text: str | None, config: TrainingConfig, usual: int) -> list[int]:
    if text is None:
        return [config.seed] if "seed" in config.model_fields_set else list(range(usual))
    try:
        return [int(part) for part in names(text)]
    except ValueError:
        raise ConfigError(
            f"--seeds takes comma-separated integers, got '{text}'.", remedy="Write --seeds 0,1,2."
        ) from None


def settings_of(text: str) -> list[tuple[int, int]]:
    try:
        return [(int(first), int(second)) for first, second in (part.split("-") for part in names(text))]
    except ValueError:
        raise ConfigError(
            f"--settings takes comma-separated pairs FG-PG, got '{text}'.", remedy="Write --settings 1-1,8-2."
        ) from None
