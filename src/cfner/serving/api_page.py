"""``/docs``: the OpenAPI description as a page, without scripts or external resources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cfner.files.html import text
from cfner.pages.page import head, table

_METHODS = ("get", "post")
_SHEETS = ("look/palette", "look/house", "api")


def api_page(described: Mapping[str, Any], *, key: bool) -> str:
    """``described``: the OpenAPI description. ``key``: whether the server requires an API key."""
    links = "".join(f'<link rel="stylesheet" href="/static/{name}.css">' for name in _SHEETS)
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark"><title>cfner: the API</title>',
        f'<link rel="icon" href="/static/icon.svg" type="image/svg+xml">{links}</head><body><main>',
        "<p class='over'><a href='/'>← the page</a></p><h1>The API of this server</h1>",
        f"<p class='lead'>{text(described['info']['description'])} The same for programs: "
        "<a href='/openapi.json'>openapi.json</a>.</p>",
        *_example(key),
        *(
            part
            for path, methods in described["paths"].items()
            for method in _METHODS
            if method in methods
            for part in _route(method, path, methods[method], described)
        ),
        "</main></body></html>",
    ]
    return "\n".join(parts)


def _example(key: bool) -> Iterator[str]:
    lines = ["curl ADDRESS/predict", "-H 'Content-Type: application/json'"]
    lines += ["-H 'Authorization: Bearer KEY'"] if key else []
    lines += ["""-d '{"texts": ["Ada Lovelace lived in London."]}'"""]
    shown = " \\\n  ".join(map(text, lines))
    yield f"<section><h2>Try it</h2><pre><code>{shown}</code></pre>"
    yield "<p>ADDRESS is the address in the address bar, up to the port.</p></section>"


def _route(method: str, path: str, route: Mapping[str, Any], described: Mapping[str, Any]) -> Iterator[str]:
    yield f"<section id='{method}{text(path.replace('/', '-'))}'>"
    yield f"<h2><span class='method'>{method.upper()}</span> <code>{text(path)}</code></h2>"
    yield f"<p>{text(' '.join(route.get('description', '').split()))}</p>"
    if "requestBody" in route:
        yield f"<h3>What it takes</h3>{_fields(_schema_of(route['requestBody']), described)}"
    for status, answer in route["responses"].items():
        if status == "200" and (schema := _schema_of(answer)):
            yield f"<h3>What it answers</h3>{_fields(schema, described)}"
    others = {status: answer for status, answer in route["responses"].items() if status != "200"}
    if others:
        rows = (
            f"<tr><td><code>{text(status)}</code></td><td>{text(answer['description'])}</td></tr>"
            for status, answer in others.items()
        )
        shown = table(head("status", "means"), "".join(rows))
        yield f"<h3>Other statuses</h3><div class='scroll'>{shown}</div>"
    yield "</section>"


def _schema_of(holder: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = holder.get("content", {}).get("application/json", {}).get("schema", {})
    return found


def _fields(schema: Mapping[str, Any], described: Mapping[str, Any]) -> str:
    """A row per field; fields of nested objects follow, named like ``results[].entities``."""
    rows = (
        f"<tr><td><code>{text(name)}</code></td><td>{text(kind)}</td><td>{text(about)}</td></tr>"
        for name, kind, about in _walk(schema, described, "")
    )
    about = text(" ".join(str(_resolved(schema, described).get("description", "")).replace("``", "").split()))
    shown = table(head("field", "type", "meaning"), "".join(rows))
    return (f"<p>{about}</p>" if about else "") + f"<div class='scroll'>{shown}</div>"


def _resolved(schema: Mapping[str, Any], described: Mapping[str, Any]) -> Mapping[str, Any]:
    name = schema.get("$ref", "")
    return described["components"]["schemas"][name.rpartition("/")[2]] if name else schema


def _walk(
    schema: Mapping[str, Any], described: Mapping[str, Any], inside: str
) -> Iterator[tuple[str, str, str]]:
    for name, field in _resolved(schema, described).get("properties", {}).items():
        place = f"{inside}{name}"
        kind, nested, after = _kind(field, described)
        yield place, kind, _meaning(field)
        if nested is not None:
            yield from _walk(nested, described, f"{place}{after}.")


def _kind(
    field: Mapping[str, Any], described: Mapping[str, Any]
) -> tuple[str, Mapping[str, Any] | None, str]:
    """(the type in words, the schema of its items, the suffix of their names: ``[]`` for lists, ``{}`` for
    maps)."""
    for option in field.get("anyOf", ()):
        if option.get("type") != "null":
            kind, nested, after = _kind(option, described)
            return f"{kind}, or null", nested, after
    found = _resolved(field, described)
    if found.get("type") == "array":
        kind, nested, after = _kind(found["items"], described)
        return f"list of {kind}s", nested, f"[]{after}"
    if "additionalProperties" in found and isinstance(found["additionalProperties"], Mapping):
        kind, nested, after = _kind(found["additionalProperties"], described)
        return f"map of {kind}s", nested, f"{{}}{after}"
    nested = found if "properties" in found else None
    return ("object" if nested is not None else str(found.get("type", "anything"))), nested, ""


def _meaning(field: Mapping[str, Any]) -> str:
    """Its description, and its limits."""
    parts = [str(field.get("description", ""))]
    if "maxItems" in field:
        parts.append(f"At most {field['maxItems']:,}.")
    if "maxLength" in field:
        parts.append(f"At most {field['maxLength']:,} characters.")
    if "maxLength" in field.get("items", {}):
        parts.append(f"Each has at most {field['items']['maxLength']:,} characters.")
    return " ".join(part for part in parts if part)
