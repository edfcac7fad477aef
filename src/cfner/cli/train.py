"""``cfner train``: learn a stream of steps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cfner.cli import options as o
from cfner.cli.settings import call_of
from cfner.cli.show import console, matrix_table, print_json, say, table_of

if TYPE_CHECKING:
    from cfner.runs.stream_run import PlannedRun, RunResult
    from cfner.stream.stream import TaskStream
    from cfner.training.config import TrainingConfig

Flag = o.Flag


def train(
    data: Annotated[str, typer.Argument(help="A folder with train, dev and test files; see 'cfner data'.")],
    out: Annotated[Path, Flag("--out", "-o", help="Folder for the models and results.json.")],
    # the stream
    first: o.First = 1,
    per_step: o.PerStep = 1,
    order: o.Order = None,
    types: Annotated[
        str | None, Flag(help="Learn these types only, comma-separated, in alphabetical order.")
    ] = None,
    sampling: Annotated[
        str, Flag(help="How sentences are assigned to steps: greedy (the paper's) or random.")
    ] = "greedy",
    min_mentions: o.MinMentions = 50,
    every: o.Every = 1,
    score_every: o.ScoreEvery = None,
    score_on: o.ScoreOn = "test",
    unlabelled: o.Unlabelled = None,
    unlabelled_ratio: o.UnlabelledRatio = None,
    format: o.Format = None,
    tag_column: o.TagColumn = None,
    # the method
    method: Annotated[
        str | None, Flag("--method", "-m", help="See 'cfner methods'. Default: own-other.")
    ] = None,
    use: o.Use = None,
    without: o.Without = None,
    k: Annotated[int | None, Flag("--k", min=0, help="Matched tokens per anchor.")] = None,
    delta_1: Annotated[
        float | None, Flag("--delta-1", min=0, help="Curriculum threshold, first epoch.")
    ] = None,
    delta_m: Annotated[
        float | None, Flag("--delta-m", min=0, help="Curriculum threshold from epoch m on.")
    ] = None,
    m: Annotated[int | None, Flag("--m", min=1, help="Epoch at which delta_m is reached.")] = None,
    lambda_base: Annotated[float | None, Flag(min=0, help="Weight of keeping the old types.")] = None,
    t_student: Annotated[float | None, Flag("--t-student", min=0, help="Temperature of the student.")] = None,
    t_teacher: Annotated[float | None, Flag("--t-teacher", min=0, help="Temperature of the teacher.")] = None,
    # the training
    encoder: o.Encoder = None,
    epochs: o.Epochs = None,
    patience: o.Patience = None,
    batch_size: o.BatchSize = None,
    lr_encoder: o.EncoderRate = None,
    lr_head: o.HeadRate = None,
    precision: Annotated[
        str | None, Flag(help="fp32, bf16, or auto: bf16 where the hardware has it.")
    ] = None,
    matches: Annotated[str | None, Flag(help="How matched predictions are computed: bank or exact.")] = None,
    seed: Annotated[
        int | None, Flag(min=0, help="Seed of the split and of the training. Default: 0.")
    ] = None,
    trackers: Annotated[
        list[str] | None, Flag("--tracker", help="Where losses are logged, e.g. tensorboard.")
    ] = None,
    preset: o.Preset = None,
    config: o.Config = None,
    set_: o.Set = None,
    device: o.DeviceSetting = None,
    # the run
    resume: Annotated[bool, Flag("--resume", help="Resume the run in --out.")] = False,
    dry_run: o.DryRun = False,
    json: o.Json = False,
) -> None:
    """Learn a stream of entity types step by step, score every step, and save every step's model."""
    arguments = call_of(locals())
    from cfner.api.train import train as run
    from cfner.runs.stream_run import PlannedRun

    done: RunResult | PlannedRun = run(**arguments)
    if isinstance(done, PlannedRun):
        _tell_plan(done.stream, done.config, json)
    else:
        _tell(done, out, json)


def _tell_plan(stream: TaskStream, config: TrainingConfig, as_json: bool) -> None:
    manifest = stream.manifest()
    if as_json:
        print_json({"manifest": manifest, "config": config.model_dump(mode="json")})
        return

    rows = (
        [
            str(step.index + 1),
            ", ".join(step.types),
            str(len(step.train)),
            str(sum(len(sentence.spans) for sentence in step.train)),
        ]
        for step in stream
    )
    title = f"{stream.corpus_name}, {stream.setting}"
    console().print(table_of(("step", "types", "sentences", "mentions"), rows, title=title, left=4))
    for warning in manifest.get("warnings", []):
        say(f"Note: {warning}")
    epochs = [config.epochs_for(len(step.train)) for step in stream]
    read = sum(len(step.train) * times for step, times in zip(stream, epochs, strict=True))
    shown = "-".join(str(number) for number in sorted({min(epochs), max(epochs)}))
    summary = (
        f"{config.method} on {config.encoder}, {shown} epochs a step: {read:,} training "
        f"sentences in total. Split {manifest['hash'][:12]}. Nothing was trained."
    )
    say(summary)


def _tell(result: RunResult, out: Path, as_json: bool) -> None:
    from accelerate import PartialState

    from cfner.network.device import choose_device

    if not PartialState().is_main_process:
        return
    if as_json:
        print_json(result.to_json())
        return
    screen, stream, seed = console(), result.stream, result.config.seed
    title = f"F1 of {result.method} on {stream.corpus_name}, {stream.setting}, seed {seed}"
    screen.print(matrix_table(result.matrix, title))
    screen.print(
        f"Mean over steps: micro {result.matrix.mean_micro:.2f}, macro {result.matrix.mean_macro:.2f}. "
        f"{result.seconds:.0f} s on {choose_device(result.config.device)}."
    )
    say(f"Models and results.json: {out}")
