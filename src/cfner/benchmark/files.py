"""What a grid writes: files that appear whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cfner.model.durable import partial_of, put_in_place, write_whole, writing


def write_json(path: Path, value: Any) -> None:
    write_whole(path, as_json(value))


def write_passing(path: Path, value: Any) -> None:
    """Whole, but not flushed: for what is said every second and may be lost with the machine's power."""
    partial = partial_of(path)
    partial.write_text(as_json(value), encoding="utf-8")
    partial.replace(path)


def write_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    partial = partial_of(path)
    with writing(path):
        try:
            with partial.open("wb") as file:
                np.savez_compressed(file, **arrays)
            put_in_place(partial, path)
        finally:
            partial.unlink(missing_ok=True)


def as_json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"
