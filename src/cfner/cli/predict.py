"""``cfner predict``: tag a text, a file or standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from cfner.model.prediction import Prediction

_LINES_AT_A_TIME = 512


def predict(
    model: Annotated[Path, typer.Argument(help="A model folder.")],
    text: Annotated[
        list[str] | None, typer.Argument(help="Text to tag; '-' or nothing: standard input.")
    ] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="A text file, one text per line.")] = None,
    step: Annotated[
        int | None, typer.Option(help="Which step of the model; default: the current one.")
    ] = None,
    output: Annotated[
        str | None, typer.Option("--as", help="colour, table or jsonl. Default: colour; jsonl into a pipe.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="The same as --as jsonl.")] = False,
    batch_size: Annotated[int, typer.Option(help="Windows per batch.")] = 64,
) -> None:
    """Find entities. One text per line; files of any size are read piece by piece."""
    from cfner.errors import ConfigError, nearest

    style = "jsonl" if json else output or ("colour" if sys.stdout.isatty() else "jsonl")
    if style not in {"colour", "table", "jsonl"}:
        raise ConfigError(
            f"There is no output '{style}'.", remedy=nearest(style, {"colour", "table", "jsonl"})
        )
    if text and file is not None:
        raise ConfigError("Both a text and --file were given.", remedy="Give one of them.")
    from cfner.tagger import ContinualTagger

    tagger = ContinualTagger.load(model, step, eval_batch_size=batch_size)
    lines = iter(text) if text and text != ["-"] else _lines(file)
    while chunk := list(islice(lines, _LINES_AT_A_TIME)):
        _show(tagger.predict(chunk), style)


def _lines(file: Path | None) -> Iterator[str]:
    from cfner.errors import CorpusError

    name = "standard input" if file is None else str(file)
    try:
        with sys.stdin.buffer if file is None else file.open("rb") as stream:
            for number, raw in enumerate(stream, start=1):
                try:
                    yield raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
                except UnicodeDecodeError as error:
                    raise CorpusError(
                        f"The line is not UTF-8 ({error.reason}).",
                        where=f"{name}:{number}",
                        remedy="Convert the file to UTF-8.",
                    ) from error
    except OSError as error:
        raise CorpusError(f"The file cannot be read ({error.strerror}).", where=name) from error


def _show(predictions: list[Prediction], style: str) -> None:
    if style == "jsonl":
        import json

        for prediction in predictions:
            sys.stdout.write(json.dumps(prediction.to_json(), ensure_ascii=False) + "\n")
        sys.stdout.flush()
        return
    from cfner.cli.show import coloured, console, plain

    screen = console()
    if style == "colour":
        for prediction in predictions:
            screen.print(coloured(prediction))
        return
    from rich.table import Table

    for prediction in predictions:
        table = Table("type", "text", "score", "characters")
        for e in prediction.entities:
            table.add_row(plain(e.type), plain(e.text), f"{e.score:.2f}", f"{e.start}-{e.end}")
        screen.print(plain(prediction.to_json()["text"]))
        screen.print(table)
