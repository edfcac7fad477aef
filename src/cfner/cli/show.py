"""How figures look in the terminal: tables of scores, coloured sentences, progress bars."""

from __future__ import annotations

import logging
import sys
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cfner.cli.spelling import in_shell
from cfner.files.safe_text import json_text, visible

if TYPE_CHECKING:
    from cfner.corpus.report import ReadReport
    from cfner.evaluation.forgetting import StepMatrix
    from cfner.evaluation.scores import Counts, Scores
    from cfner.network.prediction import Prediction
    from cfner.practice.check.findings import SplitFacts

_COLOURS = ["cyan", "magenta", "green", "yellow", "blue", "red"]
_COLOURS += ["bright_cyan", "bright_magenta", "bright_green"]


def console(stderr: bool = False) -> Console:
    return Console(stderr=stderr, highlight=False)


def say(text: str, style: str = "", *, wrap: bool = True) -> None:
    """Print a line; ``wrap=False`` for what users copy."""
    console().print(plain(in_shell(text)), style=style, soft_wrap=not wrap)


def table_of(
    columns: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    *,
    title: str = "",
    left: int = 1,
    narrow: bool = False,
) -> Table:
    """A table; its first ``left`` columns are left-aligned, and its text is not markup.

    ``narrow``: without frames, to fit into 80 columns.
    """
    table = Table(title=plain(title) if title else None, title_justify="left")
    if narrow:
        table.box, table.padding = SIMPLE_HEAD, (0, 1, 0, 0)
    for number, name in enumerate(columns):
        table.add_column(name, justify="left" if number < left else "right")
    for row in rows:
        table.add_row(*(plain(cell) if isinstance(cell, str) else cell for cell in row))
    return table


def say_read(name: str, report: ReadReport, types: Sequence[str]) -> None:
    """What data was read, and how, in one line."""
    scheme = report.scheme or "none (spans)"
    say(f"{name}: format {report.format}, scheme {scheme}, {len(types)} types", "bold")


def splits_table(splits: Mapping[str, SplitFacts], types: Sequence[str], words: str) -> Table:
    """A column per split; rows for sentences, words, mentions, and mentions of each type, with a bar for the
    first split."""
    from cfner.cli.type_bars import mention_bars

    first = next(iter(splits), "")
    bars = mention_bars({type_: splits[first].mentions[type_] for type_ in types} if splits else {})
    table = table_of(["", *splits, f"mentions, {first}" if bars else ""], ())
    table.columns[-1].justify = "left"
    table.columns[0].overflow = "fold"
    table.add_row("sentences", *(f"{facts.sentences:,}" for facts in splits.values()))
    table.add_row(words, *(f"{facts.tokens:,}" for facts in splits.values()))
    mentions = (f"{sum(facts.mentions.values()):,}" for facts in splits.values())
    table.add_row("mentions", *mentions, end_section=True)
    for type_ in types:
        counts = (f"{facts.mentions[type_]:,}" for facts in splits.values())
        table.add_row(plain(type_), *counts, bars.get(type_, ""))
    return table


def print_json(value: Any) -> None:
    sys.stdout.write(json_text(value, indent=1) + "\n")


def scores_table(scores: Scores, title: str) -> Table:
    def row(name: str, c: Counts) -> list[str]:
        figures = (f"{value:.1f}" for value in (c.precision, c.recall, c.f1))
        return [name, *figures, str(c.n_gold), str(c.n_predicted)]

    columns = ("type", "precision", "recall", "F1", "gold", "predicted")
    table = table_of(columns, (row(*item) for item in scores.counts.items()), title=title)
    table.add_row(*row("all (micro)", scores.micro), style="bold")
    table.add_row("all (macro)", "", "", f"{scores.macro_f1:.1f}", "", "", style="bold")
    return table


def matrix_table(matrix: StepMatrix, title: str) -> Table:
    """F1 with a row per type and a column per step."""
    steps = [f"step {number}" for number in range(1, len(matrix.steps) + 1)]
    rows = (
        [type_, *(_figure(row[type_]) for row in matrix.per_type), _figure(matrix.forgetting[type_])]
        for type_ in matrix.types
    )
    table = table_of(["type", *steps, "forgotten"], rows, title=title)
    table.add_row("micro", *(f"{v:.1f}" for v in matrix.micro), _figure(matrix.mean_forgetting), style="bold")
    table.add_row("macro", *(f"{v:.1f}" for v in matrix.macro), "", style="bold")
    return table


def _figure(value: float | None) -> str:
    return "·" if value is None else f"{value:.1f}"


def plain(text: str) -> Text:
    """Escape control characters in text and labels, so that the terminal does not interpret them."""
    return Text(visible(text))


def coloured(prediction: Prediction) -> Text:
    """A sentence with its entities in colour, each followed by its type."""
    sentence = prediction.sentence
    source = sentence.text if sentence.text is not None else " ".join(sentence.words)
    line, at = Text(), 0
    for entity in prediction.entities:
        start, end = entity.start or 0, entity.end or 0
        line.append(plain(source[at:start]))
        colour = _COLOURS[zlib.crc32(entity.type.encode()) % len(_COLOURS)]
        line.append(Text(plain(source[start:end]).plain, style=f"bold {colour}"))
        line.append(Text(f"[{plain(entity.type).plain}]", style=colour))
        at = end
    line.append(plain(source[at:]))
    return line


class LogHandler(logging.Handler):
    """Log messages of the library on standard error, one line each."""

    def emit(self, record: logging.LogRecord) -> None:
        console(stderr=True).print(plain(in_shell(record.getMessage())), soft_wrap=True)


def show_log() -> None:
    """Print the library's log messages from now on."""
    log = logging.getLogger("cfner")
    log.setLevel(logging.INFO)
    if not any(isinstance(handler, LogHandler) for handler in log.handlers):
        log.addHandler(LogHandler())
