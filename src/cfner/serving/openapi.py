"""The OpenAPI description: what FastAPI finds by itself, and the request body with this server's limits."""

from __future__ import annotations

from typing import Any, Final

from fastapi import FastAPI

from cfner.serving.schemas import PredictRequest, Problem
from cfner.serving.settings import ServeSettings

DESCRIPTION: Final = (
    "Named entities of texts. Every answer names the step of the model that it is from; all texts of one "
    "request are answered by the same step. A text gets the same answer whatever is computed along with it."
)
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


def refusals(*statuses: int, open_to_all: bool = False) -> dict[int | str, dict[str, Any]]:
    """The statuses of a route other than 200, for its description."""
    every = {*statuses, 421} if open_to_all else {*statuses, 401, 421}
    # spelt out, not as a model: FastAPI would describe it in the media type of the route's answers
    told = {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {status: {"description": _MEANING[status], "content": told} for status in sorted(every)}


def describe(app: FastAPI, settings: ServeSettings) -> None:
    """Complete the description: bodies are read by hand (within limits), so FastAPI does not know them."""
    schema = app.openapi()
    body = PredictRequest.model_json_schema()
    body["properties"]["text"]["maxLength"] = settings.max_text_length
    body["properties"]["texts"]["maxItems"] = settings.max_texts
    body["properties"]["texts"]["items"]["maxLength"] = settings.max_text_length
    schema["components"]["schemas"] |= {"PredictRequest": body, "Problem": Problem.model_json_schema()}
    schema["paths"]["/predict"]["post"]["requestBody"] = {
        "required": True,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/PredictRequest"}}},
    }
    if settings.api_key is not None:
        schema["components"]["securitySchemes"] = {
            "bearer": {"type": "http", "scheme": "bearer"},
            "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
        }
        for path, methods in schema["paths"].items():
            for method in methods.values():
                method["security"] = [] if path == "/health" else [{"bearer": []}, {"header": []}]
    app.openapi_schema = schema
