"""``diff``: compare the predictions of two models on a text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cfner.api.arguments import PathLike
from cfner.corpus.in_memory import Data
from cfner.errors import ConfigError

if TYPE_CHECKING:
    from cfner.practice.diff.diff import ModelDiff


def diff(
    model: PathLike,
    model2: PathLike | None = None,
    text: Data | None = None,
    *,
    step: int | None = None,
    step2: int | None = None,
    html: PathLike | None = None,
    overwrite: bool = False,
    keep: int = 1000,
    format: str | None = None,
    tag_column: str | int | None = None,
    plain: bool = False,
    batch_size: int = 64,
    device: str = "auto",
) -> ModelDiff:
    """Find which predictions changed from one model to another: lost, gained, retyped, moved.

    If the text is labelled, each change is marked as right or wrong.

    Args:
        model: A model folder ("M@3": its step 3), a checkpoint or an ONNX export.
        model2: The model to compare with; default: the last two steps of ``model`` are compared.
        text: The text that both models tag: a file (one text per line, or labelled data), a folder (its test
            split), a text, texts, or data in memory (see ``Corpus.read``).
        step: Which step of the first model.
        step2: Which step of the second model.
        html: Write a self-contained page to this file.
        overwrite: Replace an existing ``html`` file.
        keep: How many changed sentences to keep as examples; the counts cover all.
        format: Format of the data's files. Default: detected.
        tag_column: Column or field of the tags: a name, or a number from 0.
        plain: The file is plain text, one text per line, whatever its name.
        batch_size: Windows per batch, at most.
        device: "auto" (a GPU if there is one), "cpu", "cuda", "cuda:N" or "mps".

    Returns:
        The counts of all changes, and examples.
    """
    from cfner.corpus.writers import refuse_existing
    from cfner.pages.page import write_page
    from cfner.practice.diff.diff import diff_models
    from cfner.practice.diff.page import page
    from cfner.practice.diff.sources import open_ref, text_source, two_models

    if html is not None:
        refuse_existing(Path(html), overwrite)  # now, and again when the page is written
    if text is None:
        raise ConfigError(
            "There is no text to compare on.",
            remedy="Name a file after the models: `diff(M, M2, TEXT)`, or give `text`.",
        )
    source = text_source(text, format=format, tag_column=tag_column, plain=plain)
    models = [str(model)] if model2 is None else [str(model), str(model2)]
    first, second = two_models(models, step, step2)
    old, new = open_ref(first, device), open_ref(second, device)
    found = diff_models(
        old,
        new,
        source.sentences,
        names=(first.name, second.name),
        judged=source.judged,
        keep=keep,
        batch_size=batch_size,
    )
    if html is not None:
        write_page(Path(html), page(found), overwrite=overwrite)
    return found
