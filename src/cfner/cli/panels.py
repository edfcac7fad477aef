"""What ``cfner --help`` shows: the commands grouped by task, each in at most ten words."""

from __future__ import annotations

import copy
import typing
from collections.abc import Callable
from typing import Annotated, Any, Final, TypeVar

import typer
from typer.models import CommandInfo, OptionInfo, TyperInfo

Command = TypeVar("Command", bound=Callable[..., None])

# \b keeps click from joining the lines
WELCOME: Final = """\
Teach a named-entity recogniser new types without forgetting the old.

The old training data is not needed.

\b
Start with these three:
  cfner demo                                   watch it work, in two minutes
  cfner learn MODEL new.conll --out MODEL2     teach your model new types
  cfner predict MODEL2 "Ada lived in London."  use it
"""

PANELS: Final[dict[str, dict[str, str]]] = {
    "Try it": {
        "demo": "Learn five types in three steps, and compare with fine-tuning.",
    },
    "Use a model": {
        "predict": "Find the entities in a text or a file.",
        "serve": "Serve a model over HTTP, with a page.",
        "evaluate": "Measure precision, recall and F1 of each type.",
        "export": "Write a model for programs without cfner.",
    },
    "Teach it": {
        "learn": "Teach a model new types from text labelled with them.",
        "calibrate": "Make scores reliable, and promise a precision.",
        "consolidate": "Distil a model's experts into one network.",
    },
    "Look back and undo": {
        "diff": "Show which predictions changed from one model to another.",
        "history": "List the steps of a model, and how each scored.",
        "rollback": "Go back to an earlier step, or forward again.",
        "rename": "Rename an entity type.",
        "merge": "Merge several entity types into one.",
        "forget": "Remove entity types from a model.",
        "prune": "Free the disk space of old steps.",
    },
    "Prepare data": {
        "check": "Find mistakes in labelled data before training on it.",
        "data": "Describe, convert, split and generate corpora.",
    },
    "Research": {
        "train": "Learn a corpus in steps, and score each step.",
        "bench": "Compare methods, reproduce the paper's tables, write reports.",
        "methods": "List the methods and their parameters.",
        "encoders": "List the encoders that are known by name.",
        "explain": "Show how a method learned from one sentence.",
    },
}
MORE: Final = "More options"


def arrange(app: typer.Typer) -> None:
    """Sort the commands into panels, in the order above; typer would list groups last."""
    lines = {name: (panel, line) for panel, those in PANELS.items() for name, line in those.items()}
    both: list[CommandInfo | TyperInfo] = [*app.registered_commands, *app.registered_groups]
    for command in both:
        name = _name(command)
        if name in lines:
            command.rich_help_panel, command.short_help = lines[name]
    order = list(lines)
    app.registered_commands.sort(key=lambda c: order.index(_name(c)) if _name(c) in lines else len(order))


def first_options(*names: str) -> Callable[[Command], Command]:
    """Show these options first in a command's help, and the others in a panel of their own.

    Commands share option objects, so those that move are copied.
    """

    def marked(command: Command) -> Command:
        hints = typing.get_type_hints(command, include_extras=True)
        command.__annotations__ = {
            name: hint if name in names else _moved(hint) for name, hint in hints.items()
        }
        return command

    return marked


def _moved(hint: Any) -> Any:
    kind, *about = typing.get_args(hint) if typing.get_origin(hint) is Annotated else (hint,)
    if not about or not isinstance(about[0], OptionInfo):
        return hint
    option = copy.copy(about[0])
    option.rich_help_panel = MORE
    return Annotated[kind, option]


def _name(command: CommandInfo | TyperInfo) -> str:
    """Its own name, or the name that typer derives from its function."""
    if isinstance(command, TyperInfo):
        return str(command.typer_instance.info.name if command.typer_instance is not None else command.name)
    return command.name or getattr(command.callback, "__name__", "").replace("_", "-")
