"""``cfner consolidate``: distil many experts into one network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cfner.cli import options as o
from cfner.cli.guard_view import tell_guard, why_refused
from cfner.cli.learn import REFUSED, tell_agreement, tell_carried, tell_cost
from cfner.cli.settings import call_of
from cfner.cli.show import console, print_json, say

Flag = o.Flag


def consolidate(
    model: Annotated[Path, typer.Argument(help="A model folder whose current step has experts.")],
    text: Annotated[
        Path,
        typer.Argument(
            help="Text of your domain, without labels: a file of lines, JSON lines or CoNLL columns."
        ),
    ],
    out: Annotated[
        Path | None, Flag("--out", "-o", help="Folder for the new model; it must not exist yet.")
    ] = None,
    in_place: Annotated[bool, Flag("--in-place", help="Add the step to the model itself.")] = False,
    guard: Annotated[
        Path | None,
        Flag(help="Labelled sentences: a model that forgot their types is refused (exit code 3)."),
    ] = None,
    max_forgetting: Annotated[float, Flag(min=0, help="F1 points that a type may lose.")] = 2.0,
    accept_forgetting: o.AcceptForgetting = None,
    strict: o.Strict = False,
    epochs: o.Epochs = None,
    batch_size: o.BatchSize = None,
    lr_encoder: o.EncoderRate = None,
    lr_head: o.HeadRate = None,
    seed: Annotated[int | None, Flag(min=0, help="Seed of the training.")] = None,
    config: o.Config = None,
    set_: o.Set = None,
    device: o.DeviceSetting = None,
    json: o.Json = False,
) -> None:
    """Distil all experts into one network, as fast and as small as before the first expert.

    The experts teach it on the text. The result is a new step, which 'cfner rollback' undoes.
    """
    arguments = call_of(locals())
    from cfner.api.consolidate import consolidate as make_one

    made = make_one(**arguments)
    if json:
        print_json(made.to_json())
    else:
        screen = console()
        say(f"{made.experts} experts taught one network, on {made.sentences} sentences ({made.device}).")
        if made.guard is not None:
            tell_guard(screen, made.guard)
        else:
            screen.print("No labelled data was given (--guard), so forgetting could not be measured as F1.")
        for report in made.agreement:
            tell_agreement(report)
        tell_carried(made.calibrated)
        tell_cost(made.cost)
        if made.accepted:
            say(f"The new model is step {made.step} of {made.folder}.")
        else:
            why = why_refused(made.guard) if made.guard else ""
            say(f"REFUSED: {why}. The new model was saved separately as {made.folder}.")
            screen.print("What may help: more text that mentions these types, more --epochs.")
    if not made.accepted:
        raise typer.Exit(REFUSED)
