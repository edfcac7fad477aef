"""Validates an untrusted step folder before anything is built from it.

Its files may not refer to code or to other files. Its architecture must match its weights, so that a small
file cannot request all of the memory. (``hf_checkpoint`` validates Hugging Face checkpoints in the same way.)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor, nn

from cfner.errors import ModelError
from cfner.files.json_files import read_json
from cfner.store.model_folder import damaged

_KINDS = frozenset({".json", ".safetensors", ".txt", ".model", ".jinja"})  # file types that a step may have
_MOST_LABELS = 100_000
_LARGEST_HEAD = 10_000_000
_DEPTHS = ("num_hidden_layers", "num_layers", "n_layers", "n_layer", "num_hidden_groups", "inner_group_num")
# transformers would download these, and run the code
_CODE = frozenset({"auto_map", "attn_implementation", "_attn_implementation"})
_TABLES = frozenset({"vocab", "merges"})
WITHOUT_MEMORY = torch.device("meta")  # as a context: modules built in it have shapes but no content
_NARROWER = (torch.float16, torch.bfloat16)  # float32 represents all of their numbers

Shapes = dict[str, tuple[int, ...]]


def refuse_requests(folder: Path, shapes: Shapes) -> None:
    """An error if a file has an unknown type, or refers to code, to files elsewhere, or to a larger model
    than its weights.
    """
    for file in sorted(folder.iterdir()):
        if file.suffix not in _KINDS:
            raise _distrusted("A step never contains a file of this type.", file)
    for path in (folder / "config.json", folder / "tokenizer_config.json"):
        settings = read_settings(path)
        if asked := requests_in(settings):
            raise _distrusted(f"The file requests '{asked[0]}'.", path)
        refuse_sizes(settings, shapes, path)


def read_settings(path: Path) -> dict[str, Any]:
    settings = read_json(path)
    if not isinstance(settings, dict):
        raise _distrusted("The file contains no settings.", path)
    return settings


def _distrusted(what: str, where: Path) -> ModelError:
    return ModelError(what, where=str(where), remedy="Do not use this model unless you trust its source.")


def requests_in(facts: Mapping[str, Any]) -> list[str]:
    """Settings that refer to code to run or to another file to read."""
    return [key for key, value in facts.items() if key in _CODE and value is not None] + files_named(facts)


def files_named(facts: Mapping[str, Any]) -> list[str]:
    """Settings of a tokenizer that may be the path of any file, which would be read."""
    return [key for key, value in facts.items() if _names_a_file(key, value)]


def _names_a_file(key: str, value: Any) -> bool:
    if key in _TABLES:  # usually left out: they have their own file
        return isinstance(value, str)
    if key == "sp_model_kwargs":
        return isinstance(value, dict) and any(inner.endswith("_file") for inner in value)
    return bool(value) and (key == "init_inputs" or key.endswith(("_file", "_files")))


def shapes_in(file: Path) -> Shapes:
    """Names and shapes of the tensors, without loading them."""
    with safe_open(file, framework="pt") as tensors:
        return {name: tuple(tensors.get_slice(name).get_shape()) for name in tensors.keys()}  # noqa: SIM118


def tables_in(settings: Any) -> Iterator[dict[str, Any]]:
    """All tables of settings, the outermost first: models of several parts nest them."""
    if isinstance(settings, dict):
        yield settings
        settings = list(settings.values())
    for part in settings if isinstance(settings, list) else ():
        yield from tables_in(part)


def refuse_sizes(settings: dict[str, Any], shapes: Shapes, where: Path) -> None:
    """Check before transformers creates a name for each label or a layer for each number: there cannot be
    more layers than tensors.
    """
    for table in tables_in(settings):
        labels = table.get("num_labels", 0)
        if not isinstance(labels, int) or not 0 <= labels <= _MOST_LABELS:
            raise _impossible("num_labels", labels, where)
        for key in _DEPTHS:
            if isinstance(depth := table.get(key), int) and not 0 <= depth <= len(shapes):
                raise _impossible(key, depth, where)


def _impossible(key: str, value: Any, where: Path) -> ModelError:
    return _distrusted(f"The setting '{key}' cannot be {value!r}.", where)


def refuse_depth(config: Any, shapes: Shapes, where: Path) -> None:
    """The same for the config that transformers made: each architecture has its own names for its depth."""
    refuse_sizes({"num_hidden_layers": getattr(config, "num_hidden_layers", 0)}, shapes, where)


def refuse_size(network: nn.Module, shapes: Shapes, where: Path) -> None:
    """``network`` was built without memory; it may not be much larger than the weights in the file.

    Twice as large is allowed, since tied weights are stored once, plus a layer on top that an encoder lacks.
    """
    stored = sum(math.prod(shape) for shape in shapes.values())
    built = sum(value.numel() for value in [*network.parameters(), *network.buffers()])
    if built > 2 * stored + _LARGEST_HEAD:
        raise _distrusted(f"The file has {stored:,} numbers, but its architecture has {built:,}.", where)


def refuse_other_shapes(network: nn.Module, shapes: Shapes, where: Path) -> None:
    """``network`` was built without memory; it is built for real only if the file has its tensors."""
    wanted = {name: tuple(value.shape) for name, value in network.state_dict().items()}
    for name in sorted(wanted.keys() | shapes.keys()):
        if wanted.get(name) != shapes.get(name):
            raise damaged(other_shape(name, shapes.get(name), wanted.get(name)), where)


def refuse_other_numbers(network: nn.Module, weights: Mapping[str, Tensor], where: Path) -> None:
    """Other dtypes would be converted, which may change numbers: 1e300 is infinite in 32 bits."""
    for name, wanted in network.state_dict().items():
        kind = weights[name].dtype
        if kind != wanted.dtype and not (wanted.is_floating_point() and kind in _NARROWER):
            raise damaged(
                f"The weight '{name}' is {kind} in the file but {wanted.dtype} in its architecture.",
                where,
            )


def other_shape(name: str, stored: Sequence[int] | None, built: Sequence[int] | None) -> str:
    """The message for a weight of the wrong shape."""

    def told(shape: Sequence[int] | None) -> str:
        return "missing" if shape is None else "x".join(map(str, shape)) or "a number"

    return f"The weight '{name}' is {told(stored)} in the file and {told(built)} in its architecture."


def first_not_finite(weights: Mapping[str, Tensor]) -> str | None:
    """The name of a tensor with an infinite or nan value; None if there is none."""
    for name, value in weights.items():
        if not value.is_floating_point() or bool(torch.isfinite(value.sum())):
            continue  # one sum is fast, and is not finite if any value is not
        if not bool(torch.isfinite(value).all()):  # the sum itself may have overflowed
            return name
    return None
