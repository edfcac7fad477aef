"""Notebooks run from top to bottom (the longer one in `make torture`), and are kept with their outputs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from cfner.synthetic.generate import generate
from conftest import make_encoder
from counts import TIMED

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))
REAL = '"minilm"'


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)


def code_of(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def html_below(cells: list[Any], call: str) -> list[str]:
    """What a browser shows below each cell that makes the call, alone or into a variable."""
    statement = re.compile(rf"^( {{4}})?(\S+ = )?{call}\(", re.MULTILINE)
    below = [cell.outputs for cell in cells if statement.search(cell.source)]
    return ["".join(out.get("data", {}).get("text/html", "") for out in outputs) for outputs in below]


def test_there_is_one_for_each_kind_of_user() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["practitioner", "researcher"]


@pytest.mark.parametrize("path", NOTEBOOKS if TIMED else NOTEBOOKS[:1], ids=lambda path: path.stem)
def test_a_notebook_runs_with_a_tiny_encoder(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = {word.lower() for sentence in generate(train=300, dev=0, test=0).train for word in sentence.words}
    encoder = make_encoder(tmp_path / "encoder", sorted(words))
    notebook = read(path)
    assert sum(REAL in cell.source for cell in notebook.cells) == 1
    for cell in notebook.cells:
        cell.source = cell.source.replace(REAL, repr(str(encoder)))
        cell.source = re.sub(r'(epochs"?)(=|: )\d+', r"\1\g<2>1", cell.source)  # it is to run, not to learn
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # what the notebook writes goes with the test
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=600, kernel_name="python3", resources=resources).execute()
    bars = [*html_below(code_of(notebook), "train"), *html_below(code_of(notebook), "learn")]
    assert bars and all("<progress" in html for html in bars)
    texts = html_below(code_of(notebook), "predict")
    assert texts and all("<div" in html for html in texts)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_outputs_of_a_whole_run_are_kept(path: Path) -> None:
    notebook = read(path)
    nbformat.validate(notebook)
    cells = code_of(notebook)
    assert len(notebook.cells) < 30
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert any("<mark" in html for html in html_below(cells, "predict"))  # the highlighted text
    outputs = [output for cell in cells for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error"]
    links = re.findall(r"\]\(([^)#]+)", "\n".join(cell.source for cell in notebook.cells))
    assert links and all((path.parent / link).is_file() for link in links)
    assert not re.search(r"/(tmp|home|root|Users)/", path.read_text())  # nothing of the machine
