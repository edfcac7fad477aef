"""The settings of a server: its address, its API key and its limits."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, fields
from math import inf
from typing import Final

from cfner.errors import ConfigError

KEY_VARIABLE: Final = "CFNER_API_KEY"
_SHORTEST_KEY: Final = 16


@dataclass(frozen=True)
class ServeSettings:
    """Sizes are in characters (Unicode code points) or bytes, times in seconds."""

    host: str = "127.0.0.1"
    port: int = 8000
    api_key: str | None = None
    max_body: int = 1_048_576  # bytes of one request
    max_body_memory: int = 67_108_864  # bytes of all requests that are being read
    max_texts: int = 256  # texts of one request
    max_text_length: int = 20_000  # characters of one text
    max_waiting: int = 128  # requests accepted and not answered yet
    max_waiting_characters: int = 1_000_000  # characters of all their texts
    max_wait_seconds: float = 0.5  # longest expected wait, or the request's own time if longer
    batch_texts: int = 64  # texts tagged together
    batch_characters: int = 20_000  # of all texts of a batch
    batch_seconds: float = 0.2  # longest time of a batch, in which other requests wait
    steps_kept: int = 2  # steps kept in memory besides the current one
    reload_seconds: float = 1.0  # how often the folder is checked
    body_seconds: float = 10.0  # time limit for receiving a request
    header_seconds: float = 10.0
    idle_seconds: float = 15.0  # a connection without a request is closed
    stuck_seconds: float = 30.0  # a client that does not read its answer is disconnected
    shutdown_seconds: float = 30.0  # time limit for accepted requests at shutdown
    max_connections: int = 1000
    device: str = "auto"  # where steps are computed
    runtime: str | None = None  # what computes them; None: torch, or ONNX for an exported ONNX folder
    min_score: float | None = None  # of returned mentions; replaces calibrated shifts

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int | float):
                continue
            may_be_0 = field.name in {"port", "steps_kept", "min_score"}
            if not (0 < value < inf or (may_be_0 and value == 0)):
                raise ConfigError(
                    f"{field.name} must be a positive number, got {value}.", remedy="Give a positive number."
                )
        if self.min_score is not None and self.min_score > 1:
            raise ConfigError(
                f"min_score must be from 0 to 1, got {self.min_score}.", remedy="Scores go from 0 to 1."
            )
        if self.port > 65535:
            raise ConfigError(f"There is no port {self.port}.", remedy="Ports go up to 65535.")
        if self.api_key is not None:
            _check_key(self.api_key)
        elif not is_loopback(self.host):
            raise ConfigError(
                f"Other machines can reach the address {self.host}, but there is no API key.",
                remedy=f"Set the environment variable {KEY_VARIABLE} (make a key with: python -c 'import "
                "secrets; print(secrets.token_urlsafe(32))'), or listen on 127.0.0.1.",
            )

    @property
    def allowed_hosts(self) -> frozenset[str] | None:
        """Names under which a browser may address a server without a key; None: any.

        Without this check a web page could point its own name at 127.0.0.1 and read what is served there.
        """
        if self.api_key is not None:
            return None
        return frozenset({"localhost", "127.0.0.1", "[::1]", _in_url(self.host).lower()})

    def url(self, port: int) -> str:
        """``port``: the actual port, if any free one was requested."""
        return f"http://{_in_url(self.host)}:{port}/"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address. A name other than localhost counts as reachable."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _check_key(key: str) -> None:
    if len(key) < _SHORTEST_KEY:
        raise ConfigError(
            f"The API key has {len(key)} characters, which is too short to be safe.",
            remedy=f"Use at least {_SHORTEST_KEY}, for example: python -c 'import secrets; "
            "print(secrets.token_urlsafe(32))'.",
        )
    if not all("!" <= sign <= "~" for sign in key):
        raise ConfigError(
            "The API key contains whitespace or non-ASCII characters.",
            remedy="Use ASCII letters, digits and punctuation.",
        )
