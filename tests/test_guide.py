"""The walk-through in docs/guide.md does what it says: every block is run, in order, in one folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cfner.store.pretrained import known_encoders

GUIDE = Path(__file__).parents[1] / "docs" / "guide.md"
PORT = "8417"


def test_the_guide_runs_from_beginning_to_end(tmp_path: Path) -> None:
    if not known_encoders()[0].available or not shutil.which("curl"):
        pytest.skip("the extra 'demo' or curl is not installed")
    text = GUIDE.read_text(encoding="utf-8")
    blocks = re.findall(r"^```bash\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 10
    # another port than the one in the text, so that two runs of the tests do not meet
    script = "\n".join(blocks).replace(PORT, str(20000 + os.getpid() % 20000))
    found = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=2400,  # a busy machine takes many times the usual four minutes
        env={**os.environ, **found},
    )
    said = " ".join(done.stdout.split())
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    for promised in (
        "REFUSED",
        "The new model is step 2 of model",
        "Step 3 of model is current now",
        "Step 4 of model is current now",
        "Every file is what it was",
        '"entities"',
    ):
        assert promised in said
    assert (tmp_path / "careless.refused").is_dir() and not (tmp_path / "careless").exists()
    assert (tmp_path / "changes.html").is_file() and (tmp_path / "handed-on/config.json").is_file()
