"""How often each trial is repeated: a few times in `make test`, more with QUICK=1, in full otherwise."""

from __future__ import annotations

import os
from typing import Final

_ASKED: Final = os.environ.get("CFNER_TORTURE", "")
# beside other tests no duration means anything, so those are judged by `make torture` alone
TIMED: Final = _ASKED in {"quick", "full"}


def times(full: int, *, quick: int, short: int) -> int:
    """`make torture`, `make torture QUICK=1`, `make test`."""
    return {"full": full, "quick": quick}.get(_ASKED, short)


def tell(what: str) -> None:
    """A measured figure, where it can be seen (pytest -s) and copied from."""
    if TIMED:
        print(f"\n  measured: {what}", flush=True)
