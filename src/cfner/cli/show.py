"""How figures look in the terminal: tables of scores, coloured sentences, progress bars."""

from __future__ import annotations

import sys
import zlib
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cfner.files.safe_text import json_text, visible

if TYPE_CHECKING:
    from cfner.evaluation.forgetting import StepMatrix
    from cfner.evaluation.scores import Scores
    from cfner.network.prediction import Prediction
    from cfner.training.progress import Progress

_COLOURS = (
    "cyan",
    "magenta",
    "green",
    "yellow",
    "blue",
    "red",
    "bright_cyan",
    "bright_magenta",
    "bright_green",
)


def console(stderr: bool = False) -> Console:
    return Console(stderr=stderr, highlight=False)


def print_json(value: Any) -> None:
    sys.stdout.write(json_text(value, indent=1) + "\n")


def scores_table(scores: Scores, title: str) -> Table:
    table = Table(title=plain(title), title_justify="left")
    table.add_column("type")
    for name in ("precision", "recall", "F1", "gold", "predicted"):
        table.add_column(name, justify="right")
    for type_, c in scores.counts.items():
        figures = (f"{value:.1f}" for value in (c.precision, c.recall, c.f1))
        table.add_row(plain(type_), *figures, str(c.n_gold), str(c.n_predicted))
    micro = scores.micro
    figures = (f"{value:.1f}" for value in (micro.precision, micro.recall, micro.f1))
    table.add_row("all (micro)", *figures, str(micro.n_gold), str(micro.n_predicted), style="bold")
    table.add_row("all (macro)", "", "", f"{scores.macro_f1:.1f}", "", "", style="bold")
    return table


def matrix_table(matrix: StepMatrix, title: str) -> Table:
    """Types down, steps across: how each type's F1 goes on after it was learned."""
    table = Table(title=plain(title), title_justify="left")
    table.add_column("type")
    for number in range(1, len(matrix.steps) + 1):
        table.add_column(f"step {number}", justify="right")
    table.add_column("forgotten", justify="right")
    for type_ in matrix.types:
        cells = [row[type_] for row in matrix.per_type]
        lost = matrix.forgetting[type_]
        table.add_row(plain(type_), *(_figure(c) for c in cells), _figure(lost))
    table.add_row("micro", *(f"{v:.1f}" for v in matrix.micro), _figure(matrix.mean_forgetting), style="bold")
    table.add_row("macro", *(f"{v:.1f}" for v in matrix.macro), "", style="bold")
    return table


def _figure(value: float | None) -> str:
    return "·" if value is None else f"{value:.1f}"


def plain(text: str) -> Text:
    """Text from files and labels, with control characters made visible: it must not steer the terminal."""
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


def training_progress() -> Progress:
    """Bars on a terminal, silence elsewhere."""
    from cfner.cli.bars import Bars
    from cfner.training.progress import Silent

    return Bars() if sys.stderr.isatty() else Silent()
