"""The walk-through in docs/guide.md does what it says: every block is run, in order, in one folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import warm
from cfner.store.pretrained import encoders
from cfner.synthetic.generate import generate
from conftest import make_encoder
from counts import TIMED

GUIDE = Path(__file__).parents[1] / "docs" / "guide.md"
PORT = "8417"

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")


def blocks() -> str:
    found = re.findall(r"^```bash\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert len(found) >= 10
    # another port than the one in the text, so that two runs of the tests do not meet
    return "\n".join(found).replace(PORT, str(20000 + os.getpid() % 20000))


def follow(script: str, folder: Path, programs: Path) -> None:
    found = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
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
        "All files are unchanged",
        "Step 5 of model is current now",
        "In short:",
        '"entities"',
    ):
        assert promised in said
    assert (folder / "careless.refused").is_dir() and not (folder / "careless").exists()
    for made in ("changes.html", "sure.html", "handed-on/config.json"):
        assert (folder / made).is_file()


def test_the_guide_runs_with_a_tiny_encoder(tmp_path: Path) -> None:
    """It knows words, but not what they mean: it learns less, so plain fine-tuning has less to forget."""
    words = {word.lower() for sentence in generate(train=600, dev=0, test=0).train for word in sentence.words}
    encoder = make_encoder(tmp_path / "encoder", sorted(words))
    rates = "--batch-size 8 --lr-encoder 0.01 --lr-head 0.01 --set train_embeddings=true"
    script = re.sub("(cfner train .*)--epochs 4", rf"\1--epochs 8 {rates}", blocks())
    script = re.sub("(cfner learn .*)--epochs 4", rf"\1--epochs 2 {rates}", script)
    script = script.replace("--max-forgetting 5", "--max-forgetting 90")
    script = re.sub(r"(--out careless .* \\\n  .*--max-forgetting) 90", r"\1 1", script)
    script = script.replace("minilm", str(encoder)).replace("sleep 1;", "sleep 0.1;")
    follow(script, tmp_path, Path(warm.command()).parent)


@pytest.mark.skipif(not TIMED, reason="four minutes: make torture")
def test_the_guide_runs_as_it_is(tmp_path: Path) -> None:
    if not encoders()[0].available:
        pytest.skip("the extra 'demo' is not installed")
    follow(blocks(), tmp_path, Path(sys.executable).parent)
