"""``predict``: find the entities in texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

from cfner.api.arguments import PathLike
from cfner.errors import ConfigError

if TYPE_CHECKING:
    from cfner.corpus.sentence import Sentence
    from cfner.network.prediction import Prediction, TaggingModel


class _Options(TypedDict, total=False):
    input_format: str | None
    step: int | None
    as_: str | None
    overwrite: bool
    runtime: str | None
    min_score: float | None
    batch_size: int
    device: str


_Files = PathLike | Iterable[PathLike]


@overload  # a str is also a sequence of str; the first matching overload is used
def predict(
    model: PathLike | TaggingModel, text: str | Sentence | Mapping[str, Any], **options: Unpack[_Options]
) -> Prediction: ...


@overload
def predict(  # type: ignore[overload-overlap]
    model: PathLike | TaggingModel, text: Iterator[Any], **options: Unpack[_Options]
) -> Iterator[Prediction]: ...


@overload
def predict(
    model: PathLike | TaggingModel, text: Iterable[Any], **options: Unpack[_Options]
) -> list[Prediction]: ...


@overload
def predict(
    model: PathLike | TaggingModel,
    text: Any = None,
    *,
    file: _Files | None = None,
    out: PathLike,
    workers: int | None = None,
    on: str | None = None,
    address: str | None = None,
    progress: bool | None = None,
    **options: Unpack[_Options],
) -> int: ...


@overload
def predict(
    model: PathLike | TaggingModel, text: None = None, *, file: PathLike, **options: Unpack[_Options]
) -> Iterator[Prediction]: ...


def predict(
    model: PathLike | TaggingModel,
    text: Any = None,
    *,
    file: _Files | None = None,
    input_format: str | None = None,
    step: int | None = None,
    as_: str | None = None,
    out: PathLike | None = None,
    overwrite: bool = False,
    workers: int | None = None,
    on: str | None = None,
    address: str | None = None,
    runtime: str | None = None,
    min_score: float | None = None,
    batch_size: int = 64,
    device: str = "auto",
    progress: bool | None = None,
) -> Prediction | list[Prediction] | Iterator[Prediction] | int:
    """Find entities, each with its type, its words and characters, and a score.

    A path is loaded on each call. To tag text repeatedly, keep the model in memory:
    ``ContinualTagger.predict`` takes the same texts.

    Args:
        model: A model folder ("M@3": its step 3), a Hugging Face checkpoint, an exported ONNX folder, or the
            result of ``open_model``.
        text: A text; a list of texts; a list of sentences that are lists of words, which are kept as they
            are; dictionaries with "text" or "tokens"; or a generator of any of these, which is tagged while
            it is read.
        file: A file to tag, of any size, in place of ``text``. Several are tagged into a folder: a list of
            files, folders and patterns such as "texts/*.jsonl".
        input_format: "text": one text per line. "jsonl": one object per line with "text" or "tokens".
            "conll": one word per line. Default: by the file's suffix, else by its first lines.
        step: Which step of the model; default: the current one.
        as_: Format of ``out``: "jsonl", "json", "csv", "tsv", "conll" or "docbin". Default: by its suffix;
            "jsonl" in a folder.
        out: Write the predictions to this file (atomically), and return how many there are. A name without a
            suffix is a folder, with an output for each file; if the call is stopped, the same call goes on.
        overwrite: Replace an existing ``out`` file. In a folder: tag changed files again, and everything if
            the model or the settings changed.
        workers: Tag files into a folder with this many processes, one core each; the output is the same
            whatever their number. Default for a folder: one per GPU, or per core. On Ray: tasks at once.
        on: Where files are tagged into a folder: "local" (this machine) or "ray" (a Ray cluster).
        address: Of the Ray cluster; "auto", or "local" to start one here. Default: RAY_ADDRESS, else this
            machine's cluster, else one that is started here.
        runtime: "torch", "torch-bf16" (faster where the processor or GPU computes in bf16), "onnx" or
            "onnx-int8". The last two export the model into a temporary folder first: worth it for large
            files. Default: torch.
        min_score: Leave out mentions with a lower score. This replaces the limits that ``calibrate`` set;
            0 returns everything that the network finds.
        batch_size: Windows per batch, at most.
        device: "auto" (a GPU if there is one), "cpu", "cuda", "cuda:N" or "mps".
        progress: Whether to show a progress bar while files are tagged into a folder. Default: in a terminal.

    Returns:
        One prediction for one text, a list for a list, an iterator for a generator or a file.
    """
    from cfner.interop.export import open_for_prediction
    from cfner.interop.prediction_files import write_predictions
    from cfner.interop.shards.bar import progress_bar
    from cfner.interop.shards.inputs import wants_folder
    from cfner.interop.shards.run import tag_files
    from cfner.interop.shards.tagging import Settings
    from cfner.interop.text_stream import read_texts
    from cfner.interop.texts_to_tag import TextsToTag
    from cfner.network.prediction import TaggingModel, tag_stream

    if (text is None) == (file is None):
        raise ConfigError(
            "Both a text and `file` were given." if file is not None else "There is no text to tag.",
            remedy="Give one of them: `predict(MODEL, TEXT)` or `predict(MODEL, file=FILE)`.",
        )
    if min_score is not None and not 0 <= min_score <= 1:
        raise ConfigError(f"`min_score` cannot be {min_score}.", remedy="Scores go from 0 to 1.")
    files = (
        [] if file is None else [str(file)] if isinstance(file, str | Path) else [str(one) for one in file]
    )
    folder = None if out is None else Path(out)
    no_file = file is not None and not files
    if no_file or wants_folder(files, folder, as_, workers, on, address):
        if isinstance(model, TaggingModel):
            raise ConfigError("The workers cannot use a model that is open here.", remedy="Give its path.")
        with progress_bar(progress) as bar:
            return tag_files(
                model,
                files,
                folder,
                Settings(as_ or "jsonl", input_format, runtime, min_score, batch_size),
                step=step,
                workers=workers,
                on=on,
                address=address,
                device=device,
                overwrite=overwrite,
                progress=bar,
            ).texts
    if out is not None and Path(out).exists() and not overwrite:
        raise ConfigError(
            "The output exists.", where=str(out), remedy="Name another, or set `overwrite=True`."
        )
    _refuse_unused("`out` is not given", as_=None if out is not None else as_)
    _refuse_unused("`file` is not given", input_format=None if file is not None else input_format)
    if isinstance(model, TaggingModel):
        _refuse_unused("the model is open already", step=step, runtime=runtime)
    # before the model is opened: a missing file is reported at once
    given = TextsToTag(read_texts(Path(files[0]), input_format), lazy=True) if files else TextsToTag.of(text)
    if isinstance(model, TaggingModel):
        opened = model
    else:
        opened = open_for_prediction(model, step, runtime, device=device)
    found = tag_stream(opened, given.sentences, min_score=min_score, batch_size=batch_size)
    if out is not None:
        return write_predictions(found, out, as_, overwrite=overwrite)
    return given.answer(found)


def _refuse_unused(why: str, **given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise ConfigError(f"`{name}` was given, but {why}: it would do nothing.", remedy="Leave it out.")
