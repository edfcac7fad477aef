"""How often a trial is repeated: a few times within `make test`, more with `make torture QUICK=1`, often with
`make torture`."""

from __future__ import annotations

import os
from typing import Final, Literal

_CHOSEN: Final = os.environ.get("CFNER_TORTURE", "tiny")
SCALE: Final[Literal["tiny", "quick", "full"]] = _CHOSEN if _CHOSEN in {"quick", "full"} else "tiny"  # type: ignore[assignment]
# beside other tests no duration means anything, so those are judged by `make torture` alone
TIMED: Final = SCALE != "tiny"


def times(tiny: int, quick: int, full: int) -> int:
    return {"tiny": tiny, "quick": quick, "full": full}[SCALE]
