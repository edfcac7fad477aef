"""Write the lock files again after a change of constraints.txt or of the dependencies in pyproject.toml:

    python .ci/write_locks.py INDEX [--wheels FOLDER]

INDEX is the URL of a package index in the simple format, FOLDER has wheels of the CPU build of torch.
Versions are those of constraints.txt. Needs the package `packaging`.

- requirements.lock: dependencies of the demo and the server without torch, and build tools. Wheels only.
- requirements-torch.lock: torch as most indexes offer it, and the CUDA libraries that it needs on Linux.
- requirements-torch-cpu.lock: the CPU build, which needs no CUDA, where an index or a folder offers it.
- requirements-dev.lock: further dependencies of developers.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import re
import tomllib
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterable, Iterator
from email.parser import Parser
from functools import cache
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("3.11", "3.12", "3.13")
SYSTEMS = {"linux": ("Linux", "x86_64"), "darwin": ("Darwin", "arm64")}
USER = ("demo", "serve")
# hatchling and editables build this package, setuptools and setuptools-scm the one package without a wheel
BUILD = ("hatchling", "editables", "setuptools", "setuptools-scm")
NO_WHEEL = ("seqeval",)
HEAD = """\
# Written by .ci/write_locks.py from constraints.txt. Install with:
#     pip install --require-hashes --no-deps -r {name}
# For CPython {first} to {last} on Linux and macOS; tested with CPython 3.11 on Linux (x86-64).
# All files of a version are listed, so other systems find theirs too if they need no other packages.
"""


def environments() -> Iterator[dict[str, str]]:
    for python in PYTHONS:
        for system, (platform, machine) in SYSTEMS.items():
            yield {
                "python_version": python,
                "python_full_version": f"{python}.0",
                "sys_platform": system,
                "platform_system": platform,
                "platform_machine": machine,
                "os_name": "posix",
                "implementation_name": "cpython",
                "platform_python_implementation": "CPython",
            }


class Index:
    def __init__(self, address: str) -> None:
        self.address = address.rstrip("/")
        pins = (line.split("==") for line in (ROOT / "constraints.txt").read_text().split())
        self.pins = {canonicalize_name(name): version for name, version in pins}

    @cache  # noqa: B019 - one index, one run
    def files(self, name: str) -> dict[str, tuple[str, str]]:
        """File name -> (URL, hash), of the pinned version."""
        page = self._get(f"{self.address}/{name}/").decode()
        found = re.findall(r'<a[^>]*href="([^"#]+)#sha256=([0-9a-f]{64})"[^>]*>\s*([^<]+?)\s*</a>', page)
        version = re.escape(self.pins[name])
        wanted = re.compile(rf"^[^-]+(-[^-\d][^-]*)*-{version}(-.*\.whl|\.tar\.gz|\.zip)$")
        return {file: (address, digest) for address, digest, file in found if wanted.match(file)}

    def hashes(self, name: str) -> list[str]:
        files = self.files(name)
        chosen = [n for n in files if n.endswith(".whl")] if name not in NO_WHEEL else list(files)
        digests = {files[file][1] for file in chosen}
        if not digests:
            raise SystemExit(f"{name} {self.pins[name]}: the index has no usable file.")
        return sorted(digests)

    @cache  # noqa: B019
    def requires(self, name: str) -> list[Requirement]:
        """The dependencies of a package: from the index, or from the installed package."""
        if name == "torch":  # as for all builds but the Linux one on most indexes
            return [each for each in self._told(name) if "nvidia" not in each.name and not _cuda(each.name)]
        return self._told(name)

    def _told(self, name: str) -> list[Requirement]:
        """From the index's copy of the metadata, else from the installed package, else from the wheel."""
        wheels = [at for file, (at, _) in sorted(self.files(name).items()) if file.endswith(".whl")]
        for address in sorted(wheels, key=lambda at: "linux" not in at and "none-any" not in at):
            try:
                return _requirements(self._get(f"{address}.metadata").decode())
            except urllib.error.HTTPError:
                continue
        try:
            return [Requirement(line) for line in metadata.requires(name) or ()]
        except metadata.PackageNotFoundError:
            with zipfile.ZipFile(io.BytesIO(self._get(wheels[0]))) as wheel:
                file = next(each for each in wheel.namelist() if each.endswith(".dist-info/METADATA"))
                return _requirements(wheel.read(file).decode())

    def cuda(self) -> list[Requirement]:
        return [each for each in self._told("torch") if "nvidia" in each.name or _cuda(each.name)]

    def _get(self, address: str) -> bytes:
        with urllib.request.urlopen(address, timeout=60) as answer:
            return bytes(answer.read())


