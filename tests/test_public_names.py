"""What ``import cfner`` offers, and what it costs."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import cfner


def imported_by(statement: str) -> set[str]:
    """Top-level packages in memory after a statement, in a fresh interpreter."""
    code = f"import sys\n{statement}\nprint(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("name", cfner.__all__)
def test_every_public_name_can_be_had(name: str) -> None:
    assert getattr(cfner, name).__name__ == name


def test_the_list_of_names_is_what_the_package_offers() -> None:
    assert sorted(cfner.__all__) == sorted(cfner._HOME)
    assert sorted(cfner.__all__) == cfner.__all__
    for name, home in cfner._HOME.items():
        assert getattr(importlib.import_module(home), name) is getattr(cfner, name)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        cfner.nonsense  # noqa: B018


def test_importing_the_package_imports_nothing_heavy() -> None:
    heavy = {"torch", "transformers", "pydantic", "numpy", "accelerate", "typer", "rich"}
    assert imported_by("import cfner") & heavy == set()


def test_importing_the_command_line_imports_nothing_heavy() -> None:
    heavy = {"torch", "transformers", "pydantic", "numpy", "accelerate", "datasets", "spacy"}
    assert imported_by("import cfner.cli.main") & heavy == set()


def test_reading_data_needs_no_torch() -> None:
    statement = "from cfner import Corpus, Sentence, Span, TaskStream"
    assert imported_by(statement) & {"torch", "transformers", "accelerate"} == set()


def test_importing_a_function_does_not_import_what_computes() -> None:
    functions = [name for name in cfner.__all__ if cfner._HOME[name].startswith("cfner.api.")]
    heavy = {"torch", "transformers", "pydantic", "numpy", "accelerate", "typer", "rich"}
    assert imported_by(f"from cfner import {', '.join(functions)}") & heavy == set()
