"""A step folder may come from anybody. What it asks for is looked at before anything is built from it.

Its files may not name code, nor other files; its architecture must be that of its weights, so that a small
file cannot ask for all of the memory. (``hf_checkpoint`` reads checkpoints of others with the same guards.)
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

_KINDS = frozenset({".json", ".safetensors", ".txt", ".model", ".jinja"})  # of files that a step may have
_MOST_LABELS = 100_000
_LARGEST_HEAD = 10_000_000
_DEPTHS = ("num_hidden_layers", "num_layers", "n_layers", "n_layer", "num_hidden_groups", "inner_group_num")
# transformers would fetch these, and run what they fetch
_CODE = frozenset({"auto_map", "attn_implementation", "_attn_implementation"})
_TABLES = frozenset({"vocab", "merges"})
WITHOUT_MEMORY = torch.device("meta")  # as a context: what is built in it has shapes and no content
_NARROWER = (torch.float16, torch.bfloat16)  # all of whose numbers the usual kind has

Shapes = dict[str, tuple[int, ...]]


def refuse_requests(folder: Path, shapes: Shapes) -> None:
    """An error if a file is of a kind that no step has, or asks for code, for files elsewhere or for more
    than its weights need.
    """
    for file in sorted(folder.iterdir()):
        if file.suffix not in _KINDS:
            raise _distrusted("No step holds a file of this kind.", file)
    for path in (folder / "config.json", folder / "tokenizer_config.json"):
        settings = read_settings(path)
        if asked := requests_in(settings):
            raise _distrusted(f"The file asks for '{asked[0]}'.", path)
        refuse_sizes(settings, shapes, path)


def read_settings(path: Path) -> dict[str, Any]:
    settings = read_json(path)
    if not isinstance(settings, dict):
        raise _distrusted("The file holds no settings.", path)
    return settings


def _distrusted(what: str, where: Path) -> ModelError:
    return ModelError(
        what, where=str(where), remedy="Do not use this model unless you trust where it is from."
    )


def requests_in(facts: Mapping[str, Any]) -> list[str]:
    """Settings that name code to run or another file to read."""
    return [key for key, value in facts.items() if key in _CODE and value is not None] + files_named(facts)


def files_named(facts: Mapping[str, Any]) -> list[str]:
    """Settings of a tokenizer under which a file may stand, anywhere on the disk, that would be read."""
    return [key for key, value in facts.items() if _names_a_file(key, value)]


def _names_a_file(key: str, value: Any) -> bool:
    if key in _TABLES:  # usually left out: they are in a file of their own
        return isinstance(value, str)
    if key == "sp_model_kwargs":
        return isinstance(value, dict) and any(inner.endswith("_file") for inner in value)
    return bool(value) and (key == "init_inputs" or key.endswith(("_file", "_files")))


def shapes_in(file: Path) -> Shapes:
    """Names and shapes of the tensors, without reading one."""
    with safe_open(file, framework="pt") as tensors:
        return {name: tuple(tensors.get_slice(name).get_shape()) for name in tensors.keys()}  # noqa: SIM118


def tables_in(settings: Any) -> Iterator[dict[str, Any]]:
    """Models of several parts have settings in settings: all of them, the outermost first."""
    if isinstance(settings, dict):
        yield settings
        settings = list(settings.values())
    for part in settings if isinstance(settings, list) else ():
        yield from tables_in(part)


def refuse_sizes(settings: dict[str, Any], shapes: Shapes, where: Path) -> None:
    """Before transformers makes a name for each label, or a layer for each number: more layers than tensors
    cannot be.
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
    """The same of what transformers made of the settings: each family has names of its own for its depth."""
    refuse_sizes({"num_hidden_layers": getattr(config, "num_hidden_layers", 0)}, shapes, where)


def refuse_size(network: nn.Module, shapes: Shapes, where: Path) -> None:
    """``network`` was built without memory; what the file lacks may not be far more than what it holds.

    Twice, since tied weights are stored once; and room for the layer on top that an encoder lacks.
    """
    stored = sum(math.prod(shape) for shape in shapes.values())
    built = sum(value.numel() for value in [*network.parameters(), *network.buffers()])
    if built > 2 * stored + _LARGEST_HEAD:
        raise _distrusted(f"The file holds {stored:,} numbers, and its architecture has {built:,}.", where)


def refuse_other_shapes(network: nn.Module, shapes: Shapes, where: Path) -> None:
    """``network`` was built without memory; only if the file has just its tensors is it built in earnest."""
    wanted = {name: tuple(value.shape) for name, value in network.state_dict().items()}
    for name in sorted(wanted.keys() | shapes.keys()):
        if wanted.get(name) != shapes.get(name):
            raise damaged(other_shape(name, shapes.get(name), wanted.get(name)), where)


def refuse_other_numbers(network: nn.Module, weights: Mapping[str, Tensor], where: Path) -> None:
    """Other kinds of numbers would be made to fit, which may change them: 1e300 is infinite in 32 bits."""
    for name, wanted in network.state_dict().items():
        kind = weights[name].dtype
        if kind != wanted.dtype and not (wanted.is_floating_point() and kind in _NARROWER):
            raise damaged(
                f"The weight '{name}' is of {kind} in the file and of {wanted.dtype} in its architecture.",
                where,
            )


def other_shape(name: str, stored: Sequence[int] | None, built: Sequence[int] | None) -> str:
    """What is wrong with a weight of another shape."""

    def told(shape: Sequence[int] | None) -> str:
        return "missing" if shape is None else "x".join(map(str, shape)) or "a number"

    return f"The weight '{name}' is {told(stored)} in the file and {told(built)} in its architecture."


def first_not_finite(weights: Mapping[str, Tensor]) -> str | None:
    """The name of a tensor that holds an infinity or something that is no number; None if all is well."""
    for name, value in weights.items():
        if not value.is_floating_point() or bool(torch.isfinite(value.sum())):
            continue  # one sum is quick, and hides neither
        if not bool(torch.isfinite(value).all()):  # the sum may have overflowed by itself
            return name
    return None
