"""TBCL: its losses beside a slow transcription, the copy that it reads, and what its paper claims."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from cfner.batches.encoding import encode
from cfner.batches.loader import collate
from cfner.corpus.corpus import Corpus
from cfner.corpus.sentence import Sentence
from cfner.methods import create
from cfner.methods.tbcl import ERASED
from cfner.stream.stream import TaskStream
from cfner.tagger import ContinualTagger
from cfner.training.loop import BatchLosses
from check_method import Subject, prepared_step


@pytest.fixture(scope="module")
def stream(tiny_corpus: Corpus) -> TaskStream:
    return TaskStream.split(tiny_corpus, first=2, per_step=1, min_mentions=1)


def learned(encoder: Path, stream: TaskStream, **settings: float) -> ContinualTagger:
    beta = settings.pop("beta", 1.0)
    subject = Subject("tbcl", encoder, stream, parameters={"beta": beta})
    tagger = subject.tagger(**settings)
    for number in range(2):
        tagger.learn(subject.step(number))
    return tagger


@pytest.fixture(scope="module")
def tagger(tiny_encoder: Path, stream: TaskStream) -> ContinualTagger:
    """After two steps. Tests may read it, not train it."""
    return learned(tiny_encoder, stream, epochs=6)


def masked_by_hand(tagger: ContinualTagger, sentences: tuple[Sentence, ...]) -> Iterator[list[int]]:
    """The subwords of each sentence, those of its entities masked, word by word."""
    tokenizer = tagger.model.tokenizer
    for sentence in sentences:
        hidden = {word for span in sentence.spans for word in range(span.start, span.end)}
        ids = [tokenizer.cls_token_id]
        for number, word in enumerate(sentence.words):
            own = tokenizer([word], is_split_into_words=True, add_special_tokens=False)["input_ids"]
            ids += [tokenizer.mask_token_id] * len(own) if number in hidden else own
        yield [*ids, tokenizer.sep_token_id]


def test_in_the_copy_exactly_the_words_of_new_entities_are_masked(tagger: ContinualTagger) -> None:
    prepared = prepared_step(tagger)
    data, copy = prepared.data, prepared.views[ERASED].data
    assert any(sentence.spans for sentence in data.sentences)
    for window, ids in enumerate(masked_by_hand(tagger, data.sentences)):
        start, end = copy.text.window_bounds[window : window + 2]
        assert copy.text.input_ids[start:end].tolist() == ids
    assert set(copy.gold.tolist()) == {prepared.roles.other}


def test_a_word_is_masked_in_every_window_that_reads_it(tagger: ContinualTagger) -> None:
    words = tuple(f"w{number}" for number in range(30))
    text = encode([Sentence(words)], tagger.model.tokenizer, max_length=20, overlap=8)
    hidden = np.zeros(30, dtype=bool)
    hidden[[3, 11, 12, 29]] = True
    masked = text.masked(hidden)
    assert text.windows > 3
    changed = masked.input_ids == text.mask_id
    assert {int(ref) for ref in text.subword_refs[changed]} == {3, 11, 12, 29}
    assert not changed[~np.isin(text.subword_refs, [3, 11, 12, 29])].any()
    assert changed[np.isin(text.subword_refs, [3, 11, 12, 29])].all()
    seen_twice = [ref for ref in range(30) if (text.subword_refs == ref).sum() > len(f"w{ref}")]
    assert seen_twice  # overlapping windows read the same words


def test_its_losses_are_rdps_on_both_and_the_distance_of_predictions(
    tagger: ContinualTagger, stream: TaskStream
) -> None:
    """Slowly: RDP by itself on the sentences, and on sentences whose subwords were masked beforehand."""
    prepared, network = prepared_step(tagger), tagger.model.network
    step = BatchLosses(network, network, prepared, tagger.config)
    windows = range(prepared.data.text.windows)
    ours, total = step.losses(collate(prepared.data.text, windows), 1)
    rdp = create("rdp").objective
    alone = {}
    outputs = {}
    for name, view in (("sentence", prepared), ("copy", prepared.views[ERASED])):
        batch = collate(view.data.text, windows)
        outputs[name] = network(batch)
        inputs = replace(view, views={}).inputs(network, batch, outputs[name], 1)
        terms = {term.name: term.weight * term(inputs).item() for term in rdp(_example()).terms}
        alone[name] = terms
        if name == "sentence":
            refs = batch.refs.tolist()
    assert sum(alone["copy"].values()) == pytest.approx(ours["erased_copy"].item(), rel=1e-5)
    distances = []
    p, q = (outputs[name].logits.softmax(1).tolist() for name in ("sentence", "copy"))
    for row, ref in enumerate(refs):
        target = int(prepared.targets.labels[ref])
        if int(prepared.data.gold[ref]) == prepared.roles.other and target in prepared.roles.old:
            distances.append(sum((a - b) ** 2 for a, b in zip(p[row], q[row], strict=True)))
    assert distances
    assert ours["consistency"].item() == pytest.approx(np.mean(distances), rel=1e-4)
    expected = sum(alone["sentence"].values()) + sum(alone["copy"].values()) + np.mean(distances)
    assert total.item() == pytest.approx(expected, rel=1e-5)


def _example() -> object:
    from cfner.methods.context import ExampleContext

    return ExampleContext(2, 1)


def test_old_entities_come_to_depend_less_on_the_new_ones_beside_them(
    tiny_encoder: Path, stream: TaskStream
) -> None:
    """What the paper claims."""
    apart = {}
    for beta in (0.0, 30.0):
        tagger = learned(tiny_encoder, stream, epochs=6, beta=beta)
        network, prepared = tagger.model.network, prepared_step(tagger)
        batch = collate(prepared.data.text, range(prepared.data.text.windows))
        with torch.no_grad():
            losses, _ = BatchLosses(network, network, prepared, tagger.config).losses(batch, 1)
        apart[beta] = losses["consistency"].item()
    assert 0 < apart[30.0] < 0.7 * apart[0.0]
