"""A model that knows no types yet: a pretrained encoder with an empty head."""

from __future__ import annotations

from cfner.network.head import make_head
from cfner.network.network import Network
from cfner.store.model_files import LoadedModel
from cfner.store.pretrained import load_encoder, recorded
from cfner.stream.labels import LabelSpace
from cfner.training.config import TrainingConfig


def new_model(config: TrainingConfig) -> LoadedModel:
    encoder = load_encoder(config.encoder, max_length=config.max_length)
    network = Network(encoder.body, make_head(config.head, encoder.hidden, 1, config.sigma))
    network.eval()
    name = recorded(config.encoder)
    return LoadedModel(
        network, encoder.tokenizer, LabelSpace.start(), encoder.max_length, name, config.overlap
    )
