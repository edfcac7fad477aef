"""Weight fusion: a wrapper around any method."""

from __future__ import annotations

import copy
import math
from pathlib import Path

import pytest
import torch

from cfner.corpus.corpus import Corpus
from cfner.errors import ConfigError
from cfner.methods import create, method_class
from cfner.methods.fusion import refit
from cfner.methods.is3 import PROTOTYPES
from cfner.network.head import CosineHead
from cfner.stream.stream import TaskStream
from check_method import Subject, check_method


@pytest.mark.parametrize("name", ["extendner+fusion", "cfner+fusion"])
def test_method(name: str, tiny_encoder: Path, tiny_corpus: Corpus) -> None:
    check_method(name, tiny_encoder, tiny_corpus, variant=name != "extendner+fusion")


def test_it_has_the_parameters_of_both_and_the_parts_of_the_method() -> None:
    method = create("cfner+fusion", {"k": 1, "fusion_w": 0.3}, ["effect_o"])
    assert (method.parameters.k, method.parameters.fusion_w) == (1, 0.3)
    assert method.variant == "cfner+fusion without effect_o"
    assert list(method_class("cfner+fusion").parts) == list(method_class("cfner").parts)


def test_what_cannot_be_fused_is_refused() -> None:
    with pytest.raises(ConfigError, match="from scratch"):
        create("joint+fusion")
    with pytest.raises(ConfigError, match="no method 'cfnr'"):
        create("cfnr+fusion")


@pytest.mark.parametrize("w", [None, 0.25, 1.0])
def test_the_encoder_is_the_weighted_mean_of_old_and_new(
    w: float | None, tiny_encoder: Path, tiny_corpus: Corpus
) -> None:
    stream = TaskStream.split(tiny_corpus, first=2, per_step=1, min_mentions=1)
    weights = {}
    for name, parameters in (("extendner", {}), ("extendner+fusion", {"fusion_w": w, "refit": 0})):
        subject = Subject(name, tiny_encoder, stream, parameters=parameters)
        tagger = subject.tagger(epochs=2)
        tagger.learn(subject.step(0))
        old = copy.deepcopy(tagger.model.network.body.state_dict())
        tagger.learn(subject.step(1))
        weights[name] = tagger.model.network.body.state_dict()
    share = math.sqrt(1 / 3) if w is None else w
    for key, value in weights["extendner+fusion"].items():
        expected = (1 - share) * old[key] + share * weights["extendner"][key]
        torch.testing.assert_close(value, expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("name", ["own-other+fusion", "seq-star+fusion"])
def test_a_first_step_of_the_methods_own_is_as_without_it(
    name: str, tiny_encoder: Path, tiny_stream: TaskStream
) -> None:
    learned = {}
    for method in (name, name.removesuffix("+fusion")):
        subject = Subject(method, tiny_encoder, tiny_stream)
        tagger = subject.tagger(epochs=1)
        tagger.learn(subject.step(0))
        learned[method] = tagger.model.network.state_dict()
    first, second = learned.values()
    torch.testing.assert_close(first, second)


def test_what_a_method_keeps_is_of_the_fused_network(tiny_encoder: Path, tiny_stream: TaskStream) -> None:
    kept = []
    for weight in (0.0, 50.0):
        fused = {"fusion_w": 0.0, "refit": 0, "distill_weight": weight}
        subject = Subject("is3+fusion", tiny_encoder, tiny_stream, parameters=fused)
        tagger = subject.tagger(epochs=1)
        for number in (0, 1):
            tagger.learn(subject.step(number))
        kept.append(tagger.model.network.parts[PROTOTYPES])
    # with a weight of 0 the encoder is the first step's, however the second was trained
    torch.testing.assert_close(*kept)


def test_refitting_moves_the_given_rows_alone_and_fits_better() -> None:
    torch.manual_seed(0)
    features, targets = torch.randn(200, 8), torch.randint(0, 4, (200,))

    class Bare:
        head = CosineHead(8, 4)

    before = {key: value.clone() for key, value in Bare.head.state_dict().items()}
    loss = torch.nn.functional.cross_entropy(Bare.head(features), targets)
    refit(Bare, features, targets, (2, 3), 20)  # type: ignore[arg-type]
    after = Bare.head.state_dict()
    assert torch.equal(after["weight"][:2], before["weight"][:2])
    assert torch.equal(after["sigma"], before["sigma"])
    assert not torch.equal(after["weight"][2:], before["weight"][2:])
    assert torch.nn.functional.cross_entropy(Bare.head(features), targets) < loss
    assert Bare.head.sigma.requires_grad


def test_the_command_line_lists_and_shows_it() -> None:
    from typer.testing import CliRunner

    from cfner.cli.main import app

    assert "NAME+fusion" in CliRunner().invoke(app, ["methods"]).stdout
    shown = CliRunner().invoke(app, ["methods", "fusion"]).stdout
    assert "Weight fusion" in shown and "fusion_w" in shown
    assert "fusion_w" in CliRunner().invoke(app, ["methods", "cfner+fusion"]).stdout
