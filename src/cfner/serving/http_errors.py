"""Why a request is not answered, each with its HTTP status. The detail is for the client: no paths in it."""

from __future__ import annotations

import math

from starlette.exceptions import HTTPException


def refusal(status: int, detail: str, *, retry: float | None = None, close: bool = False) -> HTTPException:
    """``retry``: seconds after which it may be tried again. ``close``: the connection is given up, because
    the rest of the request is not going to be read."""
    headers = {}
    if retry is not None:
        headers["Retry-After"] = str(min(max(math.ceil(retry), 1), 30))
    if close:
        headers["Connection"] = "close"
    return HTTPException(status, detail, headers)


def busy(seconds: float = 1.0) -> HTTPException:
    """``seconds``: how much sooner others must be answered before there is room."""
    return refusal(429, "Too many requests are waiting. Try again in a moment.", retry=seconds)


def stopping() -> HTTPException:
    return refusal(503, "The server is shutting down.", retry=1, close=True)
