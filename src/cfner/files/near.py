"""For a path that does not exist: find the one that was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from pathlib import Path

_ALIKE = 0.6  # difflib's ratio of two names; one wrong letter in four is above it


def nearest_path(path: str | Path, fits: Callable[[Path], bool] = Path.exists) -> Path | None:
    """The existing path that is spelled most like ``path``; every part may be misspelt."""
    asked = Path(path).expanduser()
    found = Path(asked.anchor)
    parts = asked.parts[1:] if asked.anchor else asked.parts
    for number, part in enumerate(parts, start=1):
        last = number == len(parts)
        if (found / part).is_dir() and not last:
            found = found / part
            continue
        try:
            names = [item.name for item in found.iterdir() if (fits(item) if last else item.is_dir())]
        except OSError:
            return None
        close = difflib.get_close_matches(part, names, n=1, cutoff=_ALIKE)
        if not close:
            return None
        found = found / close[0]
    return found if parts else None


def did_you_mean(path: str | Path, fits: Callable[[Path], bool] = Path.exists) -> str:
    """'Did you mean 'x'? ', or an empty string."""
    near = nearest_path(path, fits)
    return "" if near is None else f"Did you mean '{near}'? "
