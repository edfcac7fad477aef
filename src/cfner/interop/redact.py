"""What an export says of where things came from: names of the hub, and no path of somebody's disk."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_PART = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,95}"
_HUB_NAME = re.compile(rf"({_PART}/)?{_PART}")


def is_hub_name(encoder: str) -> bool:
    """Whether others find it on the hub under this name, as far as a name can tell."""
    return encoder != "minilm" and bool(_HUB_NAME.fullmatch(encoder)) and not Path(encoder).exists()


def public(value: Any) -> Any:
    """A path on somebody's disk is nobody else's business: its last part is enough."""
    if not isinstance(value, str) or is_hub_name(value):
        return value
    return re.split(r"[/\\]", value.rstrip("/\\"))[-1]  # of any system: it may have been made on another


def public_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a training, with the parameters of its method, which may be paths as well."""
    parameters = {key: public(value) for key, value in settings.get("parameters", {}).items()}
    return {**{key: public(value) for key, value in settings.items()}, "parameters": parameters}
