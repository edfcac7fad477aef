"""``cfner predict``: tag a text, a file or standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from cfner.cli import options as o
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
        list[str] | None, typer.Argument(help="Text to tag; '-' or nothing: standard input.")
    ] = None,
    text_option: Annotated[
        list[str] | None,
        o.Flag("--text", "-t", help="A text, even if it looks like the name of a file; may be repeated."),
    ] = None,
    file: Annotated[Path | None, o.Flag("--file", "-f", help="A file to tag, of any size.")] = None,
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
            "until it is complete; with any other name it becomes a folder of parts, in constant memory.",
        ),
    ] = None,
    overwrite: Annotated[bool, o.Flag("--overwrite", help="Replace an existing --out file.")] = False,
    runtime: Annotated[
        str | None,
        o.Flag(
            help="torch, onnx or onnx-int8. The last two export the model into a temporary folder first: "
            "worth it for large files. Default: torch."
        ),
    ] = None,
    min_score: o.MinScore = None,
    batch_size: o.Windows = 64,
    device: o.Device = "auto",
) -> None:
    """Find entities. Files of any size are read, tagged and written piece by piece.

    Each entity has its type, its words and characters, and a score: the probability of its type, averaged
    over its words; after 'cfner calibrate', the share of such mentions that are right. A word's label is
    that of its first subword.
    """
    from cfner.interop.export import open_for_prediction
    from cfner.interop.prediction_files import AS_TEXT, write_predictions
    from cfner.network.prediction import tag_stream

    style = _style(output, json, out)
    if out is not None and out.exists() and not overwrite:
        raise ConfigError("The output exists.", where=str(out), remedy="Name another, or add --overwrite.")
    # before the model is loaded, so that a missing file is reported at once
    sentences = _sentences(text or [], text_option or [], file, input_format)
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


def _style(output: str | None, json: bool, out: Path | None) -> str:
    from cfner.interop.prediction_files import format_of_name

    style = "jsonl" if json else output
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
