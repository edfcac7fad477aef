"""Reads the templates, word lists and shapes of ``data/``: text files with headings and comments."""

from __future__ import annotations

from importlib.resources import files


def sections(name: str) -> dict[str, list[str]]:
    """The lines under each heading (``== TITLE``); comments (``#``) and empty lines are left out."""
    found: dict[str, list[str]] = {}
    for line in files("cfner.synthetic").joinpath("data", name).read_text("utf-8").splitlines():
        if line.startswith("== "):
            found[line.removeprefix("== ")] = lines = []
        elif line and not line.startswith("#"):
            lines.append(line)
    return found


def _entries(name: str) -> dict[str, list[str]]:
    return {title: " | ".join(lines).split(" | ") for title, lines in sections(name).items()}


def _pairs(title: str) -> dict[str, str]:
    return {key: value for key, _, value in (entry.partition("=") for entry in WORDS[title])}


WORDS = _entries("words.txt")
DISTRACTORS = _entries("distractors.txt")
STATE_CODES = _pairs("state")
ABBREVIATIONS = _pairs("abbreviation")
SHAPES = {
    kind: {shape: int(count) for count, _, shape in (entry.partition(" ") for entry in entries)}
    for kind, entries in _entries("shapes.txt").items()
}
