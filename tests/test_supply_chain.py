"""What is installed is what was locked, and nothing talks to the network unless it was asked to."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import warm

ROOT = Path(__file__).resolve().parents[1]
USER_EXTRAS = ("demo", "serve")
LINE = re.compile(r"([a-z0-9.-]+)==(\S+)( ; [^\\]+)?((?: \\\n    --hash=sha256:[0-9a-f]{64})+)")


@cache
def locked(name: str) -> dict[str, str]:
    """Package -> version of a lock file; every line of it is understood."""
    text = "".join(line for line in (ROOT / name).open() if not line.startswith("#"))
    found = LINE.findall(text)
    assert LINE.sub("", text).strip() == ""
    return {package: version for package, version, *_ in found}


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def closure(roots: list[Requirement]) -> set[str]:
    """All packages that these need, as they are installed here."""
    done: set[tuple[str, str]] = set()
    todo = list(roots)
    while todo:
        need = todo.pop()
        for extra in ("", *need.extras):
            name = canonicalize_name(need.name)
            if (name, extra) in done:
                continue
            done.add((name, extra))
            for each in map(Requirement, metadata.requires(name) or ()):
                if each.marker is None or each.marker.evaluate({"extra": extra}):
                    todo.append(each)
    return {name for name, _ in done}


def test_the_lock_files_have_every_version_of_the_constraints() -> None:
    lines = (ROOT / "constraints.txt").read_text().split()
    pins = {canonicalize_name(name): version for name, version in (line.split("==") for line in lines)}
    locks = [locked(f"requirements{part}.lock") for part in ("", "-torch", "-dev")]
    assert sum(map(len, locks)) == len({name for lock in locks for name in lock})  # each package once
    unused = set(pins) - {name for lock in locks for name in lock}
    assert {name: version for lock in locks for name, version in lock.items()} == {
        name: version for name, version in pins.items() if name not in unused
    }
    assert not unused
    assert locked("requirements-torch-cpu.lock") == {"torch": f"{pins['torch']}+cpu"}


def test_the_locks_are_whole() -> None:
    """What users need is in the first lock, what developers need in both: nothing is left to be found."""
    facts = project()
    extras = facts["project"]["optional-dependencies"]
    lines = [*facts["project"]["dependencies"], *facts["build-system"]["requires"]]
    core = [Requirement(line) for line in lines]
    user = core + [Requirement(line) for name in USER_EXTRAS for line in extras[name]]
    developer = core + [Requirement(line) for line in extras["dev"] if not line.startswith("cfner")]
    try:
        needed, needed_too = closure(user), closure(developer)
    except metadata.PackageNotFoundError as error:
        pytest.skip(f"not installed from the locks: {error} is missing")
    first = locked("requirements.lock").keys() | locked("requirements-torch.lock").keys()
    assert needed <= first
    assert needed_too <= first | locked("requirements-dev.lock").keys()


def test_the_commands_install_what_is_locked() -> None:
    """README installs with ``make install``; the Makefile and docs/install.md name the locks."""
    assert "make install" in (ROOT / "README.md").read_text()
    for name in ("docs/install.md", "Makefile"):
        assert "--require-hashes" in (ROOT / name).read_text(), name
    for name in ("README.md", "docs/install.md", "Makefile"):
        for line in (ROOT / name).read_text().splitlines():
            if "pip install" in line and ("requirements" in line or name != "docs/install.md"):
                assert "--no-deps" in line or "PIP " in line, f"{name}: {line}"
    for lock in ROOT.glob("*.lock"):
        assert "://" not in lock.read_text()


# -- the network -------------------------------------------------------------------------------------------

PRELUDE = """
import sys, json
asked = []
def watch(event, args):
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg", "socket.bind"):
        address = args[1]
        if isinstance(address, tuple) and not str(address[0]).startswith(("127.", "::1")):
            asked.append([event, str(address)])
            raise OSError("no network here")
    elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
        if args[0] not in (None, "localhost", "127.0.0.1", "::1"):
            asked.append([event, str(args[0])])
            raise OSError("no network here")
    elif event == "urllib.Request":
        asked.append([event, str(args[0])])
sys.addaudithook(watch)
"""
RUN = """
from cfner.cli.main import main
codes = []
for words in json.loads(sys.argv[1]):
    sys.argv = ["cfner", *words]
    try:
        main()
        codes.append(0)
    except SystemExit as end:
        codes.append(end.code or 0)
print(); print(json.dumps({"asked": asked, "codes": codes}))
"""
EVERY_MODULE = """
import importlib, pkgutil, cfner
for module in pkgutil.walk_packages(cfner.__path__, "cfner."):
    if module.name != "cfner.interop.spacy_component":
        importlib.import_module(module.name)
print(); print(json.dumps({"asked": asked}))
"""


def watched(program: str, *words: str, folder: Path, python: str) -> dict[str, Any]:
    """Run a program in a process where every use of the network is noted, and refused."""
    offline = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE", "HF_HUB_DISABLE_TELEMETRY")
    environment = {key: value for key, value in os.environ.items() if key not in offline}
    environment |= {"HF_HOME": str(folder / "empty"), "OMP_NUM_THREADS": "1", "COLUMNS": "120"}
    done = subprocess.run(
        [python, "-c", PRELUDE + program, *words],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return {**found, "err": done.stderr}


def test_importing_talks_to_nobody(tmp_path: Path) -> None:
    assert watched(EVERY_MODULE, folder=tmp_path, python=sys.executable)["asked"] == []


def test_the_commands_talk_to_nobody(two_steps: Path, tmp_path: Path) -> None:
    """The demo, small, and the practitioner's way: sample, check, learn, predict, diff, export."""
    model, new = str(two_steps), "new/train.conll"
    commands = [
        ["demo", "--size", "40", "--epochs", "1", "--json"],
        ["data", "sample", "new", "--size", "30", "--types", "AGE", "--json"],
        ["check", new, "--model", model, "--no-timing"],
        ["learn", model, new, "--out", "model2", "--epochs", "1"],
        ["predict", "model2", "Ada Lovelace lived in London.", "--json"],
        ["diff", "model2@1", "model2@2", "--text", "Ada lived in London."],
        ["history", "model2", "--verify"],
        ["export", "model2", "--out", "exported"],
    ]
    found = watched(RUN, json.dumps(commands), folder=tmp_path, python=warm.python())
    assert found["codes"] == [0] * len(commands), found["err"]
    assert found["asked"] == []


def test_a_name_on_the_hub_is_asked_for_there_and_only_then(tmp_path: Path) -> None:
    commands = [["predict", "some-owner/some-model", "Ada"]]
    found = watched(RUN, json.dumps(commands), folder=tmp_path, python=warm.python())
    assert found["codes"] == [2]
    assert found["asked"]
    assert "Traceback" not in found["err"]
