"""A small hub on this machine: the calls by which huggingface_hub lists and fetches the files of a model."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

COMMIT = "c0ffee" + "0" * 34
_INFO = re.compile(r"/api/models/([^/]+/[^/]+)(/revision/\w+)?")
_TREE = re.compile(r"/api/models/([^/]+/[^/]+)/tree/\w+")
_FILE = re.compile(r"/([^/]+/[^/]+)/resolve/\w+/(.+)")


class SmallHub:
    """``models/OWNER/NAME/`` holds the files; ``fetched`` lists what was sent."""

    def __init__(self, models: Path) -> None:
        self.models = models
        self.fetched: list[str] = []
        self.address = ""

    def answer(self, path: str) -> tuple[int, bytes, dict[str, str]]:
        if found := _TREE.fullmatch(path):
            return self._json([self._entry(found[1], file) for file in self._files(found[1])])
        if (found := _INFO.fullmatch(path)) and (self.models / found[1]).is_dir():
            siblings = [{"rfilename": file} for file in self._files(found[1])]
            return self._json({"id": found[1], "sha": COMMIT, "siblings": siblings})
        if (found := _FILE.fullmatch(path)) and (self.models / found[1] / found[2]).is_file():
            data = (self.models / found[1] / found[2]).read_bytes()
            return 200, data, {"ETag": f'"{_hash(data)}"', "X-Repo-Commit": COMMIT}
        code = "EntryNotFound" if found else "RepoNotFound"
        return 404, b"", {"X-Error-Code": code, "X-Error-Message": "There is no such thing."}

    def _files(self, name: str) -> list[str]:
        folder = self.models / name
        return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())

    def _entry(self, name: str, file: str) -> dict[str, object]:
        data = (self.models / name / file).read_bytes()
        return {"type": "file", "path": file, "size": len(data), "oid": _hash(data)}

    @staticmethod
    def _json(value: object) -> tuple[int, bytes, dict[str, str]]:
        return 200, json.dumps(value).encode(), {"Content-Type": "application/json"}


def _hash(data: bytes) -> str:
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()


@contextmanager
def small_hub(models: Path) -> Iterator[SmallHub]:
    hub = SmallHub(models)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            path = urlsplit(self.path).path
            status, body, headers = hub.answer(path)
            self.send_response(status)
            for key, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(key, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)
                if (found := _FILE.fullmatch(path)) and status == 200:
                    hub.fetched.append(found[2])

        do_GET = do_HEAD

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.address = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
