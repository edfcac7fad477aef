"""How much an encoder drops while it is trained: a setting, and none by default."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from cfner.network.dropout import set_dropout
from cfner.store.open import open_model
from cfner.stream.stream import TaskStream
from cfner.tagger import ContinualTagger
from cfner.training.config import TrainingConfig
from cfner.training.environment import precision_used
from strangers import FAMILIES, make_checkpoint


def _twice(body: torch.nn.Module) -> bool:
    """Whether two passes in training mode give the same numbers."""
    ids = torch.arange(5, 15).reshape(2, 5)
    body.train()
    with torch.no_grad():
        passes = [body(input_ids=ids, attention_mask=torch.ones_like(ids)).logits for _ in range(2)]
    return torch.equal(*passes)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_rate_of_0_silences_every_dropout_of_a_family(family: str, tmp_path: Path) -> None:
    body: Any = open_model(make_checkpoint(tmp_path, family, ["O", "B-A", "I-A"])).network.body
    own = {name: value for name, value in body.config.to_dict().items() if "drop" in name}
    set_dropout(body, 0.4)
    assert not _twice(body)
    set_dropout(body, None)
    assert not _twice(body)
    set_dropout(body, 0.0)
    assert _twice(body)
    assert {name: value for name, value in body.config.to_dict().items() if "drop" in name} == own


def test_training_drops_nothing_unless_asked_and_the_papers_preset_what_the_encoder_came_with(
    tiny_settings: dict[str, Any], tiny_stream: TaskStream
) -> None:
    assert TrainingConfig().dropout == 0.0
    assert TrainingConfig.build({}, preset="paper").dropout is None
    weights = []
    for dropout in (0.0, None):
        tagger = ContinualTagger.from_pretrained(**{**tiny_settings, "epochs": 1, "dropout": dropout})
        tagger.learn(tiny_stream[0])
        weights.append(tagger.model.network.head.weight.detach().clone())
    assert not torch.equal(*weights)


@pytest.mark.parametrize("given", ["fp32", "bf16"])
def test_a_given_precision_is_used(given: Any) -> None:
    assert precision_used(TrainingConfig(precision=given)) == given


@pytest.mark.parametrize(("has", "expected"), [(True, "bf16"), (False, "fp32")])
def test_auto_takes_bf16_only_where_the_processor_has_it(
    has: bool, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: has)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
    assert precision_used(TrainingConfig()) == expected
