"""Downloads checkpoints from the Hugging Face hub into its cache, to be read like any other folder."""

from __future__ import annotations

import socket
import urllib.parse
import urllib.request
from pathlib import Path

# the files of a token classifier; no code, and no subfolders
_WANTED = ("*.json", "*.txt", "*.model", "model.safetensors", "model-*-of-*.safetensors")
_PICKLED = ("pytorch_model.bin", "pytorch_model-*-of-*.bin")
_UNWANTED = ("*/*",)


def fetch(name: str, *, pickled: bool = False) -> Path:
    """The checkpoint's folder in the cache, up to date if the hub can be reached."""
    from huggingface_hub import snapshot_download

    return Path(
        snapshot_download(
            name,
            local_files_only=not hub_answers(),
            allow_patterns=[*_WANTED, *(_PICKLED if pickled else ())],
            ignore_patterns=list(_UNWANTED),
        )
    )


def cache() -> Path:
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE)


def is_cached(name: str) -> bool:
    return (cache() / f"models--{name.replace('/', '--')}").is_dir()


def hub_answers() -> bool:
    """Whether the hub's name resolves: without this check, an offline machine retries for a minute."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return False
    host = urllib.parse.urlsplit(constants.ENDPOINT).hostname
    if urllib.request.getproxies() or host is None:
        return True  # a proxy resolves names
    try:
        socket.getaddrinfo(host, 443)
    except OSError:
        return False
    return True
