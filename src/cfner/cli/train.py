"""``cfner train``: a whole stream."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from cfner.cli.options import (
    BatchSize,
    Config,
    DeviceSetting,
    EncoderRate,
    Every,
    Format,
    HeadRate,
    Json,
    MinMentions,
    Preset,
    ScoreEvery,
    Set,
    TagColumn,
    Use,
)
from cfner.cli.settings import from_flags, load_methods
from cfner.cli.show import console, matrix_table, plain, print_json, training_progress

if TYPE_CHECKING:
    from cfner.stream.stream import TaskStream
    from cfner.training.config import TrainingConfig

Flag = typer.Option


def train(
    data: Annotated[str, typer.Argument(help="A folder with train, dev and test files; see 'cfner data'.")],
    out: Annotated[Path, Flag("--out", "-o", help="Folder for the models and results.json.")],
    # the stream
    first: Annotated[int, Flag(min=1, help="Types in the first step (FG).")] = 1,
    per_step: Annotated[int, Flag(min=1, help="Types in each later step (PG).")] = 1,
    order: Annotated[
        str | None, Flag(help="Types in the order of learning, comma-separated; else alphabetical.")
    ] = None,
    sampling: Annotated[
        str, Flag(help="How sentences go to steps: greedy (the paper's) or random.")
    ] = "greedy",
    min_mentions: MinMentions = 50,
    every: Every = 1,
    score_every: ScoreEvery = None,
    score_on: Annotated[
        str, Flag(help="Split that steps are scored on: test, or dev when choosing settings.")
    ] = "test",
    format: Format = None,
    tag_column: TagColumn = None,
    # the method
    method: Annotated[str | None, Flag("--method", "-m", help="See 'cfner methods'. Default: cfner.")] = None,
    use: Use = None,
    without: Annotated[
        list[str] | None, Flag(help="Leave out a part of the method (ablation); may be repeated.")
    ] = None,
    k: Annotated[int | None, Flag("--k", min=0, help="Matched tokens per anchor.")] = None,
    delta_1: Annotated[
        float | None, Flag("--delta-1", min=0, help="Curriculum threshold, first epoch.")
    ] = None,
    delta_m: Annotated[
        float | None, Flag("--delta-m", min=0, help="Curriculum threshold from epoch m on.")
    ] = None,
    m: Annotated[int | None, Flag("--m", min=1, help="Epoch at which delta_m is reached.")] = None,
    lambda_base: Annotated[float | None, Flag(min=0, help="Weight of keeping the old.")] = None,
    t_student: Annotated[float | None, Flag("--t-student", min=0, help="Temperature of the student.")] = None,
    t_teacher: Annotated[float | None, Flag("--t-teacher", min=0, help="Temperature of the teacher.")] = None,
    # the training
    encoder: Annotated[
        str | None, Flag("--encoder", "-e", help="Hub name, folder, or minilm. Default: bert-base-cased.")
    ] = None,
    epochs: Annotated[int | None, Flag(min=1, help="Epochs per step.")] = None,
    patience: Annotated[
        int | None, Flag(min=1, help="Stop a step after so many epochs without a better dev F1.")
    ] = None,
    batch_size: BatchSize = None,
    lr_encoder: EncoderRate = None,
    lr_head: HeadRate = None,
    precision: Annotated[
        str | None, Flag(help="fp32, bf16, or auto: bf16 where the hardware has it.")
    ] = None,
    matches: Annotated[str | None, Flag(help="Matched predictions: bank or exact.")] = None,
    seed: Annotated[
        int | None, Flag(min=0, help="Seed of the split and of the training. Default: 0.")
    ] = None,
    tracker: Annotated[list[str] | None, Flag(help="Where losses are logged, e.g. tensorboard.")] = None,
    preset: Preset = None,
    config: Config = None,
    set_: Set = None,
    device: DeviceSetting = None,
    # the run
    resume: Annotated[bool, Flag("--resume", help="Go on with the run in --out.")] = False,
    dry_run: Annotated[bool, Flag("--dry-run", help="Say what would be done, and stop.")] = False,
    json: Json = False,
) -> None:
    """Learn a stream of entity types step by step, score every step, and save every step's model."""
    paper = {
        "k": k,
        "delta_1": delta_1,
        "delta_m": delta_m,
        "m": m,
        "lambda_base": lambda_base,
        "t_student": t_student,
        "t_teacher": t_teacher,
    }
    flags: dict[str, Any] = {
        "encoder": encoder,
        "method": method,
        "without": tuple(without) if without else None,
        "epochs": epochs,
        "patience": patience,
        "batch_size": batch_size,
        "lr_encoder": lr_encoder,
        "lr_head": lr_head,
        "precision": precision,
        "matches": matches,
        "seed": seed,
        "trackers": tuple(tracker) if tracker else None,
        "device": device,
    }
    from cfner.benchmark.streams import Division, Source
    from cfner.methods import create
    from cfner.training.config import TrainingConfig

    load_methods(use)
    settings = TrainingConfig.build(from_flags(flags, set_, paper), file=config, preset=preset)
    create(settings.method, settings.parameters, settings.without)  # a wrong one is an error before any work
    source = Source(
        data,
        format=format,
        tag_column=tag_column,
        every=every,
        score_every=score_every,
        score_on=score_on,
        min_mentions=min_mentions,
        order=tuple(part.strip() for part in order.split(",")) if order else None,
    )
    stream = Division(first, per_step, sampling).stream(source.read(), source, settings.seed)
    if dry_run:
        _tell_plan(stream, settings, json)
        return
    _run(stream, settings, out, resume, json)


def _tell_plan(stream: TaskStream, config: TrainingConfig, as_json: bool) -> None:
    manifest = stream.manifest()
    if as_json:
        print_json({"manifest": manifest, "config": config.model_dump(mode="json")})
        return

    title = plain(f"{stream.corpus_name}, {stream.setting}")
    table = Table("step", "types", "sentences", "mentions", title=title)
    for step in stream:
        mentions = sum(len(sentence.spans) for sentence in step.train)
        table.add_row(str(step.index + 1), plain(", ".join(step.types)), str(len(step.train)), str(mentions))
    screen = console()
    screen.print(table)
    for warning in manifest.get("warnings", []):
        screen.print(plain(f"Note: {warning}"))
    if stream.dropped_types:
        dropped = ", ".join(f"{name} ({count})" for name, count in stream.dropped_types.items())
        screen.print(plain(f"Dropped, fewer than {stream.min_mentions} mentions: {dropped}"))
    updates = sum(len(step.train) for step in stream) * config.epochs
    said = (
        f"{config.method} on {config.encoder}, {config.epochs} epochs a step: {updates:,} sentences "
        f"to learn from in all. Split {manifest['hash'][:12]}. Nothing was trained."
    )
    screen.print(plain(said))


def _run(stream: TaskStream, config: TrainingConfig, out: Path, resume: bool, as_json: bool) -> None:
    from cfner.runs.stream_run import run_stream

    progress = training_progress()
    result, tagger = run_stream(stream, config, out, resume=resume, progress=progress)
    if not tagger.accelerator.is_main_process:
        return
    if as_json:
        print_json(result.to_json())
        return
    screen = console()
    title = f"F1 of {result.method} on {stream.corpus_name}, {stream.setting}, seed {config.seed}"
    screen.print(matrix_table(result.matrix, title))
    screen.print(
        f"Mean over steps: micro {result.matrix.mean_micro:.2f}, macro {result.matrix.mean_macro:.2f}. "
        f"{result.seconds:.0f} s on {tagger.device}."
    )
    screen.print(plain(f"Models and results.json: {out}"))
