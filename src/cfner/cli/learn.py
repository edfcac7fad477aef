"""``cfner learn``: teach an existing model new types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cfner.cli import options as o
from cfner.cli.estimate_view import in_short, tell_estimate
from cfner.cli.guard_view import tell_guard, tell_remedies, why_refused
from cfner.cli.panels import first_options
from cfner.cli.settings import call_of
from cfner.cli.show import console, print_json, say
from cfner.cli.type_bars import tell_before_after

if TYPE_CHECKING:
    from cfner.practice.learn.agreement import AgreementReport
    from cfner.practice.learn.learned import Learned
    from cfner.runs.cost import Cost

REFUSED = 3  # exit code: the guard refused the new model

Flag = o.Flag


@first_options(
    *("out", "in_place", "types", "guard", "max_forgetting", "unlabelled", "replay"),
    *("method", "epochs", "json"),
)
def learn(
    model: o.Checkpoint,
    data: Annotated[str, typer.Argument(help="Text labelled with the new types: a file or a folder.")],
    out: Annotated[
        Path | None, Flag("--out", "-o", help="Folder for the new model; it must not exist yet.")
    ] = None,
    in_place: Annotated[bool, Flag("--in-place", help="Add the step to the model itself.")] = False,
    # what is learned
    types: o.Types = None,
    old_labels: o.OldLabels = "error",
    replay: Annotated[
        Path | None, Flag(help="A few old sentences to mix in, labelled with old types.")
    ] = None,
    unlabelled: Annotated[
        list[Path] | None,
        Flag(
            help="Unlabelled text like the model's usual input: a file or a corpus "
            "folder. It reminds the model of old types; a part of it is held out to compare old and new "
            "model. Repeatable."
        ),
    ] = None,
    unlabelled_ratio: o.UnlabelledRatio = None,
    # how it is judged
    guard: Annotated[
        Path | None,
        Flag(help="Sentences labelled with old types. A model that forgot them is refused (exit code 3)."),
    ] = None,
    max_forgetting: Annotated[float, Flag(min=0, help="F1 points that an old type may lose.")] = 2.0,
    accept_forgetting: o.AcceptForgetting = None,
    folds: Annotated[
        int | None,
        Flag(
            min=0,
            help="Number of cross-validation models that estimate the scores of the new types. "
            "Default: 5, or one held-out part if every type has 300 mentions; none if there is a test file. "
            "0: no estimate.",
        ),
    ] = None,
    min_new_f1: Annotated[
        float | None,
        Flag("--min-new-f1", min=0, max=100, help="Refuse a model whose new types have a lower F1."),
    ] = None,
    strict: o.Strict = False,
    # how it is trained
    method: Annotated[
        str | None,
        Flag("--method", "-m", help="See 'cfner methods'. Default: the model's, or own-other."),
    ] = None,
    use: o.Use = None,
    without: o.Without = None,
    epochs: o.Epochs = None,
    patience: o.Patience = None,
    batch_size: o.BatchSize = None,
    lr_encoder: o.EncoderRate = None,
    lr_head: o.HeadRate = None,
    seed: Annotated[int | None, Flag(min=0, help="Seed of the training.")] = None,
    preset: o.Preset = None,
    config: o.Config = None,
    set_: o.Set = None,
    device: o.DeviceSetting = None,
    # how the data is read
    format: o.Format = None,
    tag_column: o.TagColumn = None,
    every: o.Every = 1,
    dev_share: Annotated[
        float,
        Flag(min=0, help="Share of the sentences to hold out, where a single part is held out."),
    ] = 0.15,
    unchecked: Annotated[
        bool,
        Flag("--unchecked", help="Learn even if 'cfner check' finds errors."),
    ] = False,
    html: o.Html = None,
    overwrite: o.ReplaceHtml = False,
    json: o.Json = False,
) -> None:
    """Teach a model new entity types from text labelled only with them, and report whether it kept the old.

    The old model is never changed: the new one goes to --out, or is added as a step (--in-place) that
    'cfner rollback' can undo. The data is checked first: warnings are printed, and errors stop
    the command ('cfner check' prints details).
    """
    arguments = call_of(locals()) | {"html": None}  # the page is written after everything is printed
    from cfner.api.learn import learn as learn_types

    if html is not None:
        from cfner.corpus.writers import refuse_existing

        refuse_existing(html, overwrite)  # now, and again when the page is written
    learned = learn_types(**arguments)
    if json:
        print_json(learned.to_json())
    else:
        _tell(learned)
    if html is not None:  # last: the step is saved even if writing the page fails
        from cfner.pages.page import write_page
        from cfner.practice.learn.page import page

        write_page(html, page(learned), overwrite=overwrite)
        if not json:
            say(f"The page is in {html}.", wrap=False)
    if not learned.accepted:
        raise typer.Exit(REFUSED)


def _tell(learned: Learned) -> None:
    screen = console()
    plan = learned.plan
    for what, types in (("Learned", plan.new), ("More data for", plan.more), ("Ignored", plan.ignored)):
        if types:
            say(f"{what}: {', '.join(types)}")
    if "dev_f1" in learned.epochs[learned.best_epoch - 1]:
        screen.print(f"Epoch {learned.best_epoch} of {len(learned.epochs)} was kept.")
    tell_estimate(screen, learned.estimate)
    if learned.reminders is not None:
        say(_reminders(learned.reminders))
    if learned.guard is not None:
        tell_guard(screen, learned.guard)
    else:
        screen.print("No labelled old data was given (--guard), so forgetting could not be measured as F1.")
    say(learned.promise)
    if learned.not_reminded:
        say(f"The new data does not mention {', '.join(learned.not_reminded)}: see --unlabelled.")
    for report in learned.agreement:
        tell_agreement(report)
    tell_carried(learned.calibrated)
    tell_cost(learned.cost)
    tell_before_after(screen, learned.guard, learned.estimate)
    if short := in_short(learned.estimate, learned.guard):
        say(short, "bold")
    if learned.accepted:
        say(f"The new model is step {learned.step} of {learned.folder}.")
        old = f"{learned.folder}@{learned.parent}"
        say(f"Look at what changed: cfner diff {old} {learned.folder}@{learned.step} TEXT")
    else:
        say(f"REFUSED: {_reasons(learned)}. The new model is saved separately in {learned.folder}.")
    tell_remedies(learned.what_to_try)


def _reasons(learned: Learned) -> str:
    reasons = [why_refused(learned.guard)] if learned.guard and learned.guard.refused else []
    if learned.below:
        reasons.append(f"{', '.join(learned.below)} not found well enough (--min-new-f1)")
    return "; ".join(reasons)


def _reminders(reminders: Mapping[str, Any]) -> str:
    found = ", ".join(f"{type_} {count:,}" for type_, count in reminders["mentions"].items())
    count = reminders["sentences"]
    return f"Trained on {count:,} unlabelled sentences too; the old model finds in them: {found}."


def tell_carried(calibrated: Sequence[str]) -> None:
    if calibrated:
        say(
            f"The calibration of {', '.join(calibrated)} was measured before this step and was copied. "
            "Measure it again: cfner calibrate MODEL held-out.conll"
        )


def tell_cost(cost: Cost) -> None:
    say(
        f"Cost: the step takes {cost.disk / 1e6:.1f} MB on disk besides what it shares with earlier steps; a "
        f"sentence takes {1000 * cost.after:.1f} ms ({1000 * cost.before:.1f} ms before)."
    )


def tell_agreement(report: AgreementReport) -> None:
    said = "neither model finds an old type" if report.agreement is None else f"{report.agreement:.1f} %"
    low = [t for t in report.types if t.agreement is not None and t.agreement < 80 and t.old >= 5]
    seen = "some of it was also trained on" if report.trained_on else "not trained on"
    text = f"Agreement (not F1) of the old and the new model on old types, on {report.where} "
    text += f"({report.sentences:,} sentences, {seen}): {said}."
    if low:
        text += " Lowest: " + ", ".join(
            f"{t.type} {t.agreement:.0f} %" for t in sorted(low, key=lambda t: t.agreement or 0)[:5]
        )
    say(text)
