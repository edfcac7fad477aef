"""``cfner calibrate``: make scores reliable, and promise a precision."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cfner.cli import options as o
from cfner.cli.settings import call_of
from cfner.cli.show import console, print_json, say, table_of

if TYPE_CHECKING:
    from cfner.practice.calibrate.calibrate import CalibrationReport
    from cfner.practice.calibrate.measure import Share


def calibrate(
    model: Annotated[Path, typer.Argument(help="A model folder.")],
    data: Annotated[
        str,
        typer.Argument(
            help="Labelled sentences that the model was not trained on: a file, or a folder (its dev split "
            "is used)."
        ),
    ],
    precision: Annotated[
        float | None,
        o.Flag(
            min=0,
            max=1,
            help="Make types stricter until this share of their mentions is right, such as 0.95. Default: "
            "only scores change, not what is found.",
        ),
    ] = None,
    html: o.Html = None,
    overwrite: o.ReplaceHtml = False,
    format: o.Format = None,
    tag_column: o.TagColumn = None,
    batch_size: o.Windows = 64,
    device: o.Device = "auto",
    json: o.Json = False,
) -> None:
    """Make scores reliable: of the mentions with score 0.8, 80 % should be right.

    This adds a step with the same weights, used by all commands and exports; 'cfner rollback' undoes it. With
    --precision, that precision is promised for a type if a test at 95 % shows it for text of the same
    kind. Types with too few mentions are not changed, and nothing is promised for them.
    """
    arguments = call_of(locals())
    from cfner.api.calibrate import calibrate as measure

    report = measure(**arguments)
    if json:
        print_json(report.to_json())
    else:
        _tell(report)


def _tell(report: CalibrationReport) -> None:
    rows = [
        (
            one.type,
            str(one.mentions),
            _change(one.before.precision, one.after.precision),
            _change(one.before.recall, one.after.recall),
            _share(one.before.error),
            _share(one.after.error),
            one.verdict,
        )
        for one in report.types
    ]
    columns = ("type", "gold", "precision", "recall", "error before", "error after", "verdict")
    title = f"{report.sentences:,} sentences of {report.data}, 95 % intervals"
    table = table_of(columns, rows, title=title, narrow=True)
    for column in table.columns[1:]:
        column.no_wrap = True
    console().print(table)
    say(
        "error: expected calibration error, the average difference between score and precision. After: "
        "measured by cross-validation, on sentences that were not used for fitting (five parts)."
    )
    if report.precision is not None:
        say(
            f"promised: a precision of {report.precision:g} was shown for text like this (a test at 95 %). "
            "aimed at: reached here, but not certain. not reached: the type stays as it was."
        )
    if report.unlabelled:
        say(f"Not labelled in this data, so left as they are: {', '.join(report.unlabelled)}")
    if report.unknown:
        say(f"Set aside, types that the model does not know: {', '.join(report.unknown)}")
    say(
        f"Step {report.step} of {report.folder} is current now. To undo it: cfner rollback {report.folder} "
        f"{report.parent}"
    )


def _change(before: Share | None, after: Share | None) -> str:
    old, new = ("·" if share is None else f"{share.value:.2f}" for share in (before, after))
    return old if old == new else f"{old} → {new}"


def _share(share: Share | None) -> str:
    return "·" if share is None else f"{share.value:.2f} [{share.low:.2f}, {share.high:.2f}]"
