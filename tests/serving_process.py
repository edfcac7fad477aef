"""A server in a process of its own, and clients that cost little, so that what is measured is the server."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil

import warm
from counts import TIMED

_PROGRAM = """
import json, os, sys, torch
from cfner.serving.server import serve
from cfner.serving.settings import ServeSettings
torch.set_num_threads(1)
settings = ServeSettings(**json.loads(sys.argv[2]))
serve(sys.argv[1], settings, ready=lambda url: print(os.getpid(), url, flush=True))
"""


@dataclass
class Running:
    url: str
    pid: int
    process: subprocess.Popen[str]
    log: Path

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        return str(parts.hostname), int(parts.port or 0)

    @property
    def megabytes(self) -> float:
        """Memory of the process."""
        return float(psutil.Process(self.pid).memory_info().rss) / 2**20

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


@contextmanager
def running(model: Path, log: Path, **settings: Any) -> Iterator[Running]:
    """Killed at the end if it still runs."""
    program = sys.executable if TIMED else warm.python()
    words = [program, "-c", _PROGRAM, str(model), json.dumps({"port": 0, **settings})]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with log.open("w") as errors:
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment)
    try:
        assert process.stdout is not None
        pid, _, url = process.stdout.readline().strip().partition(" ")
        assert url.startswith("http"), log.read_text()
        yield Running(url, int(pid), process, log)
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@dataclass
class Answer:
    status: int
    body: bytes
    headers: dict[str, str]
    sent: float
    seconds: float

    def json(self) -> Any:
        return json.loads(self.body)


class Caller:
    """One connection that is kept, for one request after the other."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.address = address
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def get(self, path: str) -> Answer:
        return await self._ask(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())

    async def predict(self, asked: bytes) -> Answer:
        head = "POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        return await self._ask(f"{head}Content-Length: {len(asked)}\r\n\r\n".encode() + asked)

    async def _ask(self, request: bytes) -> Answer:
        sent = time.perf_counter()
        if self.streams is None:
            self.streams = await asyncio.open_connection(*self.address)
        reader, writer = self.streams
        try:
            writer.write(request)
            lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
        except BaseException:
            self.close()
            raise
        if headers.get("connection") == "close":
            self.close()
        return Answer(int(lines[0].split()[1]), body, headers, sent, time.perf_counter() - sent)

    def close(self) -> None:
        if self.streams is not None:
            self.streams[1].close()
            self.streams = None


def share(values: list[float], part: float) -> float:
    """The smallest value that ``part`` of all do not exceed."""
    return sorted(values)[max(0, round(part * len(values)) - 1)]
