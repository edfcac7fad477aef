"""A model that knows no types yet: a pretrained encoder with an empty head."""

from __future__ import annotations

from cfner.model.encoders import load_encoder, recorded
from cfner.model.head import make_head
from cfner.model.network import Network
from cfner.model.saving import LoadedModel
from cfner.stream.labels import LabelSpace
from cfner.training.config import TrainingConfig


def fresh_model(config: TrainingConfig) -> LoadedModel:
    encoder = load_encoder(config.encoder, max_length=config.max_length)
    network = Network(encoder.body, make_head(config.head, encoder.hidden, 1, config.sigma))
    network.eval()
    name = recorded(config.encoder)
    return LoadedModel(
        network, encoder.tokenizer, LabelSpace.start(), encoder.max_length, name, config.overlap
    )