def _requirements(told: str) -> list[Requirement]:
    return [Requirement(line) for line in Parser().parsestr(told).get_all("Requires-Dist") or ()]


def _cuda(name: str) -> bool:
    return name.startswith("cuda-") or name == "triton"


def closure(index: Index, roots: Iterable[Requirement], environment: dict[str, str]) -> set[str]:
    """Names of all packages that an environment needs."""
    found: set[tuple[str, frozenset[str]]] = set()
    todo = list(roots)
    while todo:
        need = todo.pop()
        name, extras = canonicalize_name(need.name), frozenset(need.extras)
        if name not in index.pins:
            raise SystemExit(f"{name}, needed on {environment['sys_platform']}, is not in constraints.txt.")
        if not need.specifier.contains(index.pins[name], prereleases=True):
            raise SystemExit(f"{need} is required, but constraints.txt has {index.pins[name]}.")
        if (name, extras) in found:
            continue
        found.add((name, extras))
        for dependency in index.requires(name):
            marker = dependency.marker
            wanted = {"", *extras}
            if marker is None or any(marker.evaluate({**environment, "extra": e}) for e in wanted):
                todo.append(dependency)
    return {name for name, _ in found}


def needed(index: Index, roots: list[Requirement]) -> dict[str, str]:
    """Package -> marker, over all environments."""
    places = {(e["python_version"], e["sys_platform"]): closure(index, roots, e) for e in environments()}
    markers = {}
    for name in sorted(set().union(*places.values())):
        here = {place for place, names in places.items() if name in names}
        systems, pythons = {s for _, s in here}, {p for p, _ in here}
        parts = []
        if systems != set(SYSTEMS):
            parts.append(f'sys_platform == "{systems.pop()}"')
        if pythons != set(PYTHONS):
            parts.append(f'python_version <= "{max(pythons)}"')
        markers[name] = " and ".join(parts)
    return markers


def write(name: str, packages: Iterable[tuple[str, str, list[str]]]) -> None:
    """Write a file of (package with its version, marker, hashes)."""
    lines = [HEAD.format(name=name, first=PYTHONS[0], last=PYTHONS[-1])]
    for package, marker, digests in packages:
        hashes = "".join(f" \\\n    --hash=sha256:{digest}" for digest in digests)
        lines.append(f"{package}{f' ; {marker}' if marker else ''}{hashes}\n")
    (ROOT / name).write_text("".join(lines))


def from_index(index: Index, packages: dict[str, str]) -> Iterator[tuple[str, str, list[str]]]:
    for name, marker in packages.items():
        yield f"{name}=={index.pins[name]}", marker, index.hashes(name)


def from_folder(wheels: Path) -> tuple[str, str, list[str]]:
    """All wheels of one build of torch."""
    files = sorted(wheels.glob("torch-*.whl"))
    (version,) = {file.name.split("-")[1] for file in files}
    return f"torch=={version}", "", [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("index")
    parser.add_argument("--wheels", type=Path)
    given = parser.parse_args()
    index = Index(given.index)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = {
        name: [Requirement(line) for line in lines]
        for name, lines in project["optional-dependencies"].items()
    }
    core = [Requirement(line) for line in (*project["dependencies"], *BUILD)]
    user = needed(index, core + [each for name in USER for each in extras[name]])
    everything = [each for lines in extras.values() for each in lines if each.name != "cfner"]
    dev = needed(index, core + everything)
    cuda = closure(index, index.cuda(), next(environments())) - set(user)
    linux = dict.fromkeys(sorted(cuda), 'sys_platform == "linux"')
    more = {name: marker for name, marker in dev.items() if name not in user}
    del user["torch"]
    write("requirements.lock", from_index(index, user))
    write("requirements-torch.lock", from_index(index, {"torch": "", **linux}))
    write("requirements-dev.lock", from_index(index, more))
    if given.wheels:
        write("requirements-torch-cpu.lock", [from_folder(given.wheels)])


if __name__ == "__main__":
    main()
