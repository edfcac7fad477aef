"""``cfner check``: look at data before a model learns from it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from cfner.cli import options as o
from cfner.cli.settings import call_of
from cfner.cli.show import (
    console,
    plain,
    print_json,
    say,
    say_read,
    splits_table,
    table_of,
)
from cfner.cli.spelling import in_shell

if TYPE_CHECKING:
    from cfner.practice.check.curve import LearningCurve
    from cfner.practice.check.findings import CheckReport, Finding, LearnPlan, TimeEstimate

_ROWS = 12  # types shown in the table; 'cfner data describe' shows all
_LOOKS = {"error": ("✗", "bold red"), "warning": ("!", "yellow"), "note": ("·", "cyan")}


_ADVICE = {
    "label more": "label more; the second half of the sentences clearly helped.",
    "more of the same helps little": "more sentences like these would help little.",
    "too early to tell": "it is too early to say whether more sentences would help.",
}


def check(
    data: o.Data,
    model: Annotated[
        str | None,
        o.Flag(
            "--model",
            "-M",
            help="The model that will learn from it: a model folder (M@3: its step 3), or a checkpoint.",
        ),
    ] = None,
    types: o.Types = None,
    old_labels: o.OldLabels = "error",
    unlabelled: Annotated[
        list[Path] | None,
        o.Flag(help="Unlabelled text for 'cfner learn': a file or a folder; repeatable."),
    ] = None,
    method: Annotated[
        str | None, o.Flag(help="Method to learn with; see 'cfner methods'. Default: the model's.")
    ] = None,
    epochs: o.Epochs = None,
    device: o.DeviceSetting = None,
    timing: Annotated[
        bool, o.Flag("--timing/--no-timing", help="Time some batches, about 10 seconds.")
    ] = True,
    curve: Annotated[
        bool,
        o.Flag(
            "--curve",
            help="Train on a quarter, half and all of the data to see whether more labels would help. Takes "
            "longer than 'cfner learn'.",
        ),
    ] = False,
    curve_picture: Annotated[
        Path | None, o.Flag(help="Draw the curve as a picture into this file (.svg).")
    ] = None,
    overwrite: Annotated[
        bool, o.Flag("--overwrite", help="Replace an existing --curve-picture file.")
    ] = False,
    format: o.Format = None,
    tag_column: o.TagColumn = None,
    json: o.Json = False,
) -> None:
    """Report what is in the data, what looks wrong, what 'cfner learn' would do, and how long it would take.

    Nothing is written except --curve-picture. Exit code 0: no errors, perhaps warnings; 1: 'cfner learn'
    would refuse the data; 2: the data or the model cannot be read.
    """
    arguments = call_of(locals())
    from cfner.api.check import check as check_data

    report = check_data(**arguments)
    if json:
        print_json(report.to_json() | ({} if model is None else {"device": _device(device)}))
    else:
        _tell(report)
    raise typer.Exit(report.exit_code)


def _device(name: str | None) -> str:
    from cfner.network.device import choose_device

    return str(choose_device(name or "auto"))


def _tell(report: CheckReport) -> None:
    screen = console()
    say_read(report.name, report.reading, report.types)
    splits = {name: facts for name, facts in report.splits.items() if facts.sentences}
    table = splits_table(splits, report.types[:_ROWS], "words")
    if len(report.types) > _ROWS:
        table.add_row(f"… {len(report.types) - _ROWS} more", style="dim")
    screen.print(table)
    for finding in report.findings:
        _tell_finding(screen, finding)
    if not report.findings:
        screen.print("Nothing suspicious.", style="green")
    screen.print()
    if report.plan is not None:
        say(_plan(report.plan, with_model=report.model is not None))
    if report.time is not None:
        say(_time(report.time))
    if report.curve is not None:
        _tell_curve(screen, report.curve)
    title = "'cfner learn' would refuse the data. After correcting it:" if report.errors else "Next:"
    screen.print(title, style="bold")
    # not wrapped, so that it can be copied
    say(f"  {report.next_command}", wrap=False)


def _tell_curve(screen: Console, curve: LearningCurve) -> None:
    rows = [
        (
            gain.type,
            *(f"{f1.value:.1f} [{f1.low:.0f}, {f1.high:.0f}]" for _, f1 in curve.f1(gain.type)),
            f"{gain.points.value:+.1f} [{gain.points.low:+.0f}, {gain.points.high:+.0f}]",
        )
        for gain in curve.gains
    ]
    columns = ("type", *(f"{count:,} sentences" for count in curve.sentences), "last half")
    screen.print(table_of(columns, rows, title="F1 by number of sentences (95 % intervals)"))
    for gain in curve.gains:
        say(f"{gain.type}: {_ADVICE[gain.advice]}")


def _tell_finding(screen: Console, finding: Finding) -> None:
    sign, style = _LOOKS[finding.severity]
    head = Text.assemble((f"{sign} {finding.severity}: ", style), plain(in_shell(finding.message)))
    screen.print(head)
    if finding.remedy:
        screen.print(Padding(plain(in_shell(finding.remedy)), (0, 0, 0, 2)), style="dim")
    if finding.command:
        say(f"    {finding.command}", wrap=False)  # so that it can be copied
    if finding.where:
        # not wrapped, so that it can be copied into an editor
        say(f"  at {finding.where}", "dim", wrap=False)


def _plan(plan: LearnPlan, *, with_model: bool) -> str:
    from cfner.practice.check.findings import some

    if not with_model:
        return f"A model trained on this data would learn {some(plan.new, _ROWS)}."
    parts = {"learn": plan.new, "learn more about": plan.more, "ignore the labels of": plan.ignored}
    actions = [f"{verb} {some(types, _ROWS)}" for verb, types in parts.items() if types]
    kept = f", keeping {some(plan.kept, _ROWS)}" if plan.kept else ""
    rows = f" ({plan.kept_rows} label rows stay as they are)" if plan.kept_rows else ""
    more = f" and {plan.unlabelled_sentences:,} unlabelled ones" if plan.unlabelled_sentences else ""
    return (
        f"'cfner learn' would {', '.join(actions)}{kept}{rows}. Method {plan.method}, {plan.epochs} epochs "
        f"over {plan.train_sentences:,} sentences{more}; {_epoch(plan)}. {_scored(plan)}"
    )


def _epoch(plan: LearnPlan) -> str:
    if not plan.chooses_epoch:
        return "the last epoch is kept"
    if not plan.dev_sentences:
        return "the models of the estimate choose the epoch" if plan.folds else "the last epoch is kept"
    source = "held out from train" if plan.dev_held_out else "of dev"
    return f"{plan.dev_sentences:,} sentences {source} choose the epoch"


def _scored(plan: LearnPlan) -> str:
    if plan.test_sentences:
        return f"The new types are scored on {plan.test_sentences:,} sentences that it is not trained on."
    if not plan.folds:
        return "There are too few sentences to score the new types."
    models = "one held-out part" if plan.folds == 1 else f"cross-validation with {plan.folds} models"
    return f"The new types are estimated first, by {models}."


def _time(time: TimeEstimate) -> str:
    return (
        f"That takes about {_duration(time.low)} to {_duration(time.high)} on this machine "
        f"({time.device}; {time.batches_timed} batches timed, {time.seconds_per_batch:.2f} s each)"
        + (f", {time.estimate:.0%} of it for the estimate of the new types." if time.estimate else ".")
    )


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
