"""HTTP errors. Their details go to the client, so they contain no paths."""

from __future__ import annotations

import math

from starlette.exceptions import HTTPException


def refusal(status: int, detail: str, *, retry: float | None = None, close: bool = False) -> HTTPException:
    """``retry``: seconds after which the client may try again. ``close``: close the connection, because the
    rest of the request will not be read."""
    headers = {}
    if retry is not None:
        headers["Retry-After"] = str(min(max(math.ceil(retry), 1), 30))
    if close:
        headers["Connection"] = "close"
    return HTTPException(status, detail, headers)


def busy(seconds: float = 1.0) -> HTTPException:
    """``seconds``: the time until there is room."""
    return refusal(429, "Too many requests are waiting. Try again in a moment.", retry=seconds)


def stopping() -> HTTPException:
    return refusal(503, "The server is shutting down.", retry=1, close=True)
