"""Corpora as an attacker would make them."""

from __future__ import annotations

import json
import pickle
import random
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hostile_folders import Trap, _code

Maker = Callable[[Path, random.Random, Path], Path]  # folder, what to draw from, outside -> the file


def pickled(folder: Path, draw: random.Random, outside: Path) -> Path:
    suffix = draw.choice([".conll", ".jsonl", ".json", ".spacy", ".tsv"])
    path = folder / f"train{suffix}"
    path.write_bytes(pickle.dumps(Trap(outside), protocol=draw.randint(0, 5)))
    return draw.choice([path, folder])


def code_as_dataset(folder: Path, draw: random.Random, outside: Path) -> Path:
    """A dataset folder with a loading script, as older datasets had."""
    (folder / f"{folder.name}.py").write_text(_code(outside))
    (folder / "state.json").write_text("{}")
    (folder / "dataset_info.json").write_text("{}")
    return folder


def dataset_elsewhere(folder: Path, draw: random.Random, outside: Path) -> Path:
    """A saved dataset whose table is another file's."""
    (outside / "secret.arrow").write_bytes(b"ARROW1")
    target = draw.choice([f"../{outside.name}/secret.arrow", str(outside / "secret.arrow"), "/etc/passwd"])
    state = {"_data_files": [{"filename": target}], "_fingerprint": "0", "_format_columns": None}
    rest = {"_format_kwargs": {}, "_format_type": None, "_output_all_columns": False, "_split": None}
    (folder / "state.json").write_text(json.dumps(state | rest))
    (folder / "dataset_info.json").write_text(json.dumps({"features": {}}))
    return folder


def false_dataset(folder: Path, draw: random.Random, outside: Path) -> Path:
    (folder / draw.choice(["state.json", "dataset_dict.json"])).write_text(
        draw.choice(["[]", "{}", "null", '{"splits": ["../../x"]}', '{"splits": 3}', "[" * 100_000, "\x00"])
    )
    return folder


def false_docbin(folder: Path, draw: random.Random, outside: Path) -> Path:
    """msgpack that promises more than there is, or is no DocBin; and a little that unpacks to a lot."""
    path = folder / "train.spacy"
    contents = [
        zlib.compress(b"\xdd\xff\xff\xff\xff"),
        zlib.compress(b"\x81\xa4nope\xc0"),
        zlib.compress(b"\x80"),
        zlib.compress(bytes(128 << 20), 9),
        zlib.compress(b"\xc7\xff\x01" + b"x" * 255),
        b"\x78\x9c" + bytes(draw.randrange(256) for _ in range(200)),
    ]
    path.write_bytes(draw.choice(contents))
    return path


def deep_json(folder: Path, draw: random.Random, outside: Path) -> Path:
    path = folder / draw.choice(["train.jsonl", "train.json"])
    contents = ["[" * 100_000, '{"tokens":' * 50_000, '{"tokens": [' + "[" * 90_000, '[{"data":' * 60_000]
    path.write_text(draw.choice(contents))
    return path


def false_records(folder: Path, draw: random.Random, outside: Path) -> Path:
    records: list[Any] = [
        {"tokens": ["a"], "tags": [10**400]},
        {"tokens": "a", "tags": "O"},
        {"tokens": {"__class__": "os"}, "tags": ["O"]},
        {"text": "a", "spans": [{"start": -(10**30), "end": 10**30, "label": "x"}]},
        {"text": "a\ud800", "spans": []},
        {"text": "a", "spans": [{"start": 0, "end": 1, "label": "../../x\x00"}]},
        {"tokens": ["a"] * 3, "tags": ["O"] * 2},
        {"__reduce__": ["os.system", "touch x"]},
    ]
    path = folder / "train.jsonl"
    path.write_text(json.dumps(draw.choice(records)) + "\n")
    return path


def binary_text(folder: Path, draw: random.Random, outside: Path) -> Path:
    path = folder / "train.conll"
    path.write_bytes(draw.choice([b"\x7fELF\0\0", b"a\tO\n\0\tO\n", b"\xff\xfea\0", b"a\xff\tO\n"]))
    return path


CORPORA: list[Maker] = [
    pickled,
    code_as_dataset,
    dataset_elsewhere,
    false_dataset,
    false_docbin,
    deep_json,
    false_records,
    binary_text,
]
