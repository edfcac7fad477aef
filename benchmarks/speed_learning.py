"""Learning a new type with the default settings, now and before the defaults were made faster."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from speed_setup import Bench, Ratio, ratio_of

BEFORE = "before-speed"  # a tag of this repository
_SENTENCES = 500
_HERE = Path(__file__).parent


def learning(bench: Bench, repeat: int, said: Callable[[str], None]) -> Iterator[Ratio]:
    """The fit alone: an estimate by cross-validation and a guard come on top, before and now."""
    name = f"a new type from {_SENTENCES} sentences: now / at the tag {BEFORE}"
    earlier, git = bench.folder / "before", shutil.which("git")
    if git is None:
        yield Ratio(name, 0.0, 0.0, 0.0, note="not measured: git is not installed")
        return
    done = subprocess.run(
        [git, "worktree", "add", "--detach", str(earlier), BEFORE],
        cwd=_HERE,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        yield Ratio(name, 0.0, 0.0, 0.0, note=f"not measured: {done.stderr.strip().splitlines()[-1]}")
        return
    said("a new type, now and before")
    try:
        turns = [
            (_fit(bench, _HERE.parent / "src"), _fit(bench, earlier / "src")) for _ in range(min(repeat, 3))
        ]
    finally:
        subprocess.run([git, "worktree", "remove", "--force", str(earlier)], cwd=_HERE, check=True)
    yield ratio_of(turns, name, 0.4)


def _fit(bench: Bench, source: Path) -> float:
    command = [sys.executable, str(_HERE / "one_fit.py"), str(bench.settings["encoder"]), str(_SENTENCES)]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    return float(done.stdout.split()[-1])
