"""How often each trial is repeated: a few times in `make test`, more with QUICK=1, in full otherwise."""

from __future__ import annotations

import os


def times(full: int, *, quick: int, short: int) -> int:
    """`make torture`, `make torture QUICK=1`, `make test`."""
    return {"full": full, "quick": quick}.get(os.environ.get("CFNER_TORTURE", ""), short)


def tell(what: str) -> None:
    """A measured figure, where it can be seen (pytest -s) and copied from."""
    if os.environ.get("CFNER_TORTURE"):
        print(f"\n  measured: {what}", flush=True)
