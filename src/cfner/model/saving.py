"""A network with its tokenizer and labels, written into a step folder and read back bit for bit."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from cfner.errors import CfnerError, ModelError
from cfner.model.encoders import prepare_tokenizer, strip_classifier
from cfner.model.head import LinearHead, make_head
from cfner.model.network import Network
from cfner.model.store import StoredStep, write_json
from cfner.stream.labels import LabelSpace

WEIGHTS = "model.safetensors"
# settings that say what a model is: fixed when it is made, not when it learns on
OF_THE_MODEL = frozenset({"encoder", "head", "sigma", "max_length", "overlap"})
# what reading a damaged file may raise, in json, safetensors, torch and transformers
_DAMAGE = (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, SafetensorError)


@dataclass(frozen=True)
class LoadedModel:
    network: Network
    tokenizer: Any
    labels: LabelSpace
    max_length: int
    encoder: str
    overlap: int | None


def write_model(folder: Path, model: LoadedModel) -> None:
    """Write weights, architecture, tokenizer and labels into ``folder``."""
    network = model.network
    body: Any = network.body
    # contiguous copies: tied or sliced tensors cannot be stored as they are
    weights = {key: value.detach().cpu().contiguous() for key, value in network.state_dict().items()}
    save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})
    body.config.to_json_file(folder / "config.json", use_diff=True)
    model.tokenizer.save_pretrained(folder)
    write_json(
        folder / "labels.json",
        {
            **model.labels.to_json(),
            "head": network.head.kind,
            **({"head_blocks": network.head.blocks} if isinstance(network.head, LinearHead) else {}),
            "max_length": model.max_length,
            "overlap": model.overlap,
            "encoder": model.encoder,
        },
    )


def read_model(step: StoredStep) -> LoadedModel:
    """Read a step back; a damaged one is an error, never a model with other weights."""
    from transformers import AutoConfig, AutoModelForTokenClassification, AutoTokenizer

    facts = step.read_json("labels.json")
    where = str(step.folder)
    try:
        labels = LabelSpace.from_json(facts)
        config = AutoConfig.from_pretrained(where, trust_remote_code=False, local_files_only=True)
        body = AutoModelForTokenClassification.from_config(config, trust_remote_code=False)
        hidden = strip_classifier(body).in_features
        head = make_head(facts["head"], hidden, len(labels), blocks=facts.get("head_blocks"))
        network = Network(body, head)
        network.load_state_dict(load_file(step.folder / WEIGHTS))
        tokenizer = prepare_tokenizer(
            AutoTokenizer.from_pretrained(where, trust_remote_code=False, local_files_only=True)
        )
        limits = int(facts["max_length"]), facts["overlap"]
        encoder = str(facts["encoder"])
    except (*_DAMAGE, CfnerError) as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelError(
            f"The step cannot be loaded: {first}", where=where, remedy="Restore the step from a copy."
        ) from error
    network.eval()
    return LoadedModel(network, tokenizer, labels, limits[0], encoder, limits[1])
