"""The package: what its wheel holds and promises, and how extras are named to those who lack them."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from email.message import Message
from email.parser import Parser
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

import cfner
from cfner.errors import MissingExtraError
from cfner.store.step_files import FORMAT

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


# -- the wheel ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ``python -m build`` makes: the sources, and the wheel that is built from them."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    (found,) = dist.glob("*.whl")
    return found


def described(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as files:
        return Parser().parsestr(files.read(f"cfner-{cfner.__version__}.dist-info/METADATA").decode())


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as files:
        held = {name for name in files.namelist() if ".dist-info/" not in name}
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "cfner"],
        cwd=ROOT / "src",
        capture_output=True,
        text=True,
        check=True,
    )
    assert held == {name for name in listed.stdout.split("\n") if name and (ROOT / "src" / name).is_file()}
    assert "cfner/py.typed" in held  # type checkers of those who use it read its types


def test_the_wheel_says_what_it_is(wheel: Path) -> None:
    said = described(wheel)
    assert (said["Name"], said["Version"]) == ("cfner", cfner.__version__) == ("cfner", PROJECT["version"])
    assert said["Requires-Python"] == ">=3.11" and said["License-Expression"] == "Apache-2.0"
    assert set(said.get_all("Provides-Extra") or ()) == set(PROJECT["optional-dependencies"])
    with zipfile.ZipFile(wheel) as files:
        inside = f"cfner-{cfner.__version__}.dist-info"
        commands = files.read(f"{inside}/entry_points.txt").decode()
        assert f"{inside}/licenses/LICENSE" in files.namelist()
    assert "cfner = cfner.cli.main:main" in commands and "[spacy_factories]" in commands


def test_the_sources_hold_what_their_tests_and_documents_need(dist: Path) -> None:
    (archive,) = dist.glob("*.tar.gz")
    with tarfile.open(archive) as files:
        held = {name.partition("/")[2] for name in files.getnames()}
    for name in (
        "CHANGELOG.md",
        "CITATION.cff",
        "CONTRIBUTING.md",
        "docs/install.md",
        "tests/test_package.py",
    ):
        assert name in held, name


@pytest.mark.skipif(
    not os.environ.get("CFNER_SLOW"),
    reason="installs torch, and runs the demo: minutes; set CFNER_SLOW=1 to run it",
)
def test_the_wheel_installs_by_name_into_an_empty_environment_and_runs_the_demo(
    wheel: Path, tmp_path: Path
) -> None:
    venv.create(tmp_path / "empty", with_pip=True)
    programs = tmp_path / "empty" / "bin"
    outside = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    pip = [programs / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    tested = ["--constraint", ROOT / "constraints.txt", "--find-links", wheel.parent]
    asked = f"cfner[demo]=={cfner.__version__}"
    subprocess.run([*pip, *tested, asked], check=True, cwd=tmp_path, env=outside)
    done = subprocess.run(
        [programs / "cfner", "demo"], cwd=tmp_path, env=outside, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"micro-F1 over all 5 types: finetune \d+\.\d, own-other \d+\.\d", done.stdout)
    assert (tmp_path / "runs" / "demo" / "own-other").is_dir()


# -- what is said about it ---------------------------------------------------------------------------------


def test_the_version_is_the_same_everywhere() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == PROJECT["version"] and citation["license"] == PROJECT["license"]
    versions = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert versions[0] == "Unreleased" and len(versions) == len(set(versions))
    assert "dev" in PROJECT["version"] or PROJECT["version"] == versions[1]


def test_every_format_of_model_folders_is_in_the_policy() -> None:
    formats = re.findall(r"^\| (\d+) ", (ROOT / "docs/versioning.md").read_text(), re.MULTILINE)
    assert [int(number) for number in formats] == list(range(1, FORMAT + 1))


def test_every_extra_has_a_row_with_its_packages() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \|.*?\| ([^|]*) \|[^|]*\|$", (ROOT / "docs/install.md").read_text(), re.MULTILINE
    )
    assert [name for name, _ in rows] == list(PROJECT["optional-dependencies"])
    for name, packages in rows:
        needed = [re.split(r"[^\w-]", line)[0] for line in PROJECT["optional-dependencies"][name]]
        assert name == "dev" or packages.split(", ") == needed


def test_pre_commit_runs_what_make_test_runs() -> None:
    makefile = (ROOT / "Makefile").read_text()
    recipes = {
        name: re.findall(r"\t(.*)\n", lines)
        for name, lines in re.findall(r"^(\w+):.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    }
    first, tests = recipes["test"]
    checks = [line for name in first.split("--output-sync ")[1].split() for line in recipes[name]]
    commands = [line.replace("$(BIN)", ".venv/bin") for line in [*checks, tests]]
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    hooks = [hook for repo in config["repos"] for hook in repo["hooks"]]
    assert [shlex.split(hook["entry"]) for hook in hooks] == [shlex.split(command) for command in commands]
    assert all(hook["pass_filenames"] is False and hook["language"] == "system" for hook in hooks)
    late = [hook["id"] for hook in hooks if hook.get("stages") == ["pre-push"]]
    assert late == ["tests"]  # which take minutes


# -- extras ------------------------------------------------------------------------------------------------


def installed_from(origin: dict[str, Any] | None, monkeypatch: pytest.MonkeyPatch) -> str:
    """The error that somebody meets who installed cfner from there, without the extra."""
    recorded = None if origin is None else json.dumps(origin)
    monkeypatch.setattr(metadata, "distribution", lambda _: SimpleNamespace(read_text=lambda _: recorded))
    return str(MissingExtraError("onnxruntime", "onnx", "Running an ONNX model"))


def test_a_missing_extra_is_installed_from_where_cfner_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = tmp_path / "my checkout"
    checkout.mkdir()
    url = checkout.as_uri()
    copied = installed_from({"url": url, "dir_info": {}}, monkeypatch)
    assert copied.endswith(f"Install it with: pip install '{checkout}[onnx]'")
    edited = installed_from({"url": url, "dir_info": {"editable": True}}, monkeypatch)
    assert edited.endswith(f"Install it with: pip install -e '{checkout}[onnx]'")
    monkeypatch.chdir(checkout)  # as one types it there
    assert installed_from({"url": url, "dir_info": {}}, monkeypatch).endswith("pip install '.[onnx]'")


@pytest.mark.parametrize(
    "origin", [None, {"url": "file:///gone/cfner.whl"}, {"url": "https://host/cfner.whl"}]
)
def test_a_missing_extra_has_its_name_where_there_is_no_checkout(
    origin: dict[str, Any] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert installed_from(origin, monkeypatch).endswith("Install it with: pip install 'cfner[onnx]'")


def test_a_missing_extra_is_named_where_nothing_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", absent)
    assert "'cfner[ray]'" in str(MissingExtraError("ray", "ray", "A grid"))
