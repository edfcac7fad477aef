"""``cfner explain``: see the causal effect on one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from cfner.cli import options as o
from cfner.cli.settings import call_of
from cfner.cli.show import console, plain, print_json, say, table_of
from cfner.practice.explain.explanation import (
    Distribution,
    Explanation,
    Match,
    TokenExplanation,
    hidden_truth,
)

_LONG_WORD = 16  # characters; longer words may be split
_CONTEXT = 6  # words shown on each side of a matched token
_COLOURS = {"Effect_E": "bright_blue", "Effect_O": "green"}


def explain(
    model: Annotated[Path, typer.Argument(help="A model folder, written by 'cfner train' or 'cfner learn'.")],
    data: Annotated[
        str, typer.Argument(help="What it learned from: the corpus of 'train', or the new data of 'learn'.")
    ],
    step: Annotated[
        int | None,
        o.Flag(min=1, help="Which step; it needs a teacher, so not the first. Default: the last."),
    ] = None,
    sentence: Annotated[
        int | None,
        o.Flag(min=0, help="Which sentence of the step's slice, from 0. Default: the one with most anchors."),
    ] = None,
    epoch: Annotated[
        int | None,
        o.Flag(min=1, help="Epoch of the curriculum. Default: the one whose weights were saved."),
    ] = None,
    top: Annotated[int, o.Flag(min=1, help="Labels shown of each distribution.")] = 3,
    html: o.Html = None,
    overwrite: o.ReplaceHtml = False,
    device: o.Device = "auto",
    json: o.Json = False,
    every: Annotated[int, o.Flag(min=1, help="--every as in training.")] = 1,
    format: o.Format = None,
    tag_column: o.TagColumn = None,
    dev_share: Annotated[float, o.Flag(min=0, help="--dev-share as for 'learn'.")] = 0.15,
    replay: Annotated[Path | None, o.Flag(help="--replay as for 'learn'.")] = None,
    unlabelled: Annotated[
        list[Path] | None, o.Flag(help="--unlabelled as for 'learn'; may be repeated.")
    ] = None,
    guard: Annotated[
        Path | None, o.Flag(help="--guard as for 'learn', if --unlabelled was given too.")
    ] = None,
) -> None:
    """Show each anchor of a sentence with its matched tokens, and which loss each token went to."""
    arguments = call_of(locals())
    from cfner.api.explain import explain as explain_sentence
    from cfner.network.device import choose_device

    found = explain_sentence(**arguments)
    computed_on = str(choose_device(device))
    if json:
        print_json({**found.to_json(), "device": computed_on})
        return
    _tell_step(found)
    if html is None:
        _tell_tokens(found)
    console().print(f"Computed on {computed_on}.")
    if html is not None:
        say(f"Every token of sentence {found.sentence}, with its matches: {html}", wrap=False)


def _tell_step(e: Explanation) -> None:
    delta = f", threshold {e.threshold:.2f}" if e.threshold is not None else ""
    say(f"{e.method}, step {e.step}, epoch {e.epoch} of {e.epochs}{delta}", "bold")
    say(f"labelled here: {', '.join(e.new_types)}   learned before: {', '.join(e.old_types)}")
    say(_slice_line(e))


def _tell_tokens(e: Explanation) -> None:
    screen = console()
    screen.print()
    screen.print(_tokens_table(e))
    if not e.k:
        screen.print("This method has no causal effects: no token has matched tokens.")
    elif not e.anchors:
        screen.print("No token of this sentence is in a pool, so none has matched tokens.")
    for token in e.anchors:
        screen.print()
        screen.print(_anchor_line(token))
        screen.print(_matches_table(token))


def _slice_line(e: Explanation) -> str:
    s, now = e.slice, e.now
    said = [f"{s.sentences:,} sentences, {s.entity_tokens:,} E tokens, {s.other_tokens:,} O tokens"]
    if s.hidden_old is not None:
        said[0] += f" ({s.hidden_old:,} of them old entities)"
    said.append(f"{s.defined_other:,} defined-other{_right(s.defined_other_right, s.defined_other)}")
    if now is not None:
        said.append(f"{now.selected:,} selected in this epoch{_right(now.right, now.selected)}")
    return "; ".join(said) + "."


def _right(right: int | None, whole: int) -> str:
    return "" if right is None or not whole else f", {100 * right / whole:.0f} % right"


def _tokens_table(e: Explanation) -> Table:
    hidden = [hidden_truth(token) or "" for token in e.tokens]
    in_truth = ["in truth"] if any(hidden) else []
    columns = ["token", "labelled", *in_truth, "teacher", "student", "went to"]
    title = f"sentence {e.sentence} of the slice"
    table = table_of(columns, (), title=title, left=len(columns), narrow=True)
    for token, truth in zip(e.tokens, hidden, strict=True):
        taught = "" if token.trained_on == token.label else f", taught {token.trained_on}"
        table.add_row(
            plain(token.word),
            plain(token.label + taught),
            *([plain(truth)] if any(hidden) else []),
            _shares(token.teacher, 1),
            _shares(token.student, 1),
            plain(token.path + (f" (joins in epoch {token.joins})" if token.waits and token.joins else "")),
            style=_colour(token) or ("yellow" if token.waits else ""),
        )
    _keep_words(table)
    return table


def _keep_words(table: Table) -> None:
    """Lines break between words; only words longer than a column are split."""
    for column in table.columns:
        words = (word for cell in (column.header, *column.cells) for word in str(cell).split())
        column.min_width = min(max(map(len, words), default=1), _LONG_WORD)
        column.overflow = "fold"


def _colour(token: TokenExplanation) -> str:
    return next((_COLOURS[loss.shown] for loss in token.losses if loss.shown in _COLOURS), "")


def _anchor_line(token: TokenExplanation) -> Text:
    colour = _colour(token) or "yellow"
    line = Text.assemble((plain(token.word).plain, f"bold {colour}"), "  ", plain(token.path))
    read = {"teacher ": token.teacher, "student ": token.student, "averaged": token.averaged}
    for name, distribution in read.items():
        if distribution is not None:
            line.append(Text.assemble(f"\n  {name}  ", _shares(distribution)))
    return line


def _matches_table(token: TokenExplanation) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("  distance", "weight"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("labelled", "student", "matched token in its sentence"):
        table.add_column(name, overflow="fold")
    for match in token.matches:
        hidden = hidden_truth(match)
        labelled = plain(match.label + (f" ({hidden})" if hidden else ""))
        figures = f"{match.distance:.3f}", f"{match.weight:.2f}"
        table.add_row(*figures, labelled, _shares(match.student, 1), _context(match))
    return table


def _context(match: Match) -> Text:
    start, end = max(0, match.position - _CONTEXT), match.position + _CONTEXT + 1
    before = ("… " if start else "") + " ".join(match.words[start : match.position])
    after = " ".join(match.words[match.position + 1 : end]) + (" …" if end < len(match.words) else "")
    return Text.assemble(
        plain(before), " " * bool(before), (plain(match.word).plain, "bold reverse"), " ", plain(after)
    )


def _shares(distribution: Distribution, count: int | None = None) -> Text:
    shares = "  ".join(f"{share.label} {share.p:.2f}" for share in distribution.top[:count])
    return plain(shares if distribution.group is None else f"{shares} (among {distribution.group})")
