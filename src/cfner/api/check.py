"""``check``: look at data before a model learns from it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from cfner.api.arguments import Names, PathLike, names, settings_of, several
from cfner.corpus.in_memory import Data, Texts

if TYPE_CHECKING:
    from cfner.practice.check.findings import CheckReport
    from cfner.training.progress import Progress


def check(
    data: Data,
    model: PathLike | None = None,
    *,
    types: Names | None = None,
    old_labels: str = "error",
    unlabelled: Texts | None = None,
    method: str | None = None,
    epochs: int | None = None,
    device: str | None = None,
    timing: bool = True,
    curve: bool = False,
    curve_picture: PathLike | None = None,
    overwrite: bool = False,
    format: str | None = None,
    tag_column: str | int | None = None,
    progress: bool | Progress | None = None,
    **settings: Any,
) -> CheckReport:
    """Report what is in the data, what looks wrong, what ``learn`` would do, and how long it would take.

    Nothing is written except ``curve_picture``. Data that cannot be read raises ``CorpusError``; any other
    problem is a finding.

    Args:
        data: A file, a folder with train, dev and test files, or data in memory (see ``Corpus.read``).
        model: The model that will learn from it: a model folder ("M@3": its step 3), or a checkpoint.
        types: Learn these types only; default: all that are new.
        old_labels: What to do with labels of types that the model knows already: "error", "ignore" or "use".
        unlabelled: Unlabelled text for ``learn``: a file, a folder, texts, or a list.
        method: Method to learn with. Default: the model's.
        epochs: Epochs of the step.
        device: "auto" (a GPU if there is one), "cpu", "cuda", "cuda:N" or "mps".
        timing: Time some batches, about 10 seconds.
        curve: Train on a quarter, half and all of the data to see whether more labels would help. Takes
            longer than ``learn``.
        curve_picture: Draw the curve as a picture into this file (.svg).
        overwrite: Replace an existing ``curve_picture`` file.
        format: Format of the data's files. Default: detected.
        tag_column: Column or field of the tags: a name, or a number from 0.
        progress: Whether to show progress bars. Default: in a terminal or a notebook.
        **settings: Any other setting of ``TrainingConfig``, or a parameter of the method.

    Returns:
        The findings, the worst first; the plan of the step; the time it would take; the next command.
    """
    given = settings_of(check, locals())
    from cfner.practice.check.check import SECONDS
    from cfner.practice.check.check import check as check_data

    if curve_picture is not None:
        from cfner.corpus.writers import refuse_existing

        refuse_existing(Path(curve_picture), overwrite)  # now, and again when it is written
    watched = None
    if curve or curve_picture is not None:
        from cfner.training.bars import watcher

        watched = watcher(progress)
    report = check_data(
        data,
        model,
        types=names(types),
        old_labels=old_labels,
        unlabelled=several(unlabelled),
        seconds=SECONDS if timing else 0.0,
        curve=watched is not None,
        reading={"format": format, "tag_column": tag_column},
        settings=given,
        progress=watched,
    )
    if curve_picture is not None and report.curve is not None:
        from cfner.pages.page import write_page
        from cfner.practice.check.curve import picture

        write_page(Path(curve_picture), picture(report.curve).file(), overwrite=overwrite)
    return report
