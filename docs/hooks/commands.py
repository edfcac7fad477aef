"""Every command with its options, from the program itself: it takes the place of a mark in a page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer.main

from cfner.cli.main import app
from cfner.cli.panels import PANELS

MARK = "<!-- the commands -->"
LAST = re.compile(r"\s*\[(?P<facts>[^\[\]]*)\]$")  # "[default: 64; x>=1]" at the end of a help text


def on_page_markdown(markdown: str, **_: Any) -> str:
    return markdown.replace(MARK, reference()) if MARK in markdown else markdown


def reference() -> str:
    """The panels of ``cfner --help``, each with its commands; a command of no panel is an error."""
    root = typer.main.get_command(app)
    commands: dict[str, Any] = dict(root.commands)  # type: ignore[attr-defined]
    lines: list[str] = []
    for panel, names in PANELS.items():
        lines += [f"## {panel}", ""]
        for name in names:
            lines += _described(commands.pop(name), f"cfner {name}")
    if commands:
        raise ValueError(f"These commands are in no panel of cfner.cli.panels: {', '.join(commands)}")
    return "\n".join(lines)


def _described(command: Any, path: str) -> Iterator[str]:
    yield from (f"### `{path}`", "")
    if hasattr(command, "commands"):
        yield from (_prose(command.help or ""), "")
        for name, inner in command.commands.items():
            yield from _described(inner, f"{path} {name}")
        return
    context = command.make_context(path, [], resilient_parsing=True)
    usage = command.get_usage(context).removeprefix("Usage: ").replace("{", "").replace("}", "")
    yield from ("```text", usage, "```", "", _prose(command.help or ""), "")
    records = [(option, option.get_help_record(context)) for option in command.params]
    rows = [_row(record) for option, record in records if record is not None]
    if rows:
        yield from ("| option | default, range | meaning |", "|---|---|---|", *rows, "")


def _row(record: tuple[str, str]) -> str:
    names, text = record
    flags, _, kind = names.partition(" <")
    facts = match["facts"] if (match := LAST.search(text)) else ""
    meaning = LAST.sub("", text)
    shown = f"`{flags}`" + (f" {_cell(kind.rstrip('>').removesuffix(' range'))}" if kind else "")
    return f"| {shown} | {_cell(facts.removeprefix('default: '))} | {_cell(meaning)} |"


def _prose(text: str) -> str:
    return "\n\n".join(_text(paragraph.replace("\n", " ")) for paragraph in text.split("\n\n"))


def _cell(text: str) -> str:
    return _text(text.replace("\n", " ")).replace("|", "\\|")


def _text(text: str) -> str:
    """Markdown that shows the text as it is; commands, flags and names of files as code."""
    parts = re.split(r"('cfner [^']*'|(?<![\w-])--[a-z][a-z0-9-]*)", text)
    return "".join(f"`{part.strip(chr(39))}`" if at % 2 else _escaped(part) for at, part in enumerate(parts))


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*_#\[\]])", r"\\\1", text).replace("<", "&lt;")
