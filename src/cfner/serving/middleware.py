"""Between network and application: access control, security headers, limits on request bodies."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
from dataclasses import dataclass
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cfner.serving.http_errors import refusal
from cfner.serving.metrics import Metrics
from cfner.serving.settings import ServeSettings

log = logging.getLogger("cfner.serving")
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
# the pages contain no secrets, and must load to ask for the key; health returns only what a probe needs
OPEN_TO_ALL: Final = frozenset({"/", "/docs", "/health", "/favicon.ico"})
_METHODS: Final = frozenset({"GET", "POST", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE"})
_ROUTES: Final = frozenset(
    {"/", "/docs", "/predict", "/model", "/health", "/metrics", "/openapi.json", "/favicon.ico"}
)


class Guard:
    """ASGI middleware: host, key, security headers, and a count of every answer."""

    def __init__(self, app: ASGIApp, settings: ServeSettings, metrics: Metrics) -> None:
        self.app = app
        self.metrics = metrics
        self._hosts = settings.allowed_hosts
        self._key = None if settings.api_key is None else _digest(settings.api_key.encode())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, path = False, scope["path"]

        async def send_guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("Cache-Control", "no-cache" if _is_page(path) else "no-store")
                method = scope["method"] if scope["method"] in _METHODS else "other"
                route = "/static" if path.startswith("/static/") else path if path in _ROUTES else "other"
                self.metrics.requests.labels(method, route, message["status"]).inc()
            await send(message)

        app = self._refusal(Headers(scope=scope), path) or self.app
        try:
            await app(scope, receive, send_guarded)
        except Exception:
            log.exception("a request failed")
            if started:
                raise  # the status was already sent: close the connection
            answer = JSONResponse({"detail": "Internal server error; see the server's log."}, 500)
            await answer(scope, receive, send_guarded)

    def _refusal(self, headers: Headers, path: str) -> JSONResponse | None:
        if self._hosts is not None and _host(headers.get("host", "")) not in self._hosts:
            detail = "This server answers under its own address only. Set an API key to use other names."
            return JSONResponse({"detail": detail}, 421)
        if self._key is None or path in OPEN_TO_ALL or path.startswith("/static/"):
            return None
        if hmac.compare_digest(_digest(_sent_key(headers)), self._key):
            return None
        detail = "An API key is needed: send it as 'Authorization: Bearer KEY' or 'X-API-Key: KEY'."
        return JSONResponse(
            {"detail": detail}, 401, {"WWW-Authenticate": 'Bearer realm="cfner"', "Connection": "close"}
        )


def _is_page(path: str) -> bool:
    return path in {"/", "/docs"} or path.startswith("/static/")


def _digest(key: bytes) -> bytes:
    """A digest of fixed length, so that comparing does not reveal the length of the key."""
    return hashlib.sha256(key).digest()


def _sent_key(headers: Headers) -> bytes:
    scheme, _, credentials = headers.get("authorization", "").partition(" ")
    key = credentials.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")
    return key.encode("latin-1")


def _host(header: str) -> str:
    """The name in a Host header, without the port."""
    name = header.strip().lower()
    return name[: name.index("]") + 1] if name.startswith("[") and "]" in name else name.partition(":")[0]


@dataclass(eq=False)
class BodyReader:
    """Reads request bodies, up to a size and a time limit."""

    settings: ServeSettings
    held: int = 0  # bytes of all bodies being read

    async def read(self, request: Request) -> bytes:
        body = bytearray()
        try:
            async with asyncio.timeout(self.settings.body_seconds):
                async for chunk in request.stream():
                    self.refuse_if_too_large(len(body) + len(chunk))
                    if self.held + len(chunk) > self.settings.max_body_memory:
                        raise refusal(503, "Too many large requests at once.", retry=1, close=True)
                    body += chunk
                    self.held += len(chunk)
        except TimeoutError:
            raise refusal(408, "The request did not arrive in time.", close=True) from None
        except ClientDisconnect:
            raise refusal(400, "The request was incomplete.", close=True) from None
        finally:
            self.held -= len(body)
        return bytes(body)

    def refuse_if_too_large(self, length: int) -> None:
        if length > self.settings.max_body:
            raise refusal(413, f"The request is larger than {self.settings.max_body} bytes.", close=True)


def declared_length(request: Request) -> int | None:
    """The Content-Length of a request; None if missing, more than any limit if invalid."""
    declared = request.headers.get("content-length")
    if declared is None:
        return None
    return int(declared) if declared.isdecimal() and len(declared) <= 18 else 10**18
