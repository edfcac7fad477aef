"""Where people wait for whole programs: the first answer of a command, a server under load, a grid."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cfner.corpus.writers import write_sentences
from speed_prediction import abilities, has_onnx, stock_folder, text_of
from speed_setup import Bench, Ratio, ratio_of, seconds

_HERE = Path(__file__).parent
_SENTENCE = "Ada Lovelace lived in London."
_LEVELS = (1, 2, 4, 8, 16, 32, 64)  # connections that send one request after the other
_SLOWEST = 0.2  # seconds: the 99th percentile of a level that counts
_LOAD_SECONDS = 3
_SHORT = 20  # words
_GRID_SENTENCES = 80
_GRID_SEEDS = ",".join(map(str, range(8)))


def start(bench: Bench, repeat: int, said: Callable[[str], None]) -> Iterator[Ratio]:
    """From the shell to the entities of one sentence."""
    said("cold start of predict, and of a script with the same model")
    ours = [sys.executable, "-m", "cfner", "predict", str(bench.model()), _SENTENCE]
    theirs = [sys.executable, str(_HERE / "stock_start.py"), str(stock_folder(bench)), _SENTENCE]
    for command in (ours, theirs):  # so that neither finds the files in memory that the other read
        _run(command)
    turns = [(seconds(lambda: _run(ours)), seconds(lambda: _run(theirs))) for _ in range(repeat)]
    yield ratio_of(turns, "cold start: predict / a script with transformers", 1.1)


def server(bench: Bench, repeat: int, said: Callable[[str], None]) -> Iterator[Ratio]:
    """Short texts, each its own request."""
    name = f"requests/s at p99 <= {_SLOWEST * 1000:.0f} ms: serve / FastAPI and pipeline"
    if shutil.which("wrk") is None:
        yield _unmeasured(name, "wrk is not installed (apt-get install wrk)")
        return
    said("servers under rising load")
    texts = bench.folder / "requests.jsonl"
    short = [text_of(sentence) for sentence in bench.sentences if len(sentence) <= _SHORT]
    texts.write_text("".join(json.dumps({"text": text}) + "\n" for text in short), encoding="utf-8")

    def best(*command: str) -> float:
        port = _free_port()
        with _serving([word.replace("PORT", str(port)) for word in (sys.executable, *command)], port):
            _load(port, 8, texts)  # warms up
            return _most_requests(port, texts)

    serve = ("-m", "cfner", "serve", "--port", "PORT", str(bench.model()), "--runtime")
    turns: dict[str, list[tuple[float, float]]] = {"torch": [], **({"onnx-int8": []} if has_onnx() else {})}
    for _ in range(repeat):
        theirs = best(str(_HERE / "stock_server.py"), str(stock_folder(bench)), "PORT")
        for runtime, pairs in turns.items():
            pairs.append((best(*serve, runtime), theirs))
    for runtime, pairs in turns.items():
        if not all(there for _, there in pairs):
            yield _unmeasured(name, "one request at a time took longer; is something else running?")
            return
        here, there = pairs[-1]
        target = 3.0 if runtime == "onnx-int8" and "VNNI" in abilities() else None
        note = f"last round: {here:.0f} and {there:.0f}"
        yield ratio_of(pairs, f"{name}, {runtime}", target, sense=">=", note=note)


def _unmeasured(name: str, why: str) -> Ratio:
    return Ratio(name, 0.0, 0.0, 0.0, 3.0, sense=">=", note=f"not measured: {why}")


def grid(bench: Bench, repeat: int, said: Callable[[str], None]) -> Iterator[Ratio]:
    """Eight runs of two steps, so small that starting them is a large part of their time."""
    said("a grid of 8 small runs")
    data = bench.folder / "grid"
    data.mkdir(exist_ok=True)
    for split in ("train", "test"):
        sentences = [sentence.only(bench.new) for sentence in bench.sentences[:_GRID_SENTENCES]]
        write_sentences(sentences, data / f"{split}.jsonl", format="jsonl", overwrite=True)
    about = f"--methods finetune --seeds {_GRID_SEEDS} --first 2 --per-step 2 --epochs 1 --min-mentions 1"
    encoder = ["--encoder", bench.settings["encoder"]]
    # without this variable the grid shares the cores among its runs: two runs get one thread each
    free = {key: value for key, value in os.environ.items() if key != "OMP_NUM_THREADS"}

    def took(jobs: int, turn: int) -> float:
        places = ["--data", str(data), "--out", str(bench.folder / f"grid-{jobs}-{turn}")]
        words = [*places, "--jobs", str(jobs), *encoder, *about.split()]
        return seconds(lambda: _run([sys.executable, "-m", "cfner", "bench", "run", *words], free))

    turns = [(took(2, turn), took(1, turn)) for turn in range(min(repeat, 2))]  # minutes each
    yield ratio_of(turns, "grid of 8 runs: 2 at once / one after the other", 0.7)


def _run(command: list[str], environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{done.stderr}")
    return done.stdout


@contextmanager
def _serving(command: list[str], port: int) -> Iterator[None]:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            while not _answers(port):
                if process.poll() is not None:
                    raise RuntimeError(f"{' '.join(command)}: ended with {process.returncode}")
                time.sleep(0.1)
            yield
        finally:
            process.terminate()


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
            return True
    except (urllib.error.URLError, OSError):
        return False


def _most_requests(port: int, texts: Path) -> float:
    """Requests per second of the best level whose answers are all in time and none is refused."""
    best = 0.0
    for connections in _LEVELS:
        rate, p99, failed = _load(port, connections, texts)
        if p99 > _SLOWEST or failed:
            break
        best = max(best, rate)
    return best


def _load(port: int, connections: int, texts: Path) -> tuple[float, float, int]:
    """(requests per second, 99th percentile in seconds, failed requests) with this many connections."""
    command = ["wrk", "--threads", "1", "--connections", str(connections), "--latency"]
    command += ["--duration", f"{_LOAD_SECONDS}s", "--script", str(_HERE / "server_load.lua")]
    said = _run([*command, f"http://127.0.0.1:{port}"], {**os.environ, "TEXTS": str(texts)})
    figures = json.loads(said.partition("FIGURES ")[2])
    return figures["requests"] / figures["seconds"], figures["p99"], figures["failed"]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
