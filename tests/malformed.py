"""Requests that no client should send: seeded, so that one that does harm can be sent again."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

_ROUTES = ("/", "/predict", "/model", "/health", "/metrics", "/openapi.json", "/static/page.js", "/nothing")
_METHODS = ("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "TRACE", "CONNECT", "PRI", "get", "\x00", "")
_VERSIONS = ("HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "HTTP/9.9", "http/1.1", "", "HTTP/1.1 extra")
_HEADERS = (
    "Content-Length: 10",
    "Content-Length: -1",
    "Content-Length: 99999999999999999999",
    "Content-Length: 1\r\nContent-Length: 2",
    "Content-Length: 5, 5",
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: chunked\r\nContent-Length: 4",
    "Transfer-Encoding: gzip, chunked",
    "Transfer-Encoding:\x0bchunked",
    "Expect: 100-continue",
    "Expect: nonsense",
    "Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13",
    "Connection: close, keep-alive",
    "Content-Type: application/json; charset=utf-7",
    "Content-Encoding: gzip",
    "Host: evil.example",
    "Host: localhost\r\nHost: localhost",
    "Range: bytes=0-0,-1,5-",
    "Range: bytes=" + "0-1," * 500,
    "If-Modified-Since: \x7f",
    "Authorization: Bearer \xff",
    "X-API-Key: \x00",
    "Cookie: " + "a" * 20_000,
    " folded: value",
    "no colon",
    ": no name",
    "Na me: x",
    "X: a\rb",
)
_CHUNKS = (
    b"5\r\nhello\r\n0\r\n\r\n",
    b"zz\r\n",
    b"-1\r\n\r\n",
    b"ffffffffffffffffff\r\na",
    b"5\r\nhel",
    b"0\r\n",
)
_VALUES = (None, True, -1, 0, 2**63, 1e308, "", "\x00", "\ud800", "💥" * 99, [], {}, [[[]]], {"text": "a"})


def malformed(chance: random.Random, number: int) -> Iterator[bytes]:
    makers = (_mutated, _strange_head, _strange_json, _strange_body, _noise)
    for _ in range(number):
        yield chance.choice(makers)(chance)


def _post(body: bytes, *headers: str) -> bytes:
    head = ["POST /predict HTTP/1.1", "Host: localhost", "Content-Type: application/json", *headers]
    return "\r\n".join([*head, f"Content-Length: {len(body)}", "", ""]).encode("latin-1") + body


def _mutated(chance: random.Random) -> bytes:
    """A good request with some bytes changed, doubled or left out."""
    request = bytearray(_post(b'{"text": "today ada saw the heron in lisbon"}', "Connection: close"))
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(request))
        kind = chance.randrange(4)
        if kind == 0:
            request[at] = chance.randrange(256)
        elif kind == 1:
            del request[at : at + chance.randint(1, 10)]
        elif kind == 2:
            request[at:at] = request[at : at + chance.randint(1, 40)]
        else:
            request[at:at] = chance.randbytes(3)
        if not request:
            break
    return bytes(request)


def _strange_head(chance: random.Random) -> bytes:
    path = chance.choice(_ROUTES) + chance.choice(["", "", "?" + "a=b&" * 50, "/..", "//", "%00", "%ff"])
    lines = [f"{chance.choice(_METHODS)} {path} {chance.choice(_VERSIONS)}"]
    if chance.random() < 0.9:
        lines.append("Host: localhost")
    lines += chance.choices(_HEADERS, k=chance.randint(0, 4))
    chance.shuffle(lines[1:])
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + chance.choice([b"", b"{}", *_CHUNKS])


def _strange_json(chance: random.Random) -> bytes:
    keys = chance.choices(("text", "texts", "step", "scores", "__proto__", ""), k=chance.randint(0, 4))
    body = json.dumps({key: chance.choice(_VALUES) for key in keys}).encode()
    if chance.random() < 0.3:
        body = body[: chance.randint(0, len(body))]
    if chance.random() < 0.2:
        body = chance.choice([b"[" * 5000, b'{"a":' * 5000, b"\xef\xbb\xbf" + body, body + body, b"NaN"])
    return _post(body, "Connection: close")


def _strange_body(chance: random.Random) -> bytes:
    head = "POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    length = chance.choice(["Transfer-Encoding: chunked", *(h for h in _HEADERS if "Length" in h)])
    return f"{head}{length}\r\n\r\n".encode("latin-1") + chance.choice(
        [*_CHUNKS, b"{}", chance.randbytes(50)]
    )


def _noise(chance: random.Random) -> bytes:
    return chance.randbytes(chance.randint(0, 400)) + chance.choice([b"", b"\r\n\r\n", b"\n\n"])
