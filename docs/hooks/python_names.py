"""Every public name, from ``cfner.__all__``; mkdocstrings then reads its signature and docstring."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import griffe

MARK = "<!-- the public names -->"


def on_page_markdown(markdown: str, config: Any, **_: Any) -> str:
    if MARK not in markdown:
        return markdown
    return markdown.replace(MARK, reference(Path(config.config_file_path).parent / "src"))


def reference(source: Path) -> str:
    """Functions first: they are what most people call. The source is read, not run."""
    package = griffe.load("cfner", search_paths=[source], resolve_aliases=True)
    names = [str(name).strip("'\"") for name in package.exports or ()]
    if not names:
        raise ValueError("cfner.__all__ has no names, or is not a plain list of strings.")
    groups = {
        "Functions": [name for name in names if package[name].is_function],
        "Classes": [name for name in names if package[name].is_class],
    }
    groups["Other names"] = [name for name in names if not any(name in group for group in groups.values())]
    return "\n".join(
        f"## {title}\n\n" + "".join(f"::: cfner.{name}\n\n" for name in group)
        for title, group in groups.items()
        if group
    )
