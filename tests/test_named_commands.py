"""Every command and flag that messages and documents name exists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from commands import COMMANDS

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
GROUPS = {path.split()[0] for path in COMMANDS if " " in path}
GLOBAL = {"--version", "--debug", "--help", "-h"}
ANY_FLAG = GLOBAL.union(*COMMANDS.values())
# what is written after the program's or the method's name in prose
PROSE = {"with", "without", "reads", "has", "that", "can", "expects", "shows", "removes", "never"}
# of programs that this one or its documents call: pip, accelerate, Ray, the worker, the speed bench
FOREIGN = {
    *("--known-sentences", "--known", "--new", "--longest"),  # benchmarks/new_type.py, many_documents.py
    *("--force-reinstall", "--upgrade", "--require-hashes", "--no-deps", "--no-build-isolation"),
    *("--multi_gpu", "--num_processes", "--num_machines"),
    *("--head", "--until-stdin-ends", "--check", "--only"),
    *("--draws", "--picture", "--lambda-keep"),  # benchmarks/guard_power.py, checkpoint_trial.py
    *("--write", "--repeat"),  # benchmarks/results_tables.py, time_of_a_step.py
}

# not "the version of cfner that trained it"
CALL = re.compile(r"(?:^|[`'\"(|:$&,]|\w: )\s*cfner (?P<rest>[a-z-][^`'\"\n|;(]*)", re.MULTILINE)
# not a variable of a style sheet
FLAG = re.compile(r"(?<![\w(-])--?[a-z][a-z0-9_-]*+(?!\s*:)", re.IGNORECASE)


def strings_of(path: Path) -> Iterator[str]:
    """The texts in a Python file, docstrings among them; X for what is put into an f-string."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(p.value) if isinstance(p, ast.Constant) else "X" for p in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def code_of(path: Path) -> Iterator[str]:
    """Code in Markdown: spans and lines of their own, those that go on joined, quoted words left out."""
    text = re.sub(r"\\\n\s*", " ", path.read_text(encoding="utf-8"))
    lines = [line for line in text.splitlines() if re.match(r"    |\t|\$ |cfner ", line)]
    yield from (
        re.sub(r"\"[^\"]*\"|'[^']*'", "X", code) for code in [*lines, *re.findall(r"`([^`\n]+)`", text)]
    )


def texts_of(path: Path) -> Iterator[str]:
    return strings_of(path) if path.suffix == ".py" else code_of(path)


def command_in(words: list[str]) -> str | None:
    """The command that the words begin with, if it exists."""
    path = " ".join(words[:2]) if words[0] in GROUPS else words[0]
    return path if path in COMMANDS.keys() | GROUPS else None


def wrong_in(text: str) -> Iterator[str]:
    for found in CALL.finditer(text):
        words = re.split(r"[\s,.:)]+", found["rest"].strip())
        if words[0] in PROSE:
            continue
        command = None if words[0] in GLOBAL else command_in(words)
        if command is None and words[0] not in GLOBAL:
            yield f"cfner {found['rest']}"
        for flag in FLAG.findall(found["rest"]):
            if flag not in GLOBAL | COMMANDS.get(command or "", set()):
                yield f"cfner {command}: {flag}"


def test_commands_and_their_flags_exist() -> None:
    texts = [(path, text) for path in [*SOURCES, *DOCUMENTS] for text in texts_of(path)]
    assert [(str(path), wrong) for path, text in texts for wrong in wrong_in(text)] == []


def test_every_flag_is_one_of_some_command() -> None:
    texts = [(path, text) for path in [*SOURCES, *DOCUMENTS] for text in texts_of(path)]
    named = {(str(path), flag) for path, text in texts for flag in FLAG.findall(text) if flag[:2] == "--"}
    assert {(path, flag) for path, flag in named if flag not in ANY_FLAG | FOREIGN | {"--X"}} == set()


def test_a_commands_messages_name_flags_that_it_has() -> None:
    wrong = []
    for path in SOURCES:
        command = path.stem if path.parent.name == "cli" else path.parent.name
        if command in COMMANDS.keys() - {"methods"} and path.name != "commands.py":  # about other commands
            for text in strings_of(path):
                flags = {flag for flag in FLAG.findall(CALL.sub("", text)) if flag[:2] == "--"}
                wrong += [(str(path), flag) for flag in flags - COMMANDS[command] - GLOBAL - {"--X"}]
    assert wrong == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("'cfner data check' can read", ["cfner data check"]),
        ("cfner learn M D --lambda-base 4", ["cfner learn: --lambda-base"]),
        ("cfner train D --lambda-base 4 -o X", []),
        ("cfner bench run -d D | cfner nonsense", ["cfner nonsense"]),
        ("cfner --version, cfner with k=1", []),
    ],
)
def test_what_does_not_exist_is_found(text: str, wrong: list[str]) -> None:
    assert list(wrong_in(text)) == wrong
