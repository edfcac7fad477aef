"""Run the notebooks from top to bottom, with the encoder that they name, and keep their outputs: `make notebooks`."""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        NotebookClient(notebook, timeout=None, kernel_name="python3", record_timing=False).execute()
        # of the machine, not of the notebook
        notebook.metadata.language_info = {"name": "python"}
        nbformat.write(notebook, path)
        print(f"{path.relative_to(ROOT)}: run, outputs kept")


if __name__ == "__main__":
    main()
