"""``cfner evaluate``: score a saved model on labelled data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from cfner.cli import options as o
from cfner.cli.settings import call_of
from cfner.cli.show import console, plain, print_json, say, scores_table, table_of

if TYPE_CHECKING:
    from cfner.practice.evaluate.evaluate import Evaluated, EvaluatedSteps


def evaluate(
    model: o.Model,
    data: Annotated[str, typer.Argument(help="A labelled file, or a folder (its test split is used).")],
    step: o.Step = None,
    all_steps: Annotated[bool, o.Flag("--all-steps", help="Score every step of the model folder.")] = False,
    save: Annotated[
        bool,
        o.Flag(
            "--save",
            help="Store the scores with the model: 'cfner history', the page and the model card show them.",
        ),
    ] = False,
    format: o.Format = None,
    tag_column: o.TagColumn = None,
    all_types: Annotated[
        bool,
        o.Flag(
            "--all-types",
            help="Also score types that the data does not label: their predictions count as wrong.",
        ),
    ] = False,
    batch_size: o.Windows = 64,
    device: o.Device = "auto",
    json: o.Json = False,
) -> None:
    """Measure entity-level precision, recall and F1 per type, and the two confusions.

    Labels of types that the model has not learned are set aside and counted. So are predictions of types that
    the data never labels, because they cannot be judged.
    """
    arguments = call_of(locals())
    from cfner.api.evaluate import evaluate as score
    from cfner.practice.evaluate.evaluate import Evaluated

    found: Evaluated | EvaluatedSteps = score(**arguments)
    _tell_left_out(found.left_out)
    if json:
        print_json(found.to_json())
    elif isinstance(found, Evaluated):
        _tell(found)
    else:
        _tell_steps(found)


def _tell_left_out(lines: Sequence[str]) -> None:
    """On standard error, to keep JSON output clean."""
    for line in lines:
        console(stderr=True).print(plain(f"{line}."), soft_wrap=True)


def _tell(found: Evaluated) -> None:
    screen, scores = console(), found.scores
    screen.print(scores_table(scores, f"{found.on.label}, on {found.device}"))
    lost = scores.confusions
    if lost is not None and lost.old_to_other is not None:
        screen.print(f"Words of old types taken for O: {lost.old_to_other:.1f} %")
    if lost is not None and lost.to_new is not None:
        screen.print(f"Words of O or old types taken for the newest types: {lost.to_new:.2f} %")
    if found.unknown:
        say(f"Set aside, {found.set_aside} mentions of types not learned: {', '.join(found.unknown)}")
    if found.unlabelled:
        say(f"Set aside, types that this data does not label: {', '.join(found.unlabelled)}")
    if found.saved:
        say("The scores are stored with the model.")


def _tell_steps(found: EvaluatedSteps) -> None:
    from cfner.evaluation.measured import over_all

    def cell(number: int, type_: str) -> str:
        scores = found.scores[number]
        return f"{scores.counts[type_].f1:.1f}" if type_ in scores.types else "·"

    rows = [[type_, *(cell(number, type_) for number in found.scores)] for type_ in found.types]
    whole = {number: over_all(scores.types, found.known[number]) for number, scores in found.scores.items()}
    for name in ("micro", "macro"):
        figures = {number: getattr(scores, f"{name}_f1") for number, scores in found.scores.items()}
        rows.append([name, *(f"{figures[number]:.1f}" if whole[number] else "·" for number in found.scores)])
    columns = ["type", *(f"step {number}" for number in found.scores)]
    console().print(table_of(columns, rows, title=f"F1 on {found.on.label}, on {found.device}"))
    if not all(whole.values()):
        numbers = ", ".join(str(number) for number, all_ in whole.items() if not all_)
        say(f"No mean for step {numbers}: this data does not label all types that the model knows there.")
    if found.saved:
        say("The scores are stored with the model: see 'cfner history'.")
