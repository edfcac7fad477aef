"""Files that appear whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np


def write_text(path: Path, text: str, *, flush: bool = True) -> None:
    """Write beside, flush, rename. ``flush=False`` for what may be lost with the machine's power."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    with partial.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        if flush:
            os.fsync(file.fileno())
    partial.replace(path)


def write_whole(path: Path, value: Any, *, flush: bool = True) -> None:
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n", flush=flush)


def write_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    with partial.open("wb") as file:
        np.savez_compressed(file, **arrays)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
