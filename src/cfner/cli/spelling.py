"""Turn arguments and functions in messages, which use Python's spelling in backticks, into flags and
commands.

`guard` becomes --guard, `old_labels='use'` becomes --old-labels use, `rollback(MODEL, 2)` becomes
cfner rollback MODEL 2. Names that the command does not have are not changed.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from typer.core import TyperGroup

from cfner.errors import CfnerError

_CODE: Final = re.compile(r"`([^`\n]+)`")
_ELSEWHERE: Final = {"Corpus.split": "'cfner data split'"}  # commands without a function of the same name


class Commands(TyperGroup):
    """A group whose commands raise errors in the spelling of the command line."""

    running: ClassVar[Any] = None  # the context of the current command
    all: ClassVar[Mapping[str, Any]] = {}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        found = super().resolve_command(ctx, args)
        Commands.running = found[1]
        if ctx.parent is None:
            Commands.all = self.commands
        return found

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except CfnerError as error:
            error.what, error.remedy = in_shell(error.what), error.remedy and in_shell(error.remedy)
            raise


def in_shell(text: str) -> str:
    """A message of the library in the spelling of the command that runs now."""
    return _CODE.sub(lambda code: _spelled(code[1], Commands.running, Commands.all) or code[0], text)


def _spelled(code: str, command: Any, commands: Mapping[str, Any]) -> str | None:
    try:
        parsed = ast.parse(f"_({code})", mode="eval").body
    except SyntaxError:
        return None
    match parsed:
        case ast.Call(args=[], keywords=[_, *_]) if command is not None:
            return " ".join(_flags(parsed, command))
        case ast.Call(args=[ast.Name(name)]):
            flag = None if command is None else _flag(command, name)
            return flag or (f"'cfner {name}'" if name in commands else None)
        case ast.Call(args=[ast.Call(func=ast.Name(name)) as call]) if name in commands:
            return " ".join(["cfner", name, *map(_word, call.args), *_flags(call, commands[name])])
    return _ELSEWHERE.get(code)


def _flags(call: ast.Call, command: Any) -> Iterator[str]:
    for keyword in call.keywords:
        name, value = keyword.arg or "", keyword.value
        flag = _flag(command, name)
        if flag is None:
            yield f"--set {name}={_word(value).lower()}"
        else:
            yield flag
            if not (isinstance(value, ast.Constant) and value.value is True):
                yield _word(value)


def _flag(command: Any, name: str) -> str | None:
    """The option or argument of the command for an argument's name in Python."""
    for parameter in command.params:
        options = [option for option in parameter.opts if option.startswith("--")]
        if options and options[0] == f"--{name.replace('_', '-')}":
            return str(options[0])
        if not options and parameter.name == name:
            return name.upper()
    return None


def _word(value: ast.expr) -> str:
    """A value as the user would type it; a name is a placeholder."""
    if isinstance(value, ast.Name):
        return value.id.upper()
    return shlex.quote(str(value.value)) if isinstance(value, ast.Constant) else ast.unparse(value)
