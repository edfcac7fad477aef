"""What a server may be told: where it listens, who is let in, and how much it takes on."""

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
    max_body_memory: int = 67_108_864  # bytes of all requests that are being read at one moment
    max_texts: int = 256  # texts of one request
    max_text_length: int = 20_000  # characters of one text
    max_waiting: int = 128  # requests accepted and not answered yet
    max_waiting_characters: int = 1_000_000  # characters of all their texts
    max_wait_seconds: float = 0.5  # how long a request may be expected to wait, unless it takes longer itself
    batch_texts: int = 64  # texts tagged together
    batch_characters: int = 20_000  # of all of them
    batch_seconds: float = 0.2  # and no more than this takes: how long one batch keeps the others waiting
    steps_kept: int = 2  # steps kept in memory beside the current one
    reload_seconds: float = 1.0  # how often the folder is looked at
    body_seconds: float = 10.0  # a request must have been sent by then
    header_seconds: float = 10.0
    idle_seconds: float = 15.0  # a connection without a request is closed
    stuck_seconds: float = 30.0  # a client that does not read its answer is cut off
    shutdown_seconds: float = 30.0  # what was accepted is finished within this time
    max_connections: int = 1000
    device: str = "auto"  # what steps are computed on
    min_score: float | None = None  # of the mentions that are told; decides in place of calibrated shifts

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int | float):
                continue
            may_be_0 = field.name in {"port", "steps_kept", "min_score"}
            if not (0 < value < inf or (may_be_0 and value == 0)):
                raise ConfigError(
                    f"{field.name} is {value}, which makes no sense.", remedy="Give a positive number."
                )
        if self.min_score is not None and self.min_score > 1:
            raise ConfigError(f"No score reaches {self.min_score}.", remedy="Scores go from 0 to 1.")
        if self.port > 65535:
            raise ConfigError(f"There is no port {self.port}.", remedy="Ports go up to 65535.")
        if self.api_key is not None:
            _check_key(self.api_key)
        elif not is_loopback(self.host):
            raise ConfigError(
                f"The address {self.host} can be reached by others, and there is no API key.",
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
        """``port``: the one that was got, where any that is free was asked for."""
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
            f"The API key has {len(key)} characters; anybody could guess it.",
            remedy=f"Use at least {_SHORTEST_KEY}, for example: python -c 'import secrets; "
            "print(secrets.token_urlsafe(32))'.",
        )
    if not all("!" <= sign <= "~" for sign in key):
        raise ConfigError(
            "The API key has blanks or signs that cannot be sent in a header.",
            remedy="Use letters, digits and punctuation of ASCII.",
        )
