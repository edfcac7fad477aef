"""``evaluate``: score a model on labelled data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, overload

from cfner.api.arguments import PathLike
from cfner.corpus.in_memory import Data
from cfner.errors import ConfigError

if TYPE_CHECKING:
    from cfner.practice.evaluate.evaluate import Evaluated, EvaluatedSteps


@overload
def evaluate(
    model: PathLike,
    data: Data,
    *,
    step: int | None = None,
    all_steps: Literal[False] = False,
    save: bool = False,
    format: str | None = None,
    tag_column: str | int | None = None,
    all_types: bool = False,
    batch_size: int = 64,
    device: str = "auto",
) -> Evaluated: ...


@overload
def evaluate(
    model: PathLike,
    data: Data,
    *,
    step: int | None = None,
    all_steps: Literal[True],
    save: bool = False,
    format: str | None = None,
    tag_column: str | int | None = None,
    all_types: bool = False,
    batch_size: int = 64,
    device: str = "auto",
) -> EvaluatedSteps: ...


def evaluate(
    model: PathLike,
    data: Data,
    *,
    step: int | None = None,
    all_steps: bool = False,
    save: bool = False,
    format: str | None = None,
    tag_column: str | int | None = None,
    all_types: bool = False,
    batch_size: int = 64,
    device: str = "auto",
) -> Evaluated | EvaluatedSteps:
    """Measure entity-level precision, recall and F1 per type, and the two confusions.

    Labels of types that the model has not learned are set aside and counted. So are predictions of types that
    the data never labels, because they cannot be judged.

    Args:
        model: A model folder ("M@3": its step 3), a Hugging Face checkpoint, or an exported ONNX folder.
        data: A labelled file, a folder (its test split is used), or data in memory (see ``Corpus.read``).
        step: Which step of the model; default: the current one.
        all_steps: Score every step of the model folder. Steps that have stored scores on exactly these
            sentences are not scored again.
        save: Store the scores with the model: ``history``, the page and the model card show them.
        format: Format of the data's files. Default: detected.
        tag_column: Column or field of the tags: a name, or a number from 0.
        all_types: Also score types that the data does not label: all their predictions count as wrong.
        batch_size: Windows per batch, at most.
        device: "auto" (a GPU if there is one), "cpu", "cuda", "cuda:N" or "mps".

    Returns:
        The scores and what was set aside; with ``all_steps``, the scores of each step.
    """
    from cfner.practice.evaluate import evaluate as practice

    if all_steps and (step is not None or all_types):
        raise ConfigError(
            "`all_steps` was given together with `step` or `all_types`.", remedy="Leave out one of them."
        )
    reading = {"format": format, "tag_column": tag_column}
    if all_steps:
        return practice.evaluate_steps(
            model, data, save=save, batch_size=batch_size, device=device, reading=reading
        )
    return practice.evaluate(
        model,
        data,
        step=step,
        save=save,
        all_types=all_types,
        batch_size=batch_size,
        device=device,
        reading=reading,
    )
