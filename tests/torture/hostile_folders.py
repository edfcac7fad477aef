"""Model folders and checkpoints as an attacker would make them. Each maker changes a good one in one way.

Seals are made anew afterwards: whoever can change a file can change its hash too.
"""

from __future__ import annotations

import json
import os
import pickle
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from made_steps import seal

Maker = Callable[[Path, random.Random, Path], None]  # the step's folder, what to draw from, a place outside

MARK = "sprung"  # a trap that is sprung leaves a file of this name


class Trap:
    """Runs code when it is unpickled."""

    def __init__(self, outside: Path) -> None:
        self.outside = outside

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.outside / MARK,)


def _edit(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def _code(outside: Path) -> str:
    return f"from pathlib import Path\nPath({str(outside / MARK)!r}).touch()\n"


def pickled_weights(step: Path, draw: random.Random, outside: Path) -> None:
    content = pickle.dumps(Trap(outside), protocol=draw.randint(0, 5))
    (step / "model.safetensors").write_bytes(content)


def pickled_beside(step: Path, draw: random.Random, outside: Path) -> None:
    name = draw.choice(["pytorch_model.bin", "weights.pt", "model.pkl", "optimizer.pth", "tokenizer.pickle"])
    (step / name).write_bytes(pickle.dumps(Trap(outside)))
    if draw.random() < 0.5:
        (step / "model.safetensors").unlink()


def named_code(step: Path, draw: random.Random, outside: Path) -> None:
    """``auto_map``, for known and for unknown architectures."""
    file = draw.choice(["config.json", "tokenizer_config.json"])
    (step / "evil.json").write_text(_code(outside))
    names = ["AutoConfig", "AutoModelForTokenClassification", "AutoTokenizer"]
    where = draw.choice(["evil.Model", "someone/repository--evil.Model", "../evil.Model"])
    changes: dict[str, Any] = {"auto_map": dict.fromkeys(names, where)}
    if file == "config.json" and draw.random() < 0.5:
        changes["model_type"] = "unheard-of"
    _edit(step / file, **changes)


def code_beside(step: Path, draw: random.Random, outside: Path) -> None:
    name = draw.choice(["modeling_bert.py", "sitecustomize.py", "tokenization_x.py", "__init__.py", "x.so"])
    (step / name).write_text(_code(outside))


def kernels_from_elsewhere(step: Path, draw: random.Random, outside: Path) -> None:
    key = draw.choice(["_attn_implementation", "attn_implementation"])
    _edit(step / "config.json", **{key: draw.choice(["someone/kernel", "someone/kernel@main:f"])})


def linked_file(step: Path, draw: random.Random, outside: Path) -> None:
    file = draw.choice(["model.safetensors", "config.json", "labels.json", "tokenizer.json", "step.json"])
    target = outside / file
    (step / file).rename(target)
    (step / file).symlink_to(draw.choice([target, Path("/etc/passwd")]))


def linked_folder(step: Path, draw: random.Random, outside: Path) -> None:
    seal(step)
    place = draw.choice([step, step.parent])
    target = outside / "moved"
    place.rename(target)
    place.symlink_to(target)


def linked_pointer(step: Path, draw: random.Random, outside: Path) -> None:
    seal(step)
    pointer = step.parent.parent / "CURRENT"
    (outside / "CURRENT").write_bytes(pointer.read_bytes())
    pointer.unlink()
    pointer.symlink_to(outside / "CURRENT")


def traversing_pointer(step: Path, draw: random.Random, outside: Path) -> None:
    seal(step)
    names = [
        "../../0002",
        "/etc/passwd",
        f"../../{outside.name}",
        "0002/../../..",
        "..",
        "0" * 5000,
        "0002\0x",
    ]
    (step.parent.parent / "CURRENT").write_text(draw.choice(names))


def traversing_seal(step: Path, draw: random.Random, outside: Path) -> None:
    seal(step)
    path = step / "seal.json"
    facts = json.loads(path.read_text())
    name = draw.choice(["../../../x", "/etc/passwd", "../0001/model.safetensors", "a\0b"])
    facts["files"][name] = "0" * 64
    path.write_text(json.dumps(facts, indent=1) + "\n")


def huge_header(step: Path, draw: random.Random, outside: Path) -> None:
    path = step / "model.safetensors"
    size = draw.choice([2**63, 2**40, 2**32, 10**8, 99_999_999, 2**64 - 1])
    path.write_bytes(struct.pack("<Q", size) + path.read_bytes()[8:])


def false_header(step: Path, draw: random.Random, outside: Path) -> None:
    """Shapes and places in the header that are not those of the data."""
    path = step / "model.safetensors"
    raw = path.read_bytes()
    length = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8 : 8 + length])
    name = draw.choice([key for key in header if key != "__metadata__"])
    change = draw.choice(["shape", "offsets", "dtype", "negative", "overlap"])
    entry = header[name]
    if change == "shape":
        entry["shape"] = [2**40, 2**40]
    elif change == "offsets":
        entry["data_offsets"] = [0, 2**50]
    elif change == "dtype":
        entry["dtype"] = draw.choice(["F64", "PICKLE", "BOOL"])
    elif change == "negative":
        entry["shape"] = [-1]
    else:
        other = draw.choice([key for key in header if key not in {"__metadata__", name}])
        entry["data_offsets"] = header[other]["data_offsets"]
    written = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(written)) + written + raw[8 + length :])


