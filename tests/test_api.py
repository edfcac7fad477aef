"""Every command is a function: same names, same defaults, documented. What it says, it says in Python."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

import cfner
from cfner.cli.main import app
from cfner.errors import CfnerError, ConfigError
from cfner.methods import method_class, method_names
from cfner.training.config import TrainingConfig
from commands import COMMANDS
from test_named_commands import FOREIGN, SOURCES

NO_FUNCTION = {
    "demo": "a show for the terminal; it trains, predicts and draws",
    "methods": "the package cfner.methods has this name: method_names(), method_class()",
    "data describe": "Corpus.read: types, mentions(), overlaps(), report",
    "data convert": "Corpus.read, and the files that the command writes",
    "data split": "Corpus.split",
    "data rename-type": "Corpus.renamed",
    "data sample": "cfner.synthetic.generate",
    **{
        path: "grids run in processes of their own, and are resumed by the command"
        for path in COMMANDS
        if path.startswith("bench ")
    },
}
FOR_THE_TERMINAL = {
    "json": "what is printed; in Python there is to_json()",
    "set": "NAME=VALUE is an argument of that name",
    "help": "help(function)",
    "show": "how much of the result is printed",
    "models_and_text": "model, model2 and text of diff",
}
SPELLED_OTHERWISE = {
    "tracker": "trackers",  # one flag each, one list
    "as": "as_",  # a keyword of the language
}
ONLY_IN_PYTHON = {
    "progress": "the command line draws bars where somebody looks",
    "ready": "the command line prints the address",
    "settings": "the others, which the command line takes with --set",
    "model": "see models_and_text",
    "model2": "see models_and_text",
    "text": "see models_and_text; predict reads standard input without it",
}
FUNCTIONS = sorted(COMMANDS.keys() - NO_FUNCTION.keys())


def command(name: str) -> Any:
    return typer.main.get_command(app).commands[name]  # type: ignore[attr-defined]


def name_of(parameter: Any) -> str:
    flags = [flag for flag in parameter.opts if flag.startswith("--")]
    name = flags[0][2:].replace("-", "_") if flags else parameter.name
    return SPELLED_OTHERWISE.get(name, name)


def given_in_shell(name: str) -> dict[str, Any]:
    """Arguments of a command by name, with their defaults; ... where one has to be given."""
    parameters = {name_of(p): ... if p.required else p.default for p in command(name).params}
    return {key: value for key, value in parameters.items() if key not in FOR_THE_TERMINAL}


def documented(function: Callable[..., Any]) -> dict[str, str]:
    """Arguments in the docstring, each with what is said of it."""
    text = inspect.getdoc(function) or ""
    assert "\nArgs:\n" in text, f"{function.__name__} has no section Args"
    section = re.split(r"\n(?=[A-Z]\w+:\n)|\Z", text.split("\nArgs:\n")[1])[0]
    found = re.findall(r"^    (\*{0,2}\w+): (.+(?:\n {8,}.+)*)", section, re.MULTILINE)
    return {name.lstrip("*"): said for name, said in found}


def test_exceptions_are_commands() -> None:
    assert NO_FUNCTION.keys() <= COMMANDS.keys()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_command_and_its_function_take_the_same(name: str) -> None:
    function = getattr(cfner, name)
    assert name in cfner.__all__
    takes = inspect.signature(function).parameters
    own = {
        parameter for method in method_names() for parameter in method_class(method).Parameters.model_fields
    }
    for argument, default in given_in_shell(name).items():
        if argument in takes:
            here = takes[argument].default
            assert (... if here is inspect.Parameter.empty else here) == default or argument in ONLY_IN_PYTHON
        else:  # a parameter of a method, which **settings takes
            assert "settings" in takes and argument in own and default is None, argument
    assert takes.keys() - given_in_shell(name).keys() <= ONLY_IN_PYTHON.keys()


@pytest.mark.parametrize("name", [n for n in cfner.__all__ if inspect.isfunction(getattr(cfner, n))])
def test_every_argument_is_documented(name: str) -> None:
    function = getattr(cfner, name)
    parameters = inspect.signature(function).parameters
    if parameters:
        assert documented(function).keys() == parameters.keys()
    first = (inspect.getdoc(function) or "").splitlines()[0]
    assert first.endswith(".") or first.endswith(":")


def test_completion_and_help_show_the_public_names() -> None:
    assert set(cfner.__all__) <= set(dir(cfner))
    explained = cfner.__doc__ or ""
    functions = [name for name in cfner.__all__ if inspect.isfunction(getattr(cfner, name))]
    assert [name for name in functions if not re.search(rf"\b{name}\b", explained)] == []


# -- settings by name --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("wrong", "near"), [("epoch", "epochs"), ("guards", "guard"), ("lr", "lr_encoder")])
def test_a_wrong_name_is_answered_with_the_nearest(wrong: str, near: str, two_steps: Path) -> None:
    with pytest.raises(
        ConfigError, match=f"no argument '{wrong}', and there is no such setting. Did you mean.*{near}"
    ):
        cfner.learn(two_steps, "new.conll", out="m2", **{wrong: 1})


def test_settings_may_be_a_dictionary(two_steps: Path, tiny_data: Path) -> None:
    plan = cfner.train(
        tiny_data,
        "x",
        dry_run=True,
        min_mentions=1,
        config={"epochs": 3, "clip": None},
        epochs=4,
        k=7,
        method="cfner",
    )
    assert (plan.config.epochs, plan.config.clip, plan.config.parameters) == (4, None, {"k": 7})
    assert "epochs" in TrainingConfig.model_fields


# -- errors ------------------------------------------------------------------------------------------------


def messages(path: Path) -> Iterator[str]:
    """Texts in a file that are no docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docs = {
        node.body[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docs:
            yield node.value


# what these write is for the shell: reports, pages of methods, model cards, commands, a file to begin with
IN_SHELL = {
    *("contents.py", "method_pages.py", "reproduction.py", "commands.py", "method_template.py"),
    "usage.py",
}


def test_the_library_names_no_flag() -> None:
    library = [p for p in SOURCES if "cli" not in p.parts and p.name not in IN_SHELL]
    named = {
        (p.name, flag) for p in library for text in messages(p) for flag in re.findall(r"--[a-z][\w-]+", text)
    }
    assert {(file, flag) for file, flag in named if flag not in FOREIGN} == set()
    spoken = re.compile(rf"\bcfner ({'|'.join(FUNCTIONS)})\b")
    assert {(p.name, text) for p in library for text in messages(p) if spoken.search(text)} == set()


def test_what_messages_name_in_backticks_is_there() -> None:
    """An argument of a function or of the grid, or a call of a function."""
    known = {
        argument for name in FUNCTIONS for argument in inspect.signature(getattr(cfner, name)).parameters
    }
    known |= {flag[2:].replace("-", "_") for flags in COMMANDS.values() for flag in flags}
    known |= {"old_wins", "tokens", "Corpus.split", *cfner.__all__}
    library = [
        p for p in SOURCES if "cli" not in p.parts and "pages" not in p.parts and p.name not in IN_SHELL
    ]
    unknown = set()
    for path in library:
        for text in messages(path):
            for name in re.findall(r"(?<!`)`([a-z_][\w.]*)(?:[=(][^`\n]*)?`(?!`)", text):
                if name not in known:
                    unknown.add((path.name, name))
    assert unknown == set()


@pytest.mark.parametrize(
    ("words", "function", "python", "shell"),
    [
        (["learn", "M", "D"], lambda: cfner.learn("M", "D"), "`out=FOLDER`", "--out FOLDER for"),
        (
            ["learn", "M", "D", "--out", "x", "--strict"],
            lambda: cfner.learn("M", "D", out="x", strict=True),
            "(`guard`), or `min_new_f1`",
            "(--guard), or --min-new-f1",
        ),
        (["history", "M@2"], lambda: cfner.history("M@2"), "written by `train`", "written by 'cfner train'"),
        (
            ["evaluate", "M", "D", "--all-steps", "--step", "1"],
            lambda: cfner.evaluate("M", "D", all_steps=True, step=1),
            "`all_steps` was given together with `step`",
            "--all-steps was given together with --step",
        ),
    ],
)
def test_an_error_speaks_as_it_was_called(
    words: list[str], function: Callable[[], Any], python: str, shell: str
) -> None:
    with pytest.raises(CfnerError) as caught:
        function()
    assert python in str(caught.value) and "--" not in str(caught.value)
    said = CliRunner().invoke(app, words).exception
    assert shell in str(said) and "`" not in str(said)


def test_calls_become_commands() -> None:
    from cfner.cli.spelling import in_shell

    CliRunner().invoke(app, ["learn", "M", "D"])
    for python, shell in {
        "`rollback('my model', 2)`": "cfner rollback 'my model' 2",
        "`evaluate(MODEL, DATA, all_steps=True, save=True)`": "cfner evaluate MODEL DATA --all-steps --save",
        "`old_labels='use'`": "--old-labels use",
        "`old_wins=True`": "--set old_wins=true",
        "`learn`": "'cfner learn'",
        "`data`": "DATA",
        "`rm -rf`, `nonsense`": "`rm -rf`, `nonsense`",
    }.items():
        assert in_shell(python) == shell
