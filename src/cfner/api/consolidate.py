"""``consolidate``: distil many experts into one network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cfner.api.arguments import Names, PathLike, names, settings_of
from cfner.corpus.in_memory import Data, Texts

if TYPE_CHECKING:
    from cfner.practice.consolidate.consolidate import Consolidated
    from cfner.training.progress import Progress


def consolidate(
    model: PathLike,
    text: Texts,
    *,
    out: PathLike | None = None,
    in_place: bool = False,
    guard: Data | None = None,
    max_forgetting: float = 2.0,
    accept_forgetting: Names | None = None,
    strict: bool = False,
    epochs: int | None = None,
    batch_size: int | None = None,
    lr_encoder: float | None = None,
    lr_head: float | None = None,
    seed: int | None = None,
    config: PathLike | Mapping[str, Any] | None = None,
    device: str | None = None,
    progress: bool | Progress | None = None,
    **settings: Any,
) -> Consolidated:
    """Distil all experts of a model into one network, as fast and as small as before the first expert.

    The experts teach it on the text. The result is a new step, which ``rollback`` undoes.

    Args:
        model: A model folder whose current step has experts.
        text: Text of your domain, without labels: a file, texts, sentences, or a list of these.
        out: Folder for the new model; it must not exist yet.
        in_place: Add the step to the model itself.
        guard: Labelled sentences: a model that forgot their types is refused.
        max_forgetting: F1 points that a type may lose.
        accept_forgetting: Types that may be forgotten.
        strict: Also refuse the model if the guard does not show that every type was kept.
        epochs: Epochs of the step.
        batch_size: Sentences per batch and process.
        lr_encoder: Learning rate of the encoder.
        lr_head: Learning rate of the head.
        seed: Seed of the training.
        config: A .toml or .json file of settings, or a dictionary of them.
        device: "auto" (a GPU if there is one), "cpu", "cuda", "cuda:N" or "mps".
        progress: Whether to show progress bars. Default: in a terminal or a notebook.
        **settings: Any other setting of ``TrainingConfig``.

    Returns:
        Where the new model is, whether it was accepted, and the measurements.
    """
    given = settings_of(consolidate, locals())
    from cfner.practice.consolidate.consolidate import consolidate as make_one
    from cfner.training.bars import watcher

    return make_one(
        model,
        text,
        out=out,
        in_place=in_place,
        guard=guard,
        max_forgetting=max_forgetting,
        accept_forgetting=names(accept_forgetting) or (),
        strict=strict,
        config=config,
        settings=given,
        progress=watcher(progress),
    )
