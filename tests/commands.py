"""Every command of the program with its flags, taken from the program itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer.main

from cfner.cli.main import app


def _walk(group: Any, path: str = "") -> Iterator[tuple[str, set[str]]]:
    for name, command in group.commands.items():
        place = f"{path} {name}".strip()
        if hasattr(command, "commands"):
            yield from _walk(command, place)
        else:
            options = [*command.params, *([help_] if (help_ := _help_of(command)) else [])]
            yield place, {flag for option in options for flag in (*option.opts, *option.secondary_opts)}


def _help_of(command: Any) -> Any:
    return command.get_help_option(command.make_context("", [], resilient_parsing=True))


COMMANDS = dict(_walk(typer.main.get_command(app)))
