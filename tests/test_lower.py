"""An encoder called in two parts says what it says as a whole, for every family."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from cfner.batches.encoding import encode
from cfner.batches.loader import inference_batches
from cfner.corpus.corpus import Corpus
from cfner.errors import ConfigError
from cfner.network.frozen_layers import CachedLowerLayers, SplitEncoder
from cfner.store.open import open_model
from strangers import FAMILIES, ORDERS, make_checkpoint


@pytest.mark.parametrize("family", FAMILIES)
def test_the_parts_make_the_whole(family: str, tmp_path: Path, tiny_corpus: Corpus) -> None:
    model = open_model(make_checkpoint(tmp_path / "m", family, ORDERS["BIO"]))
    sentences = [s.only([]) for s in tiny_corpus.train]
    text = encode(sentences, model.tokenizer, max_length=model.max_length)
    body = model.network.body
    weights = {key: value.clone() for key, value in body.state_dict().items()}
    parts = SplitEncoder(body, 1)
    kept = CachedLowerLayers(parts, text, torch.device("cpu"), batch_size=16)
    with torch.no_grad():
        for batch in inference_batches(text, batch_size=7):
            whole = model.network(batch)
            halves = model.network(batch, lower=kept)
            torch.testing.assert_close(halves.logits, whole.logits, atol=1e-5, rtol=1e-5)
            torch.testing.assert_close(halves.features, whole.features, atol=1e-5, rtol=1e-5)
    assert list(body.state_dict()) == list(weights)  # nothing was left lent


def test_frozen_layers_take_no_gradient(tmp_path: Path) -> None:
    body = open_model(make_checkpoint(tmp_path / "m", "bert", ORDERS["BIO"])).network.body
    SplitEncoder(body, 1).freeze()
    frozen = {name for name, parameter in body.named_parameters() if not parameter.requires_grad}
    assert any(".layer.0." in name for name in frozen) and any("embeddings" in name for name in frozen)
    assert not any(".layer.1." in name for name in frozen)


@pytest.mark.parametrize("lowest", [0, 2, 7])
def test_an_impossible_number_is_refused(lowest: int, tmp_path: Path) -> None:
    body = open_model(make_checkpoint(tmp_path / "m", "bert", ORDERS["BIO"])).network.body
    with pytest.raises(ConfigError, match="2 layers"):
        SplitEncoder(body, lowest)
