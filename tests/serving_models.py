"""Model folders to serve: made in no time, with heads drawn at random, so that they find something."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from cfner.evaluation.measured import Measured
from cfner.evaluation.scores import Counts, Scores
from cfner.files.json_files import write_json
from cfner.network.head import CosineHead
from cfner.network.network import Network
from cfner.store.model_files import LoadedModel, write_model
from cfner.store.model_folder import ModelFolder, StoredStep
from cfner.store.pretrained import load_encoder
from cfner.stream.labels import LabelSpace
from cfner.stream.sentence_set import SentenceSet

TEXTS = [
    "today ada saw the heron in lisbon",
    "a curry with alan turing and emmy",
    "the red fox of quito went to the river",
    "mr grace went to cape town with a stew, 12.50 all in all",
    "",
    "naïve 李 said: 😀 zero\u200bwidth",
    "old kurt " * 40,
]


def add_step(
    encoder: Path, folder: Path, types: Sequence[str], *, seed: int, scored: bool = True
) -> StoredStep:
    """A step that knows ``types``; the last of them is the one that it learned."""
    found = load_encoder(str(encoder))
    labels = LabelSpace.start().grown(types)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        head = CosineHead(found.hidden, len(labels), sigma=8.0)
    network = Network(found.body, head)
    model = LoadedModel(network, found.tokenizer, labels, found.max_length, "tiny", None)

    def write(path: Path) -> None:
        write_model(path, model)
        facts = {"types": types[-1:], "known": types[:-1], "name": f"learn {types[-1]}", "parent": None}
        learned = {"kind": "learn", "config": {"method": "cfner"}, "data": {"train": {"sentences": 9}}}
        write_json(path / "step.json", facts | learned | {"created": "2030-01-02T03:04:05+00:00"})
        if scored:
            counts = {t: Counts(max(90 - 11 * i, 0), 100, 100) for i, t in enumerate(reversed(types))}
            on = SentenceSet("5" * 64, 300, dict.fromkeys(types, 100), "held-out.conll")
            write_json(path / "scores.json", Measured(Scores(tuple(types), counts), on).to_json())

    return ModelFolder(folder).add(write)


def make_model(encoder: Path, folder: Path, types: Sequence[str], *, unscored: int | None = None) -> Path:
    """A folder with one step per type; the step ``unscored`` has no scores."""
    for number in range(1, len(types) + 1):
        add_step(encoder, folder, types[:number], seed=number, scored=number != unscored)
    return folder


def spoil(step: StoredStep) -> None:
    """Change one byte of a step's weights."""
    file = step.folder / "model.safetensors"
    raw = bytearray(file.read_bytes())
    raw[-1] ^= 1
    file.write_bytes(raw)
