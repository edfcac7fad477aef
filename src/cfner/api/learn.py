"""``learn``: teach an existing model new types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cfner.api.arguments import Names, PathLike, load_methods, names, settings_of, several
from cfner.corpus.in_memory import Data, Texts

if TYPE_CHECKING:
    from cfner.practice.learn.learned import Learned
    from cfner.training.progress import Progress


def learn(
    model: PathLike,
    data: Data,
    *,
    out: PathLike | None = None,
    in_place: bool = False,
    types: Names | None = None,
    old_labels: str = "error",
    replay: Data | None = None,
    unlabelled: Texts | None = None,
    unlabelled_ratio: float | None = None,
    guard: Data | None = None,
    max_forgetting: float = 2.0,
    accept_forgetting: Names | None = None,
    folds: int | None = None,
    min_new_f1: float | None = None,
    strict: bool = False,
    method: str | None = None,
    use: PathLike | Sequence[PathLike] | None = None,
    without: Names | None = None,
    epochs: int | None = None,
    patience: int | None = None,
    batch_size: int | None = None,
    lr_encoder: float | None = None,
    lr_head: float | None = None,
    seed: int | None = None,
    preset: str | None = None,
    config: PathLike | Mapping[str, Any] | None = None,
    device: str | None = None,
    format: str | None = None,
    tag_column: str | int | None = None,
    every: int = 1,
    dev_share: float = 0.15,
    unchecked: bool = False,
    html: PathLike | None = None,
    overwrite: bool = False,
    progress: bool | Progress | None = None,
    **settings: Any,
) -> Learned:
    """Teach a model new entity types from text labelled only with them, and report whether it kept the old.

    The old model is never changed: the new one goes to ``out``, or is added as a step with ``in_place``,
    which ``rollback`` undoes. If the guard refuses it, it is saved separately as ``OUT.refused``.

    The new types are scored on the test split of ``data``. Without one, cross-validation estimates their
    scores first; then the model learns from all sentences.

    Args:
        model: A model folder ("M@3": its step 3), or any Hugging Face token-classification checkpoint.
        data: Text labelled with the new types: a file, a folder, or data in memory (see ``Corpus.read``).
        out: Folder for the new model; it must not exist yet.
        in_place: Add the step to the model itself.
        types: Learn these types only; default: all that are new.
        old_labels: What to do with labels of types that the model knows already: "error", "ignore" or "use".
        replay: A few old sentences to mix in, labelled with old types.
        unlabelled: Unlabelled text like the model's usual input: a file, a corpus
            folder, texts, or a list of these. It reminds the model of old types. A part of it is held out to
            compare the old and the new model.
        unlabelled_ratio: Unlabelled sentences per labelled one. Default: 1.
        guard: Sentences labelled with old types. A model that forgot these types is refused.
        max_forgetting: F1 points that an old type may lose.
        accept_forgetting: Types that may be forgotten.
        folds: Number of cross-validation models for the estimate. Default: 5, or one held-out part if every
            type has 300 mentions; none if there is a test split. 0: no estimate.
        min_new_f1: Refuse a model whose new types have a lower F1.
        strict: Also refuse the model if the guard does not show that every old type was kept, or if the
            interval of a new type starts below ``min_new_f1``.
        method: The training method; ``cfner.methods.method_names()`` lists them. Default: the model's, or
            own-other.
        use: Python files with your own methods.
        without: Parts of the method to leave out (ablation).
        epochs: Epochs of the step.
        patience: Stop after this many epochs without improvement.
        batch_size: Sentences per batch and process.
        lr_encoder: Learning rate of the encoder.
        lr_head: Learning rate of the head.
        seed: Seed of the training.
        preset: "paper": the paper's settings.
        config: A .toml or .json file of settings, or a dictionary of them.
        device: "auto" (a GPU if there is one), "cpu", "cuda", "cuda:N" or "mps".
        format: Format of the data's files. Default: detected.
        tag_column: Column or field of the tags: a name, or a number from 0.
        every: Use only every n-th sentence of the data, for a quick result.
        dev_share: Share of the sentences to hold out, where a single part is held out.
        unchecked: Learn even if ``check`` finds errors.
        html: Write a self-contained page to this file.
        overwrite: Replace an existing ``html`` file.
        progress: Whether to show progress bars. Default: in a terminal or a notebook.
        **settings: Any other setting of ``TrainingConfig``, or a parameter of the method.

    Returns:
        What was learned, whether the model was accepted, and all measurements.

    Raises:
        CfnerError: If the data, the model or a setting cannot be used. Nothing is changed in that case.
    """
    load_methods(use)
    given = settings_of(learn, locals())
    from cfner.practice.learn.learn import learn as learn_types
    from cfner.training.bars import watcher

    if html is not None:
        from cfner.corpus.writers import refuse_existing

        refuse_existing(Path(html), overwrite)  # now, and again when the page is written
    learned = learn_types(
        model,
        data,
        out=out,
        in_place=in_place,
        types=names(types),
        old_labels=old_labels,
        replay=replay,
        guard=guard,
        max_forgetting=max_forgetting,
        accept_forgetting=names(accept_forgetting) or (),
        folds=folds,
        min_new_f1=min_new_f1,
        strict=strict,
        unlabelled=several(unlabelled),
        preset=preset,
        config=config,
        settings=given,
        reading={"format": format, "tag_column": tag_column, "every": every, "dev_share": dev_share},
        unchecked=unchecked,
        progress=watcher(progress),
    )
    if html is not None:  # last: the step is saved even if writing the page fails
        from cfner.pages.page import write_page
        from cfner.practice.learn.page import page

        write_page(Path(html), page(learned), overwrite=overwrite)
    return learned
