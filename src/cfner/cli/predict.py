"""``cfner predict``: tag a text, a file or standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from cfner.cli import options as o
from cfner.cli.quick_start import quick_start
from cfner.cli.show import coloured, console, plain
from cfner.errors import ConfigError, nearest
from cfner.files.safe_text import visible

if TYPE_CHECKING:
    from cfner.corpus.sentence import Sentence
    from cfner.network.prediction import Prediction

_TO_LOOK_AT = ("colour", "table")
_TO_KEEP = ("jsonl", "json", "csv", "tsv", "conll", "docbin")


def predict(
    model: o.Model,
    text: Annotated[
        list[str] | None,
        typer.Argument(
            help="Text to tag; '-' or nothing: standard input. With a folder as --out, or with --workers or "
            "--on: files, folders and quoted patterns ('texts/*.jsonl')."
        ),
    ] = None,
    text_option: Annotated[
        list[str] | None,
        o.Flag("--text", "-t", help="A text, even if it looks like the name of a file; may be repeated."),
    ] = None,
    file: Annotated[
        list[Path] | None,
        o.Flag(
            "--file",
            "-f",
            help="A file to tag, of any size. Several (repeated, a folder, a pattern) need a folder: --out.",
        ),
    ] = None,
    input_format: Annotated[
        str | None,
        o.Flag(
            help="text: one text per line. jsonl: one object per line with 'text', or with 'tokens' or "
            "'words' that are kept as they are; all other fields are passed on. conll: one word per "
            "line, kept; tags are ignored. Default: by the file's suffix (.jsonl, .conll, ...), "
            "else by its first lines."
        ),
    ] = None,
    step: o.Step = None,
    output: Annotated[
        str | None,
        o.Flag(
            "--as",
            help="colour, table, jsonl, json, csv, tsv, conll or docbin. Default: by the suffix of --out; "
            "without it colour, or jsonl into a pipe.",
        ),
    ] = None,
    json: Annotated[bool, o.Flag("--json", help="The same as --as jsonl.")] = False,
    out: Annotated[
        Path | None,
        o.Flag(
            "--out",
            "-o",
            help="Write to this file (atomically). Its suffix names the format: .jsonl, .json, .csv and "
            ".tsv (a row per mention), .conll or .spacy. A docbin named *.spacy is one file, held in memory "
            "until it is complete; with any other name it becomes a folder of parts, in constant memory. "
            "A name without a suffix is a folder, with an output for each file (jsonl, or as --as says).",
        ),
    ] = None,
    overwrite: Annotated[
        bool,
        o.Flag(
            "--overwrite",
            help="Replace an existing --out file. In a folder: tag changed files again, and everything if "
            "the model or the settings changed.",
        ),
    ] = False,
    workers: Annotated[
        int | None,
        o.Flag(
            min=1,
            help="Tag files with this many processes, one core each; the output is the same whatever their "
            "number. Default for a folder: one per GPU, or per core. With --on ray: tasks at once.",
        ),
    ] = None,
    on: Annotated[
        str | None, o.Flag(help="Where files are tagged: local (this machine), or ray (a Ray cluster).")
    ] = None,
    address: Annotated[
        str | None,
        o.Flag(
            help="With --on ray: the address of the cluster, 'auto', or 'local' to start one here. Default: "
            "RAY_ADDRESS, else this machine's cluster, else one that is started here."
        ),
    ] = None,
    runtime: Annotated[
        str | None,
        o.Flag(
            help="torch; torch-bf16: faster where the processor or GPU computes in bf16; onnx or onnx-int8: "
            "these two export the model into a temporary folder first, which is "
            "worth it for large files. Default: torch."
        ),
    ] = None,
    min_score: o.MinScore = None,
    batch_size: o.Windows = 64,
    device: o.Device = "auto",
) -> None:
    """Find entities. Files of any size are read, tagged and written piece by piece.

    Many files are tagged into a folder, an output for each: cfner predict MODEL 'texts/*.jsonl' --out DIR.
    If the command is stopped, the same command goes on.

    Each entity has its type, its words and characters, and a score: the probability of its type, averaged
    over its words; after 'cfner calibrate', the share of such mentions that are right. A word's label is
    that of its first subword.
    """
    with quick_start():
        from cfner.interop.export import open_for_prediction
        from cfner.interop.prediction_files import AS_TEXT, write_predictions
        from cfner.interop.shards.inputs import is_folder_name, names_files, wants_folder
        from cfner.network.prediction import tag_stream

    style, words, files = "jsonl" if json else output, text or [], [str(one) for one in file or []]
    asked = (workers, on, address)
    named = out is not None and is_folder_name(out) and any(map(names_files, words))
    if named or wants_folder(files, out, style, *asked):
        if text_option:
            raise ConfigError("Both a text and files were given.", remedy="Give one of them.")
        _tag_files(
            model,
            [*files, *words],
            out,
            {"format": style or "jsonl", "input_format": input_format, "runtime": runtime}
            | {"min_score": min_score, "batch_size": batch_size},
            {"step": step, "workers": workers, "on": on, "address": address, "device": device}
            | {"overwrite": overwrite},
        )
        return
    style = _style(style, out)
    if out is not None and out.exists() and not overwrite:
        raise ConfigError("The output exists.", where=str(out), remedy="Name another, or add --overwrite.")
    # before the model is loaded, so that a missing file is reported at once
    sentences = _sentences(words, text_option or [], Path(files[0]) if files else None, input_format)
    with quick_start():
        opened = open_for_prediction(model, step, runtime, device=device)
    found = tag_stream(opened, sentences, min_score=min_score, batch_size=batch_size)
    if out is not None:
        count = write_predictions(found, out, style, overwrite=overwrite)
        typer.echo(visible(f"{count} sentences tagged on {opened.network.device}: {out}"), err=True)
    elif style in _TO_LOOK_AT:
        _show(found, style)
    else:
        to_look_at = sys.stdout.isatty()
        for written in AS_TEXT[style](found):
            # columns keep every character of a word, and a terminal would interpret some
            sys.stdout.write(_shown(written) if to_look_at else written)
        sys.stdout.flush()


def _tag_files(
    model: str, files: list[str], out: Path | None, settings: dict[str, Any], options: dict[str, Any]
) -> None:
    from cfner.interop.shards.bar import progress_bar
    from cfner.interop.shards.run import tag_files
    from cfner.interop.shards.tagging import Settings

    try:
        with progress_bar() as progress:
            done = tag_files(model, files, out, Settings(**settings), **options, progress=progress)
    except KeyboardInterrupt:
        typer.echo("Finished parts are kept: run the same command again to resume.", err=True)
        raise
    before = f", {done.before} of them before" if done.before else ""
    if done.before == done.files:
        typer.echo(visible(f"All {done.files} files were tagged before: {out}"), err=True)
    else:
        typer.echo(visible(f"{done.texts} sentences of {done.files} files tagged{before}: {out}"), err=True)


def _style(style: str | None, out: Path | None) -> str:
    from cfner.interop.prediction_files import format_of_name

    if style is None and out is not None:
        style = format_of_name(out)
    elif style is None:
        style = "colour" if sys.stdout.isatty() else "jsonl"
    if style not in _TO_LOOK_AT + _TO_KEEP:
        raise ConfigError(
            f"There is no output format '{style}'.", remedy=nearest(style, {*_TO_LOOK_AT, *_TO_KEEP})
        )
    if out is not None and style in _TO_LOOK_AT:
        raise ConfigError(
            f"'{style}' is for the terminal, not for a file.",
            remedy=f"Use --as with one of {', '.join(_TO_KEEP)}.",
        )
    if out is None and style == "docbin":
        raise ConfigError("A docbin cannot be printed.", remedy="Name a file: --out NAME.spacy")
    return style


def _sentences(
    words: list[str], texts: list[str], file: Path | None, format: str | None
) -> Iterable[Sentence]:
    from cfner.interop.text_names import looks_like_file
    from cfner.interop.text_stream import read_texts, sentence_of_text

    if (words or texts) and file is not None:
        raise ConfigError("Both a text and --file were given.", remedy="Give one of them.")
    if words in ([], ["-"]) and not texts:
        return read_texts(file, format)
    for one in filter(looks_like_file, words):
        raise ConfigError(
            f"'{one}' looks like the name of a file.",
            remedy=f"Tag the text in it with --file {quote(one)}, or these words with --text {quote(one)}.",
        )
    return [sentence_of_text(one, f"text {at}") for at, one in enumerate([*words, *texts], start=1)]


def _shown(lines: str) -> str:
    return "".join(sign if sign in "\t\n" else visible(sign) for sign in lines)


def _show(predictions: Iterator[Prediction], style: str) -> None:
    screen = console()
    for prediction in predictions:
        if style == "colour":
            screen.print(coloured(prediction))
            continue
        table = Table("type", "text", "score", "characters")
        for e in prediction.entities:
            table.add_row(plain(e.type), plain(e.text), f"{e.score:.2f}", f"{e.start}-{e.end}")
        screen.print(plain(prediction.to_json()["text"]))
        screen.print(table)
