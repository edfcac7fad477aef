"""Methods of installed packages: a small package, installed in a temporary environment."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

import cfner
from cfner.errors import ConfigError
from cfner.methods import create, method_names, registry
from cfner.methods.files import load_file

METHOD = '''
from typing import ClassVar

from cfner.methods import ClassifyEntities, Distil, Method, Objective, StepContext, register


@register
class Visiting(Method):
    """Distils as ExtendNER does."""

    name: ClassVar[str] = "visiting"
    title: ClassVar[str] = "Visiting"
    paper: ClassVar[str] = "Visitor 2027"
    good_for: ClassVar[str] = "Being found."

    def objective(self, ctx: StepContext) -> Objective:
        return Objective((ClassifyEntities(), Distil()))
'''
# what a user types, one line each, in one process: it takes long to start
SCRIPT = """
import json, sys
from typer.testing import CliRunner
from cfner.cli.main import app

told = {}
for line in json.loads(sys.stdin.read()):
    done = CliRunner().invoke(app, line, env={"COLUMNS": "200"})
    told[" ".join(line)] = [done.exit_code, done.output]
from cfner.pages.method_pages import method_pages
told["pages"] = [0, method_pages()["visiting.md"]]
print(json.dumps(told))
"""


def wheel(folder: Path, source: str) -> Path:
    """A package with one method, as somebody would publish it."""
    file = folder / "visitors-1.0-py3-none-any.whl"
    info = "visitors-1.0.dist-info"
    with zipfile.ZipFile(file, "w") as content:
        content.writestr("visitors.py", source)
        content.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: visitors\nVersion: 1.0\n")
        content.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        content.writestr(f"{info}/entry_points.txt", "[cfner.methods]\nvisiting = visitors\n")
        content.writestr(f"{info}/RECORD", "")
    return file


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that has what this one has, to install more into."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    (site,) = folder.glob("lib/python*/site-packages")
    outer = [str(Path(cfner.__file__).parent.parent), sysconfig.get_paths()["purelib"]]
    (site / "outer.pth").write_text("\n".join(outer))
    return folder / "bin" / "python"


def installed(python: Path, folder: Path, source: str, *lines: list[str]) -> dict[str, Any]:
    """Install the package and type these lines."""
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check", "-q"]
    install = [*pip, "install", "--no-index", "--no-deps", "--force-reinstall", str(wheel(folder, source))]
    subprocess.run(install, check=True)
    script = [str(python), "-c", SCRIPT]
    done = subprocess.run(script, input=json.dumps(lines), capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def test_an_installed_packages_method_is_in_lists_grids_and_pages(
    environment: Path, tiny_data: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    grid = ["bench", "run", "--data", str(tiny_data), "--min-mentions", "1", "--seeds", "0", "--dry-run"]
    grid += ["--encoder", str(tiny_encoder), "--out", str(tmp_path / "runs")]
    named = [*grid, "--methods", "visiting,visiting+fusion"]
    lists = [["methods"], ["methods", "visiting", "--json"]]
    told = installed(environment, tmp_path, METHOD, *lists, grid, named)
    assert {name: code for name, (code, _) in told.items()} == dict.fromkeys(told, 0)
    assert "Distils as ExtendNER does. (package visitors)" in told["methods"][1]
    assert json.loads(told["methods visiting --json"][1])[0]["package"] == "visitors"
    assert " visiting, " in told[" ".join(grid)][1] and " cfner, " in told[" ".join(grid)][1]
    assert " visiting+fusion, " in told[" ".join(named)][1]
    assert "Visitor 2027; installed with the package `visitors`" in told["pages"][1]


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("import nothing_like_it", "ModuleNotFoundError: No module named 'nothing_like_it'"),
        ("x = 1", "it registers no method"),
        (METHOD.replace('"visiting"', '"cfner"'), "Two methods are named 'cfner'"),
    ],
)
def test_a_broken_package_is_named_and_does_not_stop_who_does_not_ask_for_it(
    source: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, methods_as_before: None
) -> None:
    (tmp_path / "visitors.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    announced = EntryPoint("visiting", "visitors", registry.PLUG_INS)
    monkeypatch.setattr(registry, "entry_points", lambda group: (announced,))
    registry._load_plug_ins.cache_clear()
    before = list(registry._METHODS)
    for ask in (method_names, lambda: create("visiting")):
        with pytest.raises(ConfigError, match=re.escape(why)) as caught:
            ask()
        assert "'visitors'" in str(caught.value) and "pip uninstall visitors" in str(caught.value)
    assert create("cfner+fusion").name == "cfner+fusion"
    assert list(registry._METHODS) == before
    registry._load_plug_ins.cache_clear()
    sys.modules.pop("visitors", None)


def test_a_broken_package_stops_no_call_with_a_method_and_parameters_of_this_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    announced = EntryPoint("visiting", "nothing_like_it", registry.PLUG_INS)
    monkeypatch.setattr(registry, "entry_points", lambda group: (announced,))
    registry._load_plug_ins.cache_clear()
    for given in ({}, {"k": 2}):
        with pytest.raises(cfner.CorpusError, match="no such file"):
            cfner.train(tmp_path / "none", tmp_path / "out", method="cfner", **given)
    with pytest.raises(ConfigError, match="pip uninstall nothing_like_it"):
        cfner.train(tmp_path / "none", tmp_path / "out", method="cfner", kk=2)
    registry._load_plug_ins.cache_clear()


def test_a_method_of_this_program_is_not_replaced(tmp_path: Path, methods_as_before: None) -> None:
    source = METHOD.replace("class Visiting", "class CFNER").replace('"visiting"', '"cfner"')
    (tmp_path / "mine.py").write_text(source)
    with pytest.raises(ConfigError, match="Two methods are named 'cfner'"):
        load_file(tmp_path / "mine.py")
    assert type(create("cfner")).__module__ == "cfner.methods.cfner"


def test_a_file_that_was_changed_is_run_again(tmp_path: Path, methods_as_before: None) -> None:
    file = tmp_path / "mine.py"
    for title in ("First", "Other", "First"):  # of one length, and within a second
        file.write_text(METHOD.replace("Visiting", f"{title}"))
        assert load_file(file) == ["visiting"]
        assert create("visiting").title == title
        assert load_file(file) == ["visiting"]
    file.write_text("@register")
    with pytest.raises(ConfigError, match="SyntaxError"):
        load_file(file)
    assert create("visiting").title == "First"
