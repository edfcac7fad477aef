"""Other processes and machines: the environment that a worker gets, and the connection to a Ray cluster."""

from __future__ import annotations

import logging
import os
import socket
from typing import Any

from cfner.errors import ConfigError, import_extra


def environment_for(threads: int, device: int | None = None) -> dict[str, str]:
    found = {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    return found if device is None else {**found, "CUDA_VISIBLE_DEVICES": str(device)}


def memory_gib() -> int:
    try:
        return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**30)
    except (ValueError, OSError, AttributeError):
        return 8


def connect(address: str | None, purpose: str) -> Any:
    """The module ``ray``, connected to the cluster at this address.

    ``auto``: the cluster that this machine is part of. ``local``: one that is started here. None, as in Ray
    itself: the address in RAY_ADDRESS, else this machine's cluster, else one that is started here.
    """
    ray = import_extra("ray", "ray", purpose)
    if address is not None:
        _refuse_silence(address)
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError) as error:
        place = "" if address is None else f" at '{address}'"
        raise ConfigError(
            f"Could not connect to the Ray cluster{place}: {error}.",
            remedy="Give the address that 'ray start --head' printed, or 'local', and the token if the "
            "cluster needs one (RAY_AUTH_TOKEN, or the file ~/.ray/auth_token).",
        ) from error
    return ray


def _refuse_silence(address: str) -> None:
    """Ray waits for minutes if nothing answers, so try the port first."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdigit():
        return  # 'auto' or 'local'
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except OSError as error:
        raise ConfigError(
            f"There is no Ray cluster at '{address}': {error}.",
            remedy="Give the address that 'ray start --head' printed, or 'local'.",
        ) from error
