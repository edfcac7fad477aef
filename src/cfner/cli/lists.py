"""``cfner methods`` and ``cfner encoders``: the available choices."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cfner.cli import options as o
from cfner.cli.settings import load_methods
from cfner.cli.show import console, print_json, table_of


def methods(
    name: Annotated[str | None, typer.Argument(help="Show one method with its parameters.")] = None,
    use: o.Use = None,
    json: o.Json = False,
) -> None:
    """List the methods, or show one with its parameters and the parts that can be left out."""
    from cfner.methods import Method, method_class, method_names, summary, wrapper_class, wrapper_names

    load_methods(use)
    wrappers = wrapper_names()
    chosen: list[type[Method]] = [method_class(known) for known in method_names()]
    if name is not None:
        chosen = [wrapper_class(name) if name in wrappers else method_class(name)]
    if json:
        print_json([_facts(method) for method in chosen])
        return

    screen = console()
    if name is None:
        rows = ([method.name, _told(method), ", ".join(method.parts)] for method in chosen)
        screen.print(table_of(("method", "what it does", "--without"), rows, left=3))
        for wrapper in map(wrapper_class, wrappers):
            screen.print(f"Can be added to any of them: NAME+{wrapper.name}. {summary(wrapper)}")
        screen.print("'cfner methods NAME' shows a method's parameters.")
        return
    method = chosen[0]
    screen.print(f"[bold]{method.title}[/bold]  ({method.name})\n{summary(method)}\nPaper: {method.paper}")
    screen.print(f"Good for: {method.good_for}\nOld types: {method.promise}")
    fields = method.Parameters.model_fields.items()
    rows = ([key, str(field.default), field.description or ""] for key, field in fields)
    screen.print(table_of(("parameter", "default", "meaning"), rows, left=3))
    if method.parts:
        screen.print(f"Can be left out with --without: {', '.join(method.parts)}")


def _told(method: Any) -> str:
    """What it does, and the package it comes from, unless that is cfner."""
    from cfner.methods import summary
    from cfner.methods.registry import package_of

    package = package_of(method.name)
    return summary(method) + ("" if package is None else f" (package {package})")


def _facts(method: Any) -> dict[str, Any]:
    from cfner.methods import summary
    from cfner.methods.registry import package_of

    return {
        "name": method.name,
        "title": method.title,
        "summary": summary(method),
        "paper": method.paper,
        "good_for": method.good_for,
        "promise": method.promise,
        "package": package_of(method.name) or "cfner",
        "without": list(method.parts),
        "parameters": {
            key: {"default": field.default, "meaning": field.description}
            for key, field in method.Parameters.model_fields.items()
        },
    }


def encoders(json: o.Json = False) -> None:
    """List encoders that are known by name; any other hub name or folder works too."""
    from dataclasses import asdict

    from cfner.store.pretrained import encoders as known_encoders

    known = known_encoders()
    if json:
        print_json([asdict(encoder) for encoder in known])
        return

    rows = ([encoder.name, encoder.note, "yes" if encoder.available else "no"] for encoder in known)
    screen = console()
    screen.print(table_of(("encoder", "what it is", "on this machine"), rows, left=3))
    screen.print("Any other Hugging Face encoder works by its hub name or folder.")
