"""Reads settings and weights of an untrusted checkpoint folder, instead of letting transformers read it.

From an untrusted folder, transformers would load pickled weights, files elsewhere and kernels from the hub.
It gets only validated settings and tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from cfner.errors import ModelError
from cfner.store.untrusted import (
    WITHOUT_MEMORY,
    Shapes,
    files_named,
    other_shape,
    read_settings,
    refuse_depth,
    refuse_size,
    refuse_sizes,
    shapes_in,
    tables_in,
)

_WEIGHTS = "model.safetensors"
_PICKLED = "pytorch_model.bin"
_KINDS_OF_NUMBERS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_PLAIN = (
    "Use the checkpoint from before it was quantized or fused, or save its model with plain float weights "
    "(save_pretrained)."
)
_ANEW = "Download it or save it again (save_pretrained)."
# settings that change which weights are read, or how; a plainly saved model needs none of them
_OTHER_WEIGHTS = ("quantization_config", "transformers_weights", "fusion_config", "configuration_files")
_ATTENTION = ("eager", "sdpa")  # available on every machine
_FAST_ATTENTION = ("flash_attention", "flex_attention")  # the same result, where they are available


Loaded = tuple[nn.Module, Mapping[str, Any]]  # a token classifier, and transformers' report on its weights


def load_folder(folder: Path) -> Loaded:
    """A token classifier from a folder with safetensors."""
    _refuse_beside(folder)
    files = _weight_files(folder)
    shapes = {name: shape for file in files for name, shape in shapes_in(file).items()}
    # copies: the loader maps the file into memory, and another process may overwrite it later
    return _load(folder, shapes, lambda: {n: t.clone() for file in files for n, t in load_file(file).items()})


def load_pickled(folder: Path) -> Loaded:
    """The same for a hub repository that has only pickles. torch's restricted reader reads the tensors in
    them and refuses everything else.
    """
    _refuse_beside(folder)
    weights: dict[str, Tensor] = {}
    for file in _weight_files(folder, _PICKLED):
        found = torch.load(file, map_location="cpu", weights_only=True)
        if not isinstance(found, dict) or not all(isinstance(value, Tensor) for value in found.values()):
            raise _unfit("The file contains something other than weights.", file)
        weights |= found
    return _load(folder, {name: tuple(value.shape) for name, value in weights.items()}, lambda: weights)


def _load(folder: Path, shapes: Shapes, read: Callable[[], dict[str, Tensor]]) -> Loaded:
    """``read`` returns the weights; it is called after settings and shapes have been validated."""
    from transformers import AutoModelForTokenClassification

    config = _settings(folder, shapes)
    with WITHOUT_MEMORY:
        empty: Any = AutoModelForTokenClassification.from_config(config, trust_remote_code=False)
    refuse_size(empty, shapes, folder)
    weights = read()
    _refuse_other_kinds(weights, folder)
    body, info = type(empty).from_pretrained(
        None,
        config=empty.config,
        state_dict=weights,
        local_files_only=True,
        ignore_mismatched_sizes=True,  # reported below, with the name and both shapes
        output_loading_info=True,
    )
    for name, stored, built in sorted(info["mismatched_keys"]):
        raise _unfit(other_shape(name, stored, built), folder)
    return body, info


def has_safetensors(folder: Path) -> bool:
    return (folder / _WEIGHTS).is_file() or (folder / f"{_WEIGHTS}.index.json").is_file()


def _refuse_other_kinds(weights: Mapping[str, Tensor], folder: Path) -> None:
    """Converted to floats, packed or integer weights would be meaningless."""
    for name, value in weights.items():
        if name.endswith((".weight", ".bias")) and value.dtype not in _KINDS_OF_NUMBERS:
            raise _unfit(
                f"The weight '{name}' is {value.dtype}: only plain float weights are read.", folder, _PLAIN
            )


def _refuse_beside(folder: Path) -> None:
    """Refuse adapters, which would change the model, and tokenizer files outside the folder."""
    if (folder / "adapter_config.json").exists():
        raise _unfit(
            "The folder contains an adapter (adapter_config.json), and cfner does not read adapters.",
            folder,
            "Merge it into its model and save that (merge_and_unload, save_pretrained).",
        )
    path = folder / "tokenizer_config.json"
    if not path.is_file():
        return
    facts = _read(path)
    for name in facts.get("fast_tokenizer_files") or ():
        if Path(name).name != name:
            raise _unfit(f"The file refers to {name!r}, which is outside the folder.", path)
    for key in files_named(facts):
        # transformers itself ignores 'vocab_file' and similar keys, which old checkpoints have
        if not key.endswith(("_file", "_files")):
            raise _unfit(f"The file refers to another file in '{key}'.", path)


def _weight_files(folder: Path, whole: str = _WEIGHTS) -> list[Path]:
    """The weights file, or the several files in an index."""
    index = folder / f"{whole}.index.json"
    if (folder / whole).is_file() or not index.is_file():
        return [_plain_file(folder, whole, index)]
    parts = _read(index).get("weight_map")
    if not isinstance(parts, dict) or not parts:
        raise _unfit("The index lists no weights.", index)
    names = {name if isinstance(name, str) else repr(name) for name in parts.values()}
    return [_plain_file(folder, name, index) for name in sorted(names)]


def _plain_file(folder: Path, name: str, index: Path) -> Path:
    kind = Path(index.name.removesuffix(".index.json")).suffix
    if not name.endswith(kind) or set(name) & set("/\\\0"):
        raise _unfit(f"The index refers to {name!r}. Only *{kind} files in the same folder are read.", index)
    if not (folder / name).is_file():
        raise _unfit(f"There is no file {name}.", folder)
    return folder / name


def _settings(folder: Path, shapes: Shapes) -> Any:
    from transformers import AutoConfig

    path = folder / "config.json"
    settings = _read(path)
    for key in _OTHER_WEIGHTS:
        if any(table.get(key) is not None for table in tables_in(settings)):
            raise _unfit(f"The file has a '{key}': only plain weights are read.", path, _PLAIN)
    refuse_sizes(settings, shapes, path)
    config: Any = AutoConfig.from_pretrained(str(folder), trust_remote_code=False, local_files_only=True)
    refuse_depth(config, shapes, path)
    _choose_attention(config, path)
    return config


def _choose_attention(config: Any, path: Path) -> None:
    """Do not let the checkpoint choose the attention code: it may be a kernel on the hub."""
    asked = config._attn_implementation
    if asked is not None and asked not in _ATTENTION and not str(asked).startswith(_FAST_ATTENTION):
        raise _unfit(
            f"The file requests the attention implementation {asked!r}, which is third-party code.",
            path,
            "Remove 'attn_implementation' from the file if you trust the source of the checkpoint.",
        )
    config._attn_implementation = asked if asked in _ATTENTION else None  # for all parts
    config._experts_implementation = None


def _unfit(what: str, where: Path, remedy: str = _ANEW) -> ModelError:
    return ModelError(what, where=str(where), remedy=remedy)


def _read(path: Path) -> dict[str, Any]:
    """Follows links: the hub's cache consists of them."""
    try:
        return read_settings(path.resolve())
    except ModelError as error:
        raise _unfit(error.what, path) from error
