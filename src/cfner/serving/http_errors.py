"""Why a request is not answered, each with its HTTP status. The detail is for the client: no paths in it."""

from __future__ import annotations

import math

from cfner.errors import CfnerError


class RefusalError(CfnerError):
    """``close``: the connection is given up, because the rest of the request is not going to be read."""

    def __init__(self, status: int, detail: str, *, retry: bool = False, close: bool = False) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers: dict[str, str] = {}
        if retry:
            self.headers["Retry-After"] = "1"
        if close:
            self.headers["Connection"] = "close"


def busy(seconds: float = 1.0) -> RefusalError:
    """``seconds``: how much sooner others must be answered before there is room."""
    refusal = RefusalError(429, "Too many requests are waiting. Try again in a moment.", retry=True)
    refusal.headers["Retry-After"] = str(min(max(math.ceil(seconds), 1), 30))
    return refusal


def stopping() -> RefusalError:
    return RefusalError(503, "The server is shutting down.", retry=True, close=True)


def unusable() -> RefusalError:
    return RefusalError(503, "The model could not compute this; the server's log says why.", retry=True)


def unusable_step(number: int) -> RefusalError:
    return RefusalError(503, f"Step {number} cannot be loaded; the server's log says why.", retry=True)


def unknown_step(number: int, known: list[int]) -> RefusalError:
    return RefusalError(
        404, f"There is no step {number}. Steps here: {', '.join(map(str, known)) or 'none'}."
    )
