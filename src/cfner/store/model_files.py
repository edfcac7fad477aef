"""Writes a network with its tokenizer and labels into a step folder, and reads it back bit-identically."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from cfner.errors import ModelError
from cfner.files.json_files import read_json, write_json
from cfner.network.encoders import prepare_tokenizer, strip_classifier, usable_length
from cfner.network.experts import ExpertNetwork
from cfner.network.head import make_head
from cfner.network.network import Network
from cfner.network.prediction import TaggingModel
from cfner.store.expert_files import (
    WEIGHTS,
    ExpertFacts,
    build_experts,
    expert_file,
    experts_in,
    key_of,
    place_of,
)
from cfner.store.model_folder import StoredStep, damaged
from cfner.store.step_files import LABELS, read_labels, stored_calibration
from cfner.store.untrusted import (
    WITHOUT_MEMORY,
    first_not_finite,
    refuse_depth,
    refuse_other_numbers,
    refuse_other_shapes,
    refuse_requests,
    requests_in,
    shapes_in,
)
from cfner.stream.labels import LabelSpace

# settings that define a model: fixed when it is made, not changed by learning
FIXED_AT_CREATION = frozenset({"encoder", "head", "sigma", "max_length", "overlap"})


Held = TypeVar("Held")


@dataclass(frozen=True)
class LoadedModel(TaggingModel):
    """A model that runs in torch, and can learn."""

    network: Network


def write_model(folder: Path, model: LoadedModel) -> None:
    """Write weights, architecture, tokenizer and labels into ``folder``."""
    network = model.network
    body: Any = network.body
    experts = ExpertFacts.of(network) if isinstance(network, ExpertNetwork) else None
    # contiguous copies: safetensors cannot store tied or sliced tensors
    weights = {key: value.detach().cpu().contiguous() for key, value in network.state_dict().items()}
    if (broken := first_not_finite(weights)) is not None:
        raise ModelError(
            f"The weight {broken} is not finite, so the model is not saved.",
            remedy="Return to the last saved step and learn again with lower rates (lr_encoder, lr_head).",
        )
    files: dict[str, dict[str, Tensor]] = {}
    for key, value in weights.items():
        file, name = place_of(key, 0 if experts is None else len(experts.experts))
        files.setdefault(file, {})[name] = value
    for file, content in files.items():
        save_file(content, folder / file, metadata={"format": "pt"})
    body.config.to_json_file(folder / "config.json", use_diff=True)
    _without_requests(folder / "config.json")
    write_tokenizer(model.tokenizer, folder)
    _without_requests(folder / "tokenizer_config.json")
    write_json(
        folder / LABELS,
        {
            **model.labels.to_json(),
            "head": network.head.kind,
            **(
                {"head_blocks": network.head.blocks}
                if experts is None and len(network.head.blocks) > 1
                else {}
            ),
            **({} if experts is None else {"experts": experts.model_dump()}),
            **({"parts": {k: list(v.shape) for k, v in network.parts.items()}} if network.parts else {}),
            **({} if model.calibration is None else {"calibration": model.calibration.to_json()}),
            "max_length": model.max_length,
            "overlap": model.overlap,
            "encoder": model.encoder,
        },
    )


def write_tokenizer(tokenizer: Any, folder: Path) -> None:
    try:
        tokenizer.save_pretrained(folder)
    except OSError:
        raise
    except Exception as error:  # the tokenizers library raises a bare Exception when a disk is full
        raise OSError(str(error)) from error


def _without_requests(path: Path) -> None:
    """Remove references to code or files that published encoders may contain: cfner never uses them."""
    facts = read_json(path)
    if asked := requests_in(facts):
        write_json(path, {key: value for key, value in facts.items() if key not in asked})


def read_model(step: StoredStep) -> LoadedModel:
    """Read a step back; a damaged step is an error, never a model with wrong weights."""
    try:
        return _read(step)
    except ModelError:
        raise
    # json, safetensors, torch, tokenizers and transformers raise any kind of exception for a damaged file
    except Exception as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise damaged(f"The step cannot be loaded: {first[:300]}", step.folder) from error


def _read(step: StoredStep) -> LoadedModel:
    from transformers import AutoConfig, AutoTokenizer
    from transformers.initialization import no_init_weights

    labels, facts, folder = read_labels(step), step.read_json(LABELS), step.folder
    experts = experts_in(facts, labels)
    count = 0 if experts is None else len(experts.experts)
    files = [expert_file(number) for number in range(max(1, count))]
    shapes = {name: shape for file in files for name, shape in _keyed(shapes_in(folder / file), file, count)}
    refuse_requests(folder, shapes)
    config = AutoConfig.from_pretrained(str(folder), trust_remote_code=False, local_files_only=True)
    refuse_depth(config, shapes, folder)
    with WITHOUT_MEMORY:
        refuse_other_shapes(_build(config, facts, labels, experts), shapes, folder / WEIGHTS)
    with no_init_weights():  # all of them are replaced, and drawing random ones takes as long as reading
        # the saved dtype may be narrower, and would round the weights
        network = _build(config, facts, labels, experts).float()
    weights = {name: value for file in files for name, value in _keyed(load_file(folder / file), file, count)}
    refuse_other_numbers(network, weights, folder / WEIGHTS)
    if (broken := first_not_finite(weights)) is not None:
        raise damaged(f"The weight '{broken}' is not finite.", folder / WEIGHTS)
    network.load_state_dict(weights)
    network.eval()
    tokenizer = prepare_tokenizer(
        AutoTokenizer.from_pretrained(str(folder), trust_remote_code=False, local_files_only=True)
    )
    max_length, overlap = int(facts["max_length"]), facts["overlap"]
    if max_length < 3 or (overlap is not None and not 0 <= int(overlap) < max_length):
        raise ValueError(f"windows of {max_length} subwords cannot overlap by {overlap}")
    usable_length(network.body, tokenizer, max_length)
    encoder, calibration = str(facts["encoder"]), stored_calibration(step)
    return LoadedModel(network, tokenizer, labels, max_length, encoder, overlap, calibration)


def _keyed(content: Mapping[str, Held], file: str, experts: int) -> Iterator[tuple[str, Held]]:
    """The content of a file, by the network's keys."""
    for name, held in content.items():
        yield key_of(file, name, experts), held


def _build(config: Any, facts: Mapping[str, Any], labels: LabelSpace, experts: ExpertFacts | None) -> Network:
    from transformers import AutoModelForTokenClassification

    body = AutoModelForTokenClassification.from_config(config, trust_remote_code=False)
    hidden = strip_classifier(body).in_features
    if experts is not None:
        return build_experts(body, facts["head"], hidden, labels, experts)
    blocks = facts.get("head_blocks")
    head = make_head(
        facts["head"], hidden, len(labels), blocks=blocks, groups=labels.groups, other=labels.other_id
    )
    return Network(body, head, {name: torch.zeros(shape) for name, shape in _parts_in(facts).items()})


def _parts_in(facts: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """The validated shapes of the tensors that methods stored in the network, by name."""
    found = dict(facts.get("parts", {}))
    for name, shape in found.items():
        sizes = shape if isinstance(shape, list) else [None]
        if not name.isidentifier() or not all(type(size) is int and size >= 0 for size in sizes):
            raise ValueError(f"a part {name!r} of shape {shape!r}")
    return {name: tuple(shape) for name, shape in found.items()}