def truncated(step: Path, draw: random.Random, outside: Path) -> None:
    path = step / draw.choice(["model.safetensors", "model.safetensors", "tokenizer.json", "config.json"])
    raw = path.read_bytes()
    path.write_bytes(raw[: draw.randrange(len(raw) - 2)])


def wrong_shape(step: Path, draw: random.Random, outside: Path) -> None:
    path = step / "model.safetensors"
    weights = load_file(path)
    name = draw.choice(sorted(weights))
    change = draw.choice(["less", "more", "missing", "added", "flat"])
    if change == "missing":
        del weights[name]
    elif change == "added":
        weights["one.more"] = torch.ones(3)
    elif change == "less":
        weights[name] = weights[name][..., :-1].contiguous() if weights[name].dim() else torch.ones(2)
    elif change == "more":
        weights[name] = weights[name].repeat(2) if weights[name].dim() == 1 else weights[name][None]
    else:
        weights[name] = weights[name].reshape(-1, 1, 1)
    save_file(weights, path, metadata={"format": "pt"})


def no_number(step: Path, draw: random.Random, outside: Path) -> None:
    path = step / "model.safetensors"
    weights = load_file(path)
    name = draw.choice(sorted(weights))
    place = draw.randrange(weights[name].numel())
    weights[name].view(-1)[place] = draw.choice([float("nan"), float("inf"), float("-inf")])
    save_file(weights, path, metadata={"format": "pt"})


def other_numbers(step: Path, draw: random.Random, outside: Path) -> None:
    """Numbers that would be made to fit, and be others then."""
    path = step / "model.safetensors"
    weights = load_file(path)
    name = draw.choice(sorted(key for key in weights if key.endswith((".weight", ".bias"))))
    kind = draw.choice([torch.complex64, torch.bool, torch.int8, torch.float8_e4m3fn, torch.float64])
    weights[name] = weights[name].to(kind)
    if kind == torch.float64:
        weights[name].view(-1)[0] = 1e300  # finite, but not in 32 bits
    save_file(weights, path, metadata={"format": "pt"})


def monstrous_architecture(step: Path, draw: random.Random, outside: Path) -> None:
    """A small file that asks for all the memory, or all the time."""
    sizes = {
        "num_hidden_layers": [10**4, 10**7, -1, 2.5, "12"],
        "hidden_size": [10**7, 0, -32, 10**30],
        "vocab_size": [10**10, 10**20],
        "max_position_embeddings": [10**9, 10**12],
        "intermediate_size": [10**10],
        "num_attention_heads": [0, 7, 10**9],
        "num_labels": [10**9, -1],
    }
    key = draw.choice(sorted(sizes))
    _edit(step / "config.json", **{key: draw.choice(sizes[key])})


def broken_json(step: Path, draw: random.Random, outside: Path) -> None:
    files = ["config.json", "labels.json", "step.json", "tokenizer_config.json", "scores.json"]
    file = draw.choice([file for file in files if (step / file).exists()])  # a checkpoint has fewer
    contents = [
        b"[" * 200_000,
        b'{"a":' * 100_000,
        b'{"a": 1e999999, "labels": [NaN]}',
        b"\xff\xfe\x00",
        b"",
        b"null",
        b"[]",
        b'"text"',
        b'{"labels": ' + b"9" * 10_000 + b"}",
    ]
    (step / file).write_bytes(draw.choice(contents))


