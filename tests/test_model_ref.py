"""``MODEL@STEP``: a step is named in one way, wherever a model is."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from cfner.cli.main import app
from cfner.errors import ModelError
from cfner.serving.server import in_background


def test_a_step_is_named_wherever_a_model_is(two_steps: Path, tiny_data: Path, tmp_path: Path) -> None:
    run, first = CliRunner(), f"{two_steps}@1"

    def told(*arguments: object) -> str:
        done = run.invoke(app, [str(word) for word in arguments])
        assert done.exit_code == 0, done.output
        return done.stdout

    text = "alan turing saw the red fox in cape town"
    assert told("predict", first, text, "--json") == told("predict", two_steps, text, "--step", 1, "--json")
    assert set(json.loads(told("evaluate", first, tiny_data, "--json"))["types"]) == {"animal", "city"}
    told("export", first, "--out", tmp_path / "out")
    assert json.loads((tmp_path / "out/cfner_export.json").read_text())["types"] == ["animal", "city"]
    asked = ("--types", "dish", "--no-timing", "--old-labels", "ignore", "--json")
    seen = json.loads(told("check", tiny_data, "--model", first, *asked))
    assert seen["model"]["known"] == ["animal", "city"]
    with in_background(first) as url:
        assert httpx.get(f"{url}model").json()["current"] == 1
    for wrong in (f"{two_steps}@7", f"{two_steps}@1@1"):
        assert run.invoke(app, ["predict", wrong, text]).exit_code != 0
    twice = run.invoke(app, ["predict", first, text, "--step", "2"])
    assert "Name the step once" in str(twice.exception)


@pytest.mark.parametrize("words", [["history"], ["rename", "city", "town"], ["prune", "--keep", "1"]])
def test_commands_for_the_whole_folder_say_so(words: list[str], two_steps: Path) -> None:
    done = CliRunner().invoke(app, [words[0], f"{two_steps}@1", *words[1:]])
    assert isinstance(done.exception, ModelError) and "complete model folder" in str(done.exception)
