"""Additions to the OpenAPI description that FastAPI generates."""

from __future__ import annotations

from typing import Any, Final

from fastapi import Security
from fastapi.security import APIKeyHeader, HTTPBearer
from pydantic import BaseModel

DESCRIPTION: Final = (
    "Named entities of texts. Every answer names the step of the model that computed it; all texts of one "
    "request are answered by the same step. The answer to a text does not depend on other requests."
)
# only for the description: the middleware checks the key before routing
KEY: Final = [
    Security(HTTPBearer(scheme_name="bearer", auto_error=False)),
    Security(APIKeyHeader(name="X-API-Key", scheme_name="header", auto_error=False)),
]
_MEANING: Final = {
    401: "The API key is missing or wrong.",
    404: "There is no such step.",
    408: "The request did not arrive in time.",
    413: "The request is too large.",
    415: "The request is not JSON.",
    421: "The server is addressed by a name that is not its own.",
    422: "The request does not fit this description.",
    429: "Too many requests are waiting.",
    503: "The model or step cannot be used now, or the server is shutting down.",
}
_PROBLEM: Final = {
    "title": "Problem",
    "type": "object",
    "properties": {"detail": {"type": "string"}},
    "required": ["detail"],
}


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The statuses of a route other than 200, for its description."""
    # written out, because FastAPI would describe a model in the media type of the route's answers
    body = {"application/json": {"schema": _PROBLEM}}
    return {status: {"description": _MEANING[status], "content": body} for status in sorted({*statuses, 421})}


def json_body(model: type[BaseModel]) -> dict[str, Any]:
    """The body of a route that reads it itself, within limits, so that FastAPI does not know it."""
    content = {"application/json": {"schema": model.model_json_schema()}}
    return {"requestBody": {"required": True, "content": content}}
