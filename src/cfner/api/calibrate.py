"""``calibrate``: make scores reliable, and promise a precision."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cfner.api.arguments import PathLike
from cfner.corpus.in_memory import Data

if TYPE_CHECKING:
    from cfner.practice.calibrate.calibrate import CalibrationReport


def calibrate(
    model: PathLike,
    data: Data,
    *,
    precision: float | None = None,
    html: PathLike | None = None,
    overwrite: bool = False,
    format: str | None = None,
    tag_column: str | int | None = None,
    batch_size: int = 64,
    device: str = "auto",
) -> CalibrationReport:
    """Make scores reliable: of the mentions with score 0.8, 80 % should be right.

    This adds a step with the same weights; ``rollback`` undoes it. Types with too few mentions are not
    changed.

    Args:
        model: A model folder.
        data: Labelled sentences that the model was not trained on: a file, a folder (its dev split is used),
            or data in memory (see ``Corpus.read``).
        precision: Make types stricter until this share of their mentions is right, such as 0.95. Default:
            only scores change, not what is found.
        html: Write a self-contained page to this file.
        overwrite: Replace an existing ``html`` file.
        format: Format of the data's files. Default: detected.
        tag_column: Column or field of the tags: a name, or a number from 0.
        batch_size: Windows per batch, at most.
        device: "auto" (a GPU if there is one), "cpu", "cuda", "cuda:N" or "mps".

    Returns:
        The measurements of each type before and after, and the new step's number.
    """
    from cfner.corpus.writers import refuse_existing
    from cfner.pages.page import write_page
    from cfner.practice.calibrate.calibrate import calibrate as measure
    from cfner.practice.calibrate.page import page

    if html is not None:
        refuse_existing(Path(html), overwrite)  # now, and again when the page is written
    report = measure(
        model,
        data,
        precision=precision,
        format=format,
        tag_column=tag_column,
        batch_size=batch_size,
        device=device,
    )
    if html is not None:
        write_page(Path(html), page(report), overwrite=overwrite)
    return report
