"""A checkpoint folder may come from anybody. Its settings and its weights are read here, not by transformers.

transformers would follow a folder to pickled weights, to files elsewhere and to kernels on the hub. It is
given settings that were looked at, and tensors.
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
    "Take the checkpoint from before it was quantized or fused, or save its model with plain float weights "
    "(save_pretrained)."
)
_ANEW = "Fetch it or save it anew (save_pretrained)."
# settings that change which weights are read, or how; not one is needed by a model saved as it is
_OTHER_WEIGHTS = ("quantization_config", "transformers_weights", "fusion_config", "configuration_files")
_ATTENTION = ("eager", "sdpa")  # what every machine has
_FAST_ATTENTION = ("flash_attention", "flex_attention")  # the same figures, on machines that have it


Loaded = tuple[nn.Module, Mapping[str, Any]]  # a token classifier, and what transformers says of its weights


def load_folder(folder: Path) -> Loaded:
    """A token classifier from a folder with safetensors."""
    _refuse_beside(folder)
    files = _weight_files(folder)
    shapes = {name: shape for file in files for name, shape in shapes_in(file).items()}
    # copies: the loader maps the file into memory, and somebody may write it anew while the model is used
    return _load(folder, shapes, lambda: {n: t.clone() for file in files for n, t in load_file(file).items()})


def load_pickled(folder: Path) -> Loaded:
    """The same of a repository on the hub that has nothing but pickles. torch's restricted reader takes the
    tensors in them, and refuses whatever else they hold.
    """
    _refuse_beside(folder)
    weights: dict[str, Tensor] = {}
    for file in _weight_files(folder, _PICKLED):
        found = torch.load(file, map_location="cpu", weights_only=True)
        if not isinstance(found, dict) or not all(isinstance(value, Tensor) for value in found.values()):
            raise _unfit("The file holds something else than weights.", file)
        weights |= found
    return _load(folder, {name: tuple(value.shape) for name, value in weights.items()}, lambda: weights)


def _load(folder: Path, shapes: Shapes, read: Callable[[], dict[str, Tensor]]) -> Loaded:
    """``read`` gives the weights; it is called when settings and shapes have been found to fit."""
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
        ignore_mismatched_sizes=True,  # told below, with the name and both shapes
        output_loading_info=True,
    )
    for name, stored, built in sorted(info["mismatched_keys"]):
        raise _unfit(other_shape(name, stored, built), folder)
    return body, info


def has_safetensors(folder: Path) -> bool:
    return (folder / _WEIGHTS).is_file() or (folder / f"{_WEIGHTS}.index.json").is_file()


def _refuse_other_kinds(weights: Mapping[str, Tensor], folder: Path) -> None:
    """Made to fit, packed or whole numbers would be weights that nobody has trained."""
    for name, value in weights.items():
        if name.endswith((".weight", ".bias")) and value.dtype not in _KINDS_OF_NUMBERS:
            raise _unfit(
                f"The weight '{name}' is of {value.dtype}: only plain float weights are read.", folder, _PLAIN
            )


def _refuse_beside(folder: Path) -> None:
    """What would make another model of it, and what leads the tokenizer out of the folder."""
    if (folder / "adapter_config.json").exists():
        raise _unfit(
            "The folder holds an adapter (adapter_config.json), and adapters are not read.",
            folder,
            "Merge it into its model and save that (merge_and_unload, save_pretrained).",
        )
    path = folder / "tokenizer_config.json"
    if not path.is_file():
        return
    facts = _read(path)
    for name in facts.get("fast_tokenizer_files") or ():
        if Path(name).name != name:
            raise _unfit(f"The file names {name!r}, a file elsewhere.", path)
    for key in files_named(facts):
        # transformers itself takes no notice of 'vocab_file' and the like, which old checkpoints have
        if not key.endswith(("_file", "_files")):
            raise _unfit(f"The file names a file to read in '{key}'.", path)


def _weight_files(folder: Path, whole: str = _WEIGHTS) -> list[Path]:
    """The one file of weights, or the several that an index names."""
    index = folder / f"{whole}.index.json"
    if (folder / whole).is_file() or not index.is_file():
        return [_plain_file(folder, whole, index)]
    parts = _read(index).get("weight_map")
    if not isinstance(parts, dict) or not parts:
        raise _unfit("The index names no weights.", index)
    names = {name if isinstance(name, str) else repr(name) for name in parts.values()}
    return [_plain_file(folder, name, index) for name in sorted(names)]


def _plain_file(folder: Path, name: str, index: Path) -> Path:
    kind = Path(index.name.removesuffix(".index.json")).suffix
    if not name.endswith(kind) or set(name) & set("/\\\0"):
        raise _unfit(
            f"The index names {name!r}. Weights are read from *{kind} beside it, nothing else.", index
        )
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
    """Which code computes the attention is not for the checkpoint to say: it may be a kernel on the hub."""
    asked = config._attn_implementation
    if asked is not None and asked not in _ATTENTION and not str(asked).startswith(_FAST_ATTENTION):
        raise _unfit(
            f"The file asks for the attention of {asked!r}, which is code from elsewhere.",
            path,
            "Take 'attn_implementation' out of the file if you trust where the checkpoint is from.",
        )
    config._attn_implementation = asked if asked in _ATTENTION else None  # of all parts
    config._experts_implementation = None


def _unfit(what: str, where: Path, remedy: str = _ANEW) -> ModelError:
    return ModelError(what, where=str(where), remedy=remedy)


def _read(path: Path) -> dict[str, Any]:
    """Links are followed: the hub's cache is made of them."""
    try:
        return read_settings(path.resolve())
    except ModelError as error:
        raise _unfit(error.what, path) from error
