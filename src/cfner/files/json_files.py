"""JSON files and arrays: written plainly or atomically, and read as untrusted input."""

from __future__ import annotations

import hashlib
import json
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cfner.errors import ModelError
from cfner.files.atomic import atomic_file, write_text_atomic

_LARGEST_JSON = 64 << 20


def write_json(path: Path, value: Any) -> None:
    path.write_bytes(as_json(value).encode())


def read_json(path: Path) -> Any:
    remedy = "Restore the step from a copy."
    refuse_unusual(path)
    try:
        if path.stat().st_size > _LARGEST_JSON:
            raise ModelError("The file is far too large for its purpose.", where=str(path), remedy=remedy)
        text = path.read_text(encoding="utf-8")
        value = json.loads(text)
        if "\\u" in text:  # a lone surrogate is not a character: it could be neither shown nor saved
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"The file cannot be read: {error}.", where=str(path), remedy=remedy) from error


def refuse_unusual(path: Path, *, a_folder: bool = False, remedy: str = "Put a copy in its place") -> None:
    """Refuse links, which lead out of the model folder, and pipes, which have no end."""
    try:
        mode = path.lstat().st_mode  # one call, so that another process cannot change it in between
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return  # it does not exist; the caller reports that if it matters
    if not (stat.S_ISDIR(mode) if a_folder else stat.S_ISREG(mode)):
        raise ModelError(
            f"This is not a plain {'folder' if a_folder else 'file'}.",
            where=str(path),
            remedy=f"{remedy}: a model folder must not contain links, pipes or devices.",
        )


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_json_atomic(path: Path, value: Any) -> None:
    write_text_atomic(path, as_json(value))


def write_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    with atomic_file(path) as partial, partial.open("xb") as file:
        np.savez_compressed(file, **arrays)


def as_json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"