def no_file(step: Path, draw: random.Random, outside: Path) -> None:
    """A folder or a pipe where a file should be."""
    files = ["config.json", "labels.json", "step.json", "model.safetensors", "tokenizer.json"]
    file = draw.choice([file for file in files if (step / file).exists()])
    (step / file).unlink()
    if draw.random() < 0.5:
        (step / file).mkdir()
    else:
        os.mkfifo(step / file)


def false_labels(step: Path, draw: random.Random, outside: Path) -> None:
    changes = [
        {"labels": ["O"] * 9},
        {"labels": [f"B-{n}" for n in range(10_000)]},
        {"labels": {"O": 0}},
        {"labels": "O"},
        {"labels": [None, 1]},
        {"head": "__import__('os')"},
        {"head": ["cosine"]},
        {"max_length": 10**9},
        {"max_length": -1},
        {"max_length": "all"},
        {"overlap": 10**6},
        {"overlap": -5},
        {"scheme": "../x"},
    ]
    _edit(step / "labels.json", **draw.choice(changes))


def tokenizer_elsewhere(step: Path, draw: random.Random, outside: Path) -> None:
    key = draw.choice(["vocab_file", "tokenizer_file", "merges_file", "special_tokens_map_file", "spm_file"])
    (outside / "secret").write_text("outside")
    value = draw.choice([str(outside / "secret"), "../../../../etc/passwd", "/etc/passwd"])
    _edit(step / "tokenizer_config.json", **{key: value})


def vocabulary_elsewhere(step: Path, draw: random.Random, outside: Path) -> None:
    """Without a tokenizer.json the vocabulary is read from what the settings name."""
    words = sorted(json.loads((step / "tokenizer.json").read_text())["model"]["vocab"])
    (outside / "words.txt").write_text("\n".join(words))
    (step / "tokenizer.json").unlink()
    named = draw.choice(
        [{"vocab": str(outside / "words.txt")}, {"init_inputs": [str(outside / "words.txt")]}]
    )
    _edit(step / "tokenizer_config.json", tokenizer_class="BertTokenizer", **named)


def false_facts(step: Path, draw: random.Random, outside: Path) -> None:
    changes = [
        {"config": {"encoder": "x", "method": "os.system"}},
        {"config": {"encoder": "x", "method": "cfner", "epochs": -1}},
        {"config": []},
        {"config": None},
        {"types": 7},
        {"types": None},
        {"known": 3.5},
    ]
    _edit(step / "step.json", **draw.choice(changes))


