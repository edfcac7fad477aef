"""How long does it take to tag many documents, and how much memory?

    python benchmarks/many_documents.py MODEL [-n 100000] [--longest 300] [--workers 2] [--runtime onnx-int8]

Documents of 10 to 300 words (or ``--longest``) are drawn from a small vocabulary with a fixed seed, written
to files of 10,000 each, and tagged by ``cfner predict FOLDER --workers N``. The time includes the start of
the processes and the loading of the model. Memory is that of all processes together, sampled twice a second.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

PER_FILE = 10_000
SHORTEST = 10  # words
VOCABULARY = (
    "the of and a in to was is for as on with by he that at from it his an were are which this be has had "
    "first one their its after new who they two her she been other when time during there into school "
    "Ada Lovelace London Charles Babbage Paris Marie Curie Warsaw Royal Society Oslo June 1843 12 3.5 "
    "yesterday, letter meeting; hospital. company (limited) 'quoted' e-mail university-based"
)


def write_documents(folder: Path, count: int, longest: int) -> int:
    """Write the documents; returns their words."""
    draw, words = random.Random(0), 0  # noqa: S311 - the same documents each time
    vocabulary = VOCABULARY.split()
    for first in range(0, count, PER_FILE):
        with (folder / f"{first // PER_FILE:05d}.jsonl").open("w", encoding="utf-8") as file:
            for number in range(first, min(first + PER_FILE, count)):
                chosen = draw.choices(vocabulary, k=draw.randint(SHORTEST, longest))
                words += len(chosen)
                file.write(json.dumps({"id": number, "text": " ".join(chosen)}) + "\n")
    return words


def measured(command: Sequence[str]) -> tuple[float, int]:
    """Run a command; returns its seconds, and the peak memory of its processes in bytes."""
    started, peak = time.perf_counter(), 0
    process = subprocess.Popen(command)
    while process.poll() is None:
        peak = max(peak, _memory(process.pid))
        time.sleep(0.5)
    if process.returncode:
        sys.exit(process.returncode)
    return time.perf_counter() - started, peak


def _memory(pid: int) -> int:
    total = 0
    try:
        parent = psutil.Process(pid)
        for one in (parent, *parent.children(recursive=True)):
            total += one.memory_info().rss
    except psutil.Error:  # one of them has just ended
        pass
    return total


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("-n", type=int, default=100_000, help="how many documents")
    parser.add_argument("--longest", type=int, default=300, help="words of the longest document")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--runtime", default="torch")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="cfner-documents-") as temporary:
        texts, out = Path(temporary, "texts"), Path(temporary, "tagged")
        texts.mkdir()
        words = write_documents(texts, given.n, given.longest)
        options = ["--out", str(out), "--workers", str(given.workers), "--runtime", given.runtime]
        seconds, peak = measured(
            [sys.executable, "-m", "cfner", "predict", given.model, str(texts), *options]
        )
        tagged = sum(1 for path in out.glob("*.jsonl") for _ in path.open("rb"))
    if tagged != given.n:
        sys.exit(f"{tagged} of {given.n} documents were tagged")
    found = {
        "documents": given.n,
        "words": words,
        "workers": given.workers,
        "seconds": round(seconds, 1),
        "documents/s": round(given.n / seconds, 1),
        "words/s": round(words / seconds),
        "peak memory, MB": round(peak / 1e6),
        "hours for a million documents": round(1e6 * seconds / given.n / 3600, 2),
    }
    for name, value in found.items():
        print(f"{name:30} {value:>12,}")
    return found


if __name__ == "__main__":
    main()
