"""``cfner diff``: compare the predictions of two models on a text."""

from __future__ import annotations

from dataclasses import astuple
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cfner.cli import options as o
from cfner.cli.settings import call_of
from cfner.cli.show import console, plain, print_json, say
from cfner.errors import ConfigError

if TYPE_CHECKING:
    from cfner.corpus.sentence import Span
    from cfner.network.prediction import Prediction
    from cfner.practice.diff.diff import ModelDiff
    from cfner.practice.diff.pairs import Change, Kind

_CONTEXT = 5  # words shown on each side of a change
_COLOURS = {
    "lost": "red",
    "gained": "green",
    "retyped": "yellow",
    "moved": "blue",
    "moved+retyped": "magenta",
}
_VERDICTS = {"right": "green", "wrong": "red", "still wrong": "dim"}


def diff(
    models_and_text: Annotated[
        list[str],
        typer.Argument(
            metavar="M [M2] TEXT",
            help="Two models (folders, checkpoints or ONNX exports; M@3 is step 3 of M) and a file: one text "
            "per line, or labelled data. One model folder alone: its last two steps.",
        ),
    ],
    step: Annotated[int | None, o.Flag(min=1, help="Which step of the first model.")] = None,
    step2: Annotated[int | None, o.Flag(min=1, help="Which step of the second model.")] = None,
    text: Annotated[
        list[str] | None,
        o.Flag("--text", "-t", help="A text itself, in place of TEXT; may be repeated."),
    ] = None,
    html: o.Html = None,
    overwrite: o.ReplaceHtml = False,
    show: Annotated[int, o.Flag(min=0, help="Changes of each kind shown in the terminal.")] = 8,
    keep: Annotated[int, o.Flag(min=0, help="Changed sentences kept for the page and the JSON.")] = 1000,
    format: o.Format = None,
    tag_column: o.TagColumn = None,
    plain: Annotated[
        bool, o.Flag("--plain", help="TEXT is plain text, one text per line, whatever its name.")
    ] = False,
    batch_size: o.Windows = 64,
    device: o.Device = "auto",
    json: o.Json = False,
) -> None:
    """Show which predictions changed from one model to another: lost, gained, retyped, moved.

    If the text is labelled, each change is marked as right or wrong.
    """
    arguments = call_of(locals())
    from cfner.api.diff import diff as compare

    models = arguments.pop("models_and_text")
    if not text:  # always a file, whatever its name looks like
        *models, arguments["text"] = [*models[:-1], Path(models[-1])] if len(models) > 1 else [*models, None]
    if len(models) > 2:
        raise ConfigError(
            f"{len(models)} models were given, but two are compared.",
            remedy="Give two models and a text, or one model folder with --step and --step2.",
        )
    found = compare(*models, **arguments)
    if json:
        print_json(found.to_json())
        return
    _tell(console(), found, show)
    console().print(f"Computed on {found.device}.")
    if html is not None:
        say(f"The page is in {html}.", wrap=False)


def _tell(screen: Console, found: ModelDiff, show: int) -> None:
    from cfner.practice.diff.pairs import KINDS

    say(f"{found.old_name} → {found.new_name}", "bold", wrap=False)
    screen.print(
        f"{found.sentences:,} sentences, {found.changed_sentences:,} with a change; "
        f"{found.unchanged:,} mentions unchanged."
    )
    if found.per_type:
        screen.print(_types(found))
    if not found.total:
        screen.print("No prediction changed.", style="green")
    for kind in KINDS:
        if found.counts[kind]:
            screen.print(_kind(found, kind, show))


def _types(found: ModelDiff) -> Table:
    table = Table(padding=(0, 1, 0, 0))
    table.add_column("type", overflow="fold")
    for name in ("before", "after", "same", "lost", "gained", "moved", "→ other", "other →"):
        table.add_column(name, justify="right", no_wrap=True)
    for type_, c in sorted(found.per_type.items()):
        table.add_row(plain(type_), *(f"{n:,}" if n else "·" for n in astuple(c)))
    return table


def _kind(found: ModelDiff, kind: Kind, show: int) -> Table:
    """The first changes of one kind, side by side."""
    from cfner.practice.diff.page import KIND_TITLES, VERDICT_WORDS, verdict_line

    verdicts = verdict_line(found, kind)
    title = f"{KIND_TITLES[kind][0]}: {found.counts[kind]:,}{f' ({verdicts})' if verdicts else ''}"
    table = Table(title=Text(title, style=f"bold {_COLOURS[kind]}"), title_justify="left", expand=True)
    table.add_column(plain(found.old_name), ratio=1, overflow="fold")
    table.add_column(plain(found.new_name), ratio=1, overflow="fold")
    if found.judged_types:
        table.add_column("now", no_wrap=True)
    for sentence, change in islice(found.of_kind(kind), show):
        row = [
            _side(sentence.old, change, change.old, _COLOURS[kind]),
            _side(sentence.new, change, change.new, _COLOURS[kind]),
        ]
        if found.judged_types:
            said = VERDICT_WORDS[change.verdict] if change.verdict else "not labelled"
            row.append(Text(said, style=_VERDICTS.get(change.verdict or "", "dim")))
        table.add_row(*row)
    if found.counts[kind] > show:
        table.caption = f"{found.counts[kind] - show:,} more; --show N shows N, --html FILE a page."
    return table


def _side(prediction: Prediction, change: Change, span: Span | None, colour: str) -> Text:
    """The words around a change; the mention in colour with its type, or its place underlined."""
    from cfner.practice.diff.diff import around, blank_before

    sentence, words = prediction.sentence, around(prediction.sentence, change, _CONTEXT)
    hit = next((e for e in prediction.entities if span is not None and e.first == span.start), None)
    gone = range(*change.words) if hit is None else range(0)
    line = Text("… " if words.start else "")
    for at in words:
        if at > words.start:
            line.append(blank_before(sentence, at))
        # brackets, so that the boundaries can be seen without colours too
        if hit is not None and hit.first <= at < hit.last:
            line.append("[" if at == hit.first else "", f"bold {colour}")
            line.append(plain(sentence.words[at]).plain, f"bold {colour}")
            ends = f"]({plain(hit.type).plain} {hit.score:.2f})" if at == hit.last - 1 else ""
            line.append(ends, colour)
        else:
            line.append(plain(sentence.words[at]).plain, f"underline {colour}" if at in gone else "")
    return line.append(" …" if words.stop < len(sentence) else "")