def indexed_elsewhere(folder: Path, draw: random.Random, outside: Path) -> None:
    """An index that names pickles, or files out of the folder, for good weights."""
    file = folder / "model.safetensors"
    weights = load_file(file)
    name = draw.choice(["pytorch_model.bin", "../outside/model.safetensors", str(outside / "x.safetensors")])
    if name == "pytorch_model.bin":
        torch.save(weights, folder / name)
        file.unlink()
    else:
        file.rename(folder / name)
    index = {"metadata": {"total_size": 1}, "weight_map": dict.fromkeys(weights, name)}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def other_weights(folder: Path, draw: random.Random, outside: Path) -> None:
    changes: list[dict[str, Any]] = [
        {"quantization_config": {"quant_method": "gptq", "bits": 4}},
        {"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True}},
        {"transformers_weights": "adapter_model.bin"},
        {"configuration_files": ["config.4.0.0.json"]},
        {"fusion_config": {"patch_embeddings": True}},
        {"parts": [{"num_labels": 10**9}]},
    ]
    _edit(folder / "config.json", **draw.choice(changes))


def false_settings(folder: Path, draw: random.Random, outside: Path) -> None:
    """Settings of another kind than the library expects."""
    changes: list[dict[str, Any]] = [
        {"id2label": {"0": "O", "1": "B-a", "2": "I-a", "3": "B-b", "7": "I-b"}},
        {"id2label": {"0": "O"}},
        {"id2label": 3},
        {"hidden_act": "unheard-of"},
        {"hidden_size": "x"},
        {"model_type": [1]},
        {"model_type": "unheard-of"},
        {"dtype": "load"},
    ]
    _edit(folder / "config.json", **draw.choice(changes))


def false_tokenizer(folder: Path, draw: random.Random, outside: Path) -> None:
    length = draw.choice([None, "x", -1, 0])
    if length is None:
        (folder / "tokenizer.json").write_text(draw.choice(['{"x": 1}', "[1]", "{}", '{"added_tokens": []}']))
    else:
        _edit(folder / "tokenizer_config.json", model_max_length=length)


def indexed_tokenizer(folder: Path, draw: random.Random, outside: Path) -> None:
    """A list of tokenizers for several versions, of which one is elsewhere."""
    (outside / "tokenizer.1.0.json").write_bytes((folder / "tokenizer.json").read_bytes())
    name = os.path.relpath(outside / "tokenizer.1.0.json", folder)
    _edit(folder / "tokenizer_config.json", fast_tokenizer_files=[name])


MODELS: list[Maker] = [
    pickled_weights,
    pickled_beside,
    named_code,
    code_beside,
    kernels_from_elsewhere,
    linked_file,
    linked_folder,
    linked_pointer,
    traversing_pointer,
    traversing_seal,
    huge_header,
    false_header,
    truncated,
    wrong_shape,
    no_number,
    other_numbers,
    monstrous_architecture,
    broken_json,
    no_file,
    false_labels,
    tokenizer_elsewhere,
    vocabulary_elsewhere,
    indexed_tokenizer,
    false_facts,
]
SEALED_BY_THEMSELVES = {linked_folder, linked_pointer, traversing_pointer, traversing_seal}

# a checkpoint is whatever others save: it may hold links (the hub's cache does) and files that nobody reads
CHECKPOINTS: list[Maker] = [
    indexed_elsewhere,
    other_weights,
    false_settings,
    false_tokenizer,
    pickled_weights,
    pickled_beside,
    named_code,
    code_beside,
    kernels_from_elsewhere,
    huge_header,
    false_header,
    truncated,
    wrong_shape,
    no_number,
    other_numbers,
    monstrous_architecture,
    broken_json,
    no_file,
    tokenizer_elsewhere,
    vocabulary_elsewhere,
    indexed_tokenizer,
]
# what is not looked at may be there, and changes nothing: such a checkpoint may be loaded
NOT_READ = {pickled_beside, named_code, code_beside, wrong_shape, broken_json, tokenizer_elsewhere}

# what is in a file of a step, or what is put into its table
RECORDS: list[tuple[str, Any]] = [
    *(
        ("step.json", value)
        for value in (None, 5, [1], "x", {"parent": [1]}, {"types": 5}, {"types": [["x"]]})
    ),
    *(("step.json", value) for value in ({"known": [["a"]]}, {"name": 5}, {"kind": ["learn"]}, {"data": 5})),
    *(("step.json", value) for value in ({"data": {"train": {"sentences": "many"}}}, {"operation": [1]})),
    *(("step.json", {"config": value}) for value in (5, [], {}, {"method": "cfner", "parameters": 5})),
    *(("labels.json", value) for value in (5, [1], {"labels": [["O"], 1]}, {"labels": 5}, {"labels": "O"})),
    *(("labels.json", value) for value in ({"scheme": ["BIO"]}, {"bare": "no"}, {"merged": 5})),
    *(("labels.json", {"groups": value}) for value in (5, "01", [0], [0, -1], [True] * 9, [0] * 8 + [10**9])),
    *(("scores.json", value) for value in (5, [1], {"micro_f1": "\x1b[31mx"}, {"per_type": 5}, {"types": 5})),
    *(("scores.json", {"per_type": {"dish": value}}) for value in (5, {"tp": "1"}, {"tp": 10**400})),
    *(("scores.json", value) for value in ({"types": ["unheard of"]}, {"confusions": 5})),
]
_ODD = [None, 5, -1, 1.5, True, "", "x", "\x1b[31m", "\ud800", [], [1], [["x"]], {}, {"a": 1}, 10**400, "²"]


def odd_value(step: Path, draw: random.Random) -> None:
    """Somewhere in a record, something that nobody expects there, or nothing."""
    path = step / draw.choice(["step.json", "labels.json", "scores.json"])
    facts = json.loads(path.read_text())
    at = facts
    while True:
        key = draw.choice(sorted(at) if isinstance(at, dict) else range(len(at)))
        if not at[key] or not isinstance(at[key], dict | list) or draw.random() < 0.5:
            break
        at = at[key]
    if draw.random() < 0.2:
        del at[key]
    else:
        at[key] = draw.choice(_ODD)
    path.write_text(json.dumps(facts))
