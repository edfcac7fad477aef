"""``cfner history``, ``rollback``, ``rename``, ``merge``, ``forget``, ``prune``: a model's steps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cfner.cli import options as o
from cfner.cli.show import console, print_json, say, table_of
from cfner.cli.type_bars import tell_heat_map

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfner.practice.history.history import PastStep, StepFigures

Model = Annotated[Path, typer.Argument(help="A model folder.")]


_WIDE = 100  # terminal width from which size and date are shown too


def history(
    model: Model,
    verify: Annotated[
        bool, o.Flag("--verify", help="Check every byte and the lineage of every step.")
    ] = False,
    json: o.Json = False,
) -> None:
    """List a model's steps: what each learned, from which step it came, how it scored, which is current."""
    from cfner.api.history import history as past

    steps = past(model, verify=verify)
    if json:
        print_json([step.to_json() for step in steps])
        return

    screen = console()
    wide = screen.width >= _WIDE
    rows = (
        [
            "▶" if step.current else "",
            str(step.number),
            str(step.parent or "·"),
            _what(step),
            ", ".join(step.types),
            step.method or "·",
            _sentences(step),
            _f1(step, step.figures),
            *([f"{step.disk / 1e6:.1f}", step.saved[:10]] if wide else []),
        ]
        for step in steps
    )
    columns = ["", "step", "from", "what", "types", "method", "text", "micro F1"]
    columns += ["MB", "saved"] if wide else []
    table = table_of(columns, rows, title=f"{len(steps)} steps of {model}", left=len(columns), narrow=True)
    for column in table.columns:
        column.overflow = "fold"
        column.no_wrap = column.header not in {"what", "types"}
    screen.print(table)
    say("text: labelled + unlabelled sentences. micro F1 (2/4): over 2 of the 4 types that the step knows.")
    for step in steps:
        if step.origin is not None:
            say(f"Step {step.number} came from a step of another folder (hash {step.origin[:16]}).")
    _tell_series(steps)
    _tell_estimates(steps)
    tell_heat_map(screen, steps)
    if verify:
        screen.print("All files are unchanged since they were saved, and every step's parent is there.")
        if pruned := [str(step.number) for step in steps if step.pruned]:
            say(f"The weights of step {', '.join(pruned)} were removed (cfner prune).")


def _f1(step: PastStep, figures: StepFigures | None) -> str:
    """Micro F1; with the number of types, if it does not cover all that the step knows."""
    if figures is None or figures.micro_f1 is None:
        return "·"
    types, known = len(figures.types), len(step.all_types)
    return f"{figures.micro_f1:.1f}" + (f" ({types}/{known})" if types < known else "")


def _tell_series(steps: Sequence[PastStep]) -> None:
    """What the figures were measured on; then figures on other sentences, separately."""
    if main := next((step.figures for step in steps if step.figures is not None), None):
        say(f"Micro F1 of all steps is on the same sentences: {main.label}.")
    others: dict[object, list[tuple[PastStep, StepFigures]]] = {}
    for step in steps:
        for each in step.elsewhere:
            others.setdefault(each.on or (step.number, each.label), []).append((step, each))
    if others:
        say("On other sentences, not comparable with those above:" if main else "Not comparable:")
    for rows in others.values():
        figures = ", ".join(f"step {step.number} {_f1_or_types(step, each)}" for step, each in rows)
        say(f"  {rows[0][1].label}: {figures}")


def _tell_estimates(steps: Sequence[PastStep]) -> None:
    """Scores of each step's types when it was learned; not comparable between steps."""
    for step in steps:
        if step.estimate is not None and step.estimate.types:
            how = step.estimate.in_words()
            say(f"Step {step.number} when it was learned, F1 with 95 % intervals ({how}):")
            say(f"  {step.estimate.figures()}")


def _f1_or_types(step: PastStep, figures: StepFigures) -> str:
    if figures.on is not None:
        return _f1(step, figures)
    return "; ".join(f"{type_} {f1:.1f}" for type_, f1 in figures.per_type.items()) or "·"


def _what(step: PastStep) -> str:
    name = step.name if step.kind in {"rename", "merge", "forget", "calibrate"} else step.kind
    carried = step.calibrated and step.kind != "calibrate"
    name += f" (calibrated before: {len(step.calibrated)} types)" if carried else ""
    return f"{name} (pruned)" if step.pruned else name


def _sentences(step: PastStep) -> str:
    """The number of labelled sentences, and of unlabelled ones used as reminders."""
    unlabelled = ((step.data or {}).get("reminders") or {}).get("sentences")
    return str(step.sentences or "·") + (f" + {unlabelled}" if unlabelled else "")


def rollback(
    model: Model,
    step: Annotated[
        int, typer.Argument(min=1, help="The step to go back (or forward) to; see 'cfner history'.")
    ],
    json: o.Json = False,
) -> None:
    """Make another step the current one. Nothing is deleted, so a rollback can be undone the same way."""
    from cfner.api.history import rollback as go_back

    _tell(go_back(model, step), model, json)


def rename(
    model: Model,
    old: Annotated[str, typer.Argument(help="The type's current name.")],
    new: Annotated[str, typer.Argument(help="Its new name.")],
    json: o.Json = False,
) -> None:
    """Rename an entity type, as a new step with the same weights."""
    from cfner.api.history import rename as give_name

    _tell(give_name(model, old, new), model, json)


def merge(
    model: Model,
    types: Annotated[list[str], typer.Argument(help="The types to merge.")],
    into: Annotated[str, o.Flag(help="The name of the merged type; may be one of TYPES.")],
    json: o.Json = False,
) -> None:
    """Merge several entity types into one, as a new step with the same weights."""
    from cfner.api.history import merge as make_one

    _tell(make_one(model, types, into), model, json)


def forget(
    model: Model,
    types: Annotated[list[str], typer.Argument(help="The types to remove.")],
    json: o.Json = False,
) -> None:
    """Remove entity types, as a new step with the same weights: the model no longer finds them.

    The scores of all other types stay the same. 'cfner rollback' brings the types back, and they can be
    learned again.
    """
    from cfner.api.history import forget as take_away

    _tell(take_away(model, types), model, json)


def prune(
    model: Model,
    keep: Annotated[int, o.Flag(min=1, help="How many of the latest steps keep their weights.")],
    dry_run: o.DryRun = False,
    json: o.Json = False,
) -> None:
    """Free the disk space of old steps: their weights are deleted permanently, their record stays.

    The current step is always kept. So is an older step that shares all its weights with a kept one:
    deleting it would free nothing. A pruned step can no longer be used or rolled back to.
    """
    from cfner.api.history import prune as remove_weights

    done = remove_weights(model, keep, dry_run=dry_run)
    if json:
        print_json(done.to_json())
        return
    if not done.steps:
        say("There is nothing to remove.")
        return
    verb, steps = "Would remove" if dry_run else "Removed", ", ".join(map(str, done.steps))
    say(f"{verb} the weights of step {steps} of {model}: {done.freed / 1e6:.1f} MB on disk.")
    if done.shared:
        say(f"Another {done.shared / 1e6:.1f} MB are shared with other folders and stay on disk.")


def _tell(step: PastStep, model: Path, as_json: bool) -> None:
    if as_json:
        print_json(step.to_json())
        return
    types = ", ".join(step.all_types)
    say(f"Step {step.number} of {model} is current now ({step.name}). It knows: {types}.")
    if step.uncalibrated:
        say(f"The calibration of {', '.join(step.uncalibrated)} is no longer valid and was dropped.")
