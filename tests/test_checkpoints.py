"""Somebody's checkpoint, of any family and label order, is taken over exactly, and learns on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from cfner.batches.loader import inference_batches
from cfner.corpus.corpus import Corpus
from cfner.errors import ModelError
from cfner.interop.models import open_model
from cfner.stream.stream import Step
from cfner.tagger import ContinualTagger
from cfner.training.preparation import encode_slice, grow, roles_of
from cfner.training.teacher import ask_teacher
from strangers import FAMILIES, ORDERS, make_checkpoint

CASES = [(family, order) for family in FAMILIES for order in ORDERS if family == "bert" or order == "odd"]
CASES += [("roberta", "BIOES"), ("distilbert", "IOB1"), ("electra", "BIO")]


@pytest.mark.parametrize(("family", "order"), CASES)
def test_before_training_a_grown_model_says_of_old_labels_what_the_checkpoint_said(
    family: str, order: str, tmp_path: Path, tiny_corpus: Corpus
) -> None:
    from transformers import AutoModelForTokenClassification

    folder = make_checkpoint(tmp_path / "m", family, ORDERS[order])
    stock = AutoModelForTokenClassification.from_pretrained(folder).eval()
    model = open_model(folder)
    labels = model.labels.grown(["person", "dish", "city"])
    assert labels.labels[: len(ORDERS[order])] == tuple(ORDERS[order])
    sentences = [s.only(["person", "dish"]) for s in tiny_corpus.train]
    data = encode_slice(sentences, labels, model.tokenizer, max_length=model.max_length, overlap=None)
    roles = roles_of(labels, ["person", "dish"])
    network = model.network
    teacher = ask_teacher(
        network, data.text, data.gold, roles, batch_size=16, keep_features=False, keep_layers=False
    )
    grow(network, teacher, data.gold, labels)
    assert network.head.labels == len(labels) > len(ORDERS[order])
    with torch.no_grad():
        for batch in inference_batches(data.text, batch_size=16):
            theirs = stock(input_ids=batch.input_ids, attention_mask=batch.attention_mask).logits
            ours = network(batch).logits[:, : len(ORDERS[order])]
            assert torch.equal(ours, theirs[batch.rows, batch.positions])


@pytest.mark.parametrize(
    ("family", "order"),
    [("bert", "IOB1"), ("roberta", "BIOES"), ("distilbert", "odd"), ("modernbert", "BIO")],
)
def test_a_checkpoint_learns_new_types_and_is_saved_with_its_origin(
    family: str, order: str, tmp_path: Path, tiny_corpus: Corpus
) -> None:
    folder = make_checkpoint(tmp_path / "m", family, ORDERS[order])
    tagger = ContinualTagger.open(folder, epochs=2, batch_size=16)
    before = tagger.predict("ada saw the heron in oslo").spans
    tagger.save(tmp_path / "out")
    known = tagger.types
    train = tuple(s.only(["person", "dish"]) for s in tiny_corpus.train)
    tagger.learn(Step(types=("dish", "person"), train=train, known=known))
    tagger.save(tmp_path / "out")
    assert set(tagger.types) == {"city", "animal", "dish", "person"}
    first = ContinualTagger.load(tmp_path / "out", 1)
    assert first.predict("ada saw the heron in oslo").spans == before
    facts = json.loads((tmp_path / "out/steps/0001/step.json").read_text())
    assert (facts["kind"], facts["origin"]) == ("import", str(folder))
    again = ContinualTagger.load(tmp_path / "out")
    text = "alan turing ate soup in cape town"
    assert again.predict(text) == tagger.predict(text)


def test_an_encoder_without_a_head_is_no_ner_model(tiny_encoder: Path, tmp_path: Path) -> None:
    from transformers import AutoModel

    AutoModel.from_pretrained(tiny_encoder).save_pretrained(tmp_path)
    for file in tiny_encoder.glob("tokenizer*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    with pytest.raises(ModelError, match=r"no token-classification head.*cfner train"):
        open_model(tmp_path)


def test_labels_without_an_o_are_refused_with_the_place(tmp_path: Path) -> None:
    make_checkpoint(tmp_path / "m", "bert", ["LABEL_0", "LABEL_1", "LABEL_2"])
    with pytest.raises(ModelError, match="None of these labels is 'O'"):
        open_model(tmp_path / "m")


def test_a_step_of_a_checkpoint_is_refused(tmp_path: Path) -> None:
    make_checkpoint(tmp_path / "m", "bert", ORDERS["BIO"])
    with pytest.raises(ModelError, match="without steps"):
        open_model(tmp_path / "m", 2)


def test_pickled_weights_are_not_opened(tmp_path: Path) -> None:
    folder = make_checkpoint(tmp_path / "m", "bert", ORDERS["BIO"])
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(ModelError, match="safetensors"):
        open_model(folder)


def test_agreement_with_the_old_model_is_part_of_the_choice_of_epoch(
    two_steps: Path, tiny_corpus: Corpus
) -> None:
    tagger = ContinualTagger.load(two_steps, 1, select_on="new+old", epochs=3)
    current = ("dish", "person")
    step = Step(
        types=current,
        train=tuple(s.only(current) for s in tiny_corpus.train),
        dev=tuple(s.only(current) for s in tiny_corpus.dev),
        known=tagger.types,
    )
    history = tagger.learn(step).history
    for figures in history:
        new, old = figures["dev_f1"], figures["dev_agreement"]
        assert figures["dev_choice"] == pytest.approx(2 * new * old / (new + old) if new + old else 0)
    assert 0 < history[0]["dev_agreement"] <= 100


def test_replayed_sentences_teach_old_types(two_steps: Path, tiny_corpus: Corpus) -> None:
    """With the distillation weighted to nothing, only replay keeps the old types."""
    current = ("dish", "person")

    def old_f1(replay: tuple[Any, ...]) -> float:
        tagger = ContinualTagger.load(two_steps, 1, method="extendner", parameters={"lambda_base": 0.0})
        known = tagger.types
        step = Step(
            types=current,
            train=tuple(s.only(current) for s in tiny_corpus.train),
            known=known,
            replay=tuple(s.only(known) for s in replay),
        )
        tagger.learn(step)
        scores = tagger.evaluate(tiny_corpus.test)
        return sum(scores.f1_of[type_] for type_ in known) / len(known)

    assert old_f1(tiny_corpus.train[:30]) > old_f1(()) + 10
