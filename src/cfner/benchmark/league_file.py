"""The record of what a league tried and chose for each method, saved with its runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import TypeAdapter, ValidationError

from cfner.errors import ConfigError, problems
from cfner.files.json_files import read_json, write_json_atomic

LEAGUE: Final = "league.json"
UPDATES: Final = "updates × 2"  # a setting of bounds


class Tried(NamedTuple):
    """One setting of a method: in words, and as its name in tables with this setting."""

    setting: str
    method: str
    dev_f1: float
    key: str


class Searched(NamedTuple):
    """The settings tried for a method, on dev data. ``chosen``: the name of the best in tables."""

    knob: str
    chosen: str
    tried: tuple[Tried, ...]
    searched_on: str
    seed: int

    def chosen_for(self, epochs: int | None) -> str:
        """``chosen`` on a stream of so many epochs: twice as many updates are twice that stream's epochs."""
        longer = any(one.setting == UPDATES and one.method == self.chosen for one in self.tried)
        return f"{self.tried[0].method} with epochs={2 * epochs}" if longer and epochs else self.chosen


_FILE = TypeAdapter(dict[str, Searched])


def chosen_settings(searched: Mapping[str, Searched], shared: Mapping[str, str]) -> dict[str, str]:
    """By method, the name in tables of its chosen setting, among runs with these ``shared`` settings."""
    epochs = shared.get("epochs", "")
    number = int(epochs) if epochs.isdigit() else None
    return {method: one.chosen_for(number) for method, one in searched.items()}


def read_league(folder: Path) -> dict[str, Searched]:
    """By method; empty if there was no league."""
    file = folder / LEAGUE
    if not file.is_file():
        return {}
    try:
        return _FILE.validate_python(read_json(file)["methods"])
    except (KeyError, TypeError, ValueError) as error:
        why = problems(error) if isinstance(error, ValidationError) else repr(error)
        raise ConfigError(
            f"The record of a league's search cannot be read: {why}.",
            where=str(file),
            remedy="Delete it: the same 'cfner bench league' command writes it again from the finished runs.",
        ) from error


def write_league(folder: Path, methods: Mapping[str, Searched]) -> None:
    told = {
        name: one._asdict() | {"tried": [tried._asdict() for tried in one.tried]}
        for name, one in methods.items()
    }
    write_json_atomic(folder / LEAGUE, {"schema": 1, "methods": told})
