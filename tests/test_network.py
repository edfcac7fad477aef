"""The network: what it says of a word depends on the word's own window alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cfner.batches.encoding import EncodedText, encode
from cfner.batches.loader import collate
from cfner.corpus.corpus import Corpus
from cfner.corpus.sentence import Sentence
from cfner.network.decoder import Decoder
from cfner.network.head import HeadKind, make_head
from cfner.network.inference import label_words, outputs
from cfner.network.network import Network
from cfner.network.probes import Features, LayerSums
from cfner.store.pretrained import load_encoder
from cfner.stream.labels import LabelSpace

KINDS: list[HeadKind] = ["cosine", "linear"]


@pytest.fixture(scope="module")
def text(tiny_encoder: Path, tiny_corpus: Corpus) -> EncodedText:
    long = Sentence(("the", "Boston", "7") * 40)
    sentences = [*tiny_corpus.train[:20], Sentence(("in",)), long]
    return encode(sentences, load_encoder(str(tiny_encoder)).tokenizer, max_length=40)


@pytest.fixture(scope="module", params=KINDS)
def network(request: pytest.FixtureRequest, tiny_encoder: Path) -> Network:
    encoder = load_encoder(str(tiny_encoder))
    torch.manual_seed(1)
    built = Network(encoder.body, make_head(request.param, encoder.hidden, 9))
    built.eval()
    return built


@torch.no_grad()
def logits_by_ref(network: Network, text: EncodedText, windows: list[int]) -> dict[int, torch.Tensor]:
    batch = collate(text, windows)
    return dict(zip(batch.refs.tolist(), network(batch).logits, strict=True))


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_sentence_gets_the_same_logits_alone_and_in_any_batch(
    network: Network, text: EncodedText, data: st.DataObject
) -> None:
    windows = data.draw(st.lists(st.integers(0, text.windows - 1), min_size=1, unique=True))
    together = logits_by_ref(network, text, windows)
    for window in windows:
        for ref, alone in logits_by_ref(network, text, [window]).items():
            torch.testing.assert_close(together[ref], alone, atol=1e-5, rtol=0)


def test_batch_size_and_order_do_not_change_predictions(network: Network, text: EncodedText) -> None:
    decoder = Decoder(LabelSpace.start().grown(["a", "b", "c", "d"]))
    ids, scores = label_words(network, text, decoder, batch_size=1)
    for batch_size in (3, 64):
        again, scores_again = label_words(network, text, decoder, batch_size=batch_size)
        torch.testing.assert_close(scores, scores_again, atol=1e-5, rtol=0)
        assert torch.equal(ids, again)


def test_labels_are_chosen_over_whole_sentences_also_of_several_windows(
    network: Network, text: EncodedText
) -> None:
    decoder = Decoder(LabelSpace.start().grown(["a", "b", "c", "d"]))
    columns = torch.empty(text.words, 9)
    for batch, out in outputs(network, text, batch_size=1):
        columns[batch.refs] = out.logits
    lengths = np.diff(text.sentence_bounds).tolist()
    whole = decoder.labels_of(columns, lengths)
    assert decoder.broken_alone(columns, lengths)[-1] == len(lengths) - 1  # the long one has to be searched
    ids, _ = label_words(network, text, decoder, batch_size=3)
    assert torch.equal(ids, whole)


def test_there_is_one_row_per_word(network: Network, text: EncodedText) -> None:
    batch = collate(text, np.arange(text.windows))
    out = network(batch, [Features(), LayerSums()])
    assert out.logits.shape == (text.words, 9)
    assert out.features.shape == (text.words, network.head.hidden)
    assert torch.equal(out.readings["features"][0], out.features)
    over_units, over_words = out.readings["layer_sums"]
    layers = network.body.config.num_hidden_layers + 1  # the embeddings' output is the first
    assert over_units.shape == (text.words, layers)
    assert over_words.shape == (text.windows, layers, network.head.hidden)
    torch.testing.assert_close(over_units[:, -1], out.features.sum(1))  # BERT: the last hidden state


def test_features_are_what_the_architecture_feeds_to_its_classifier(
    tiny_encoder: Path, text: EncodedText
) -> None:
    """Oracle: the whole Hugging Face model, its linear layer put back on our features."""
    from transformers import AutoModelForTokenClassification

    whole = AutoModelForTokenClassification.from_pretrained(tiny_encoder).eval()
    encoder = load_encoder(str(tiny_encoder))
    ours = Network(encoder.body, make_head("linear", encoder.hidden, 2)).eval()
    ours.head.load_state_dict(whole.classifier.state_dict())
    batch = collate(text, [0, 3, 7])
    with torch.no_grad():
        theirs = whole(input_ids=batch.input_ids, attention_mask=batch.attention_mask).logits
        torch.testing.assert_close(ours(batch).logits, theirs[batch.rows, batch.positions], atol=1e-6, rtol=0)


def test_inference_restores_the_mode(network: Network, text: EncodedText) -> None:
    network.train()
    for _ in outputs(network, text, batch_size=8):
        assert not network.training
    assert network.training
    network.eval()


def test_a_frozen_copy_says_the_same_and_does_not_follow(tiny_encoder: Path, text: EncodedText) -> None:
    encoder = load_encoder(str(tiny_encoder))
    student = Network(encoder.body, make_head("cosine", encoder.hidden, 9)).eval()
    teacher = student.frozen_copy()
    before = logits_by_ref(student, text, [0, 1])
    with torch.no_grad():
        for parameter in student.parameters():
            parameter.add_(0.1)
    after = logits_by_ref(teacher, text, [0, 1])
    assert all(torch.equal(after[ref], value) for ref, value in before.items())
    assert not any(parameter.requires_grad for parameter in teacher.parameters())


def test_in_bf16_on_a_processor_attention_stays_in_32_bits(
    network: Network, text: EncodedText, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same attention: without autocast not a bit differs. Afterwards the encoder is as before."""
    usual = network.body.config._attn_implementation
    plain = logits_by_ref(network, text, [0, 1, 21])  # of different lengths: two are padded
    seen = []
    compute = torch.nn.functional.scaled_dot_product_attention

    def watched(query: torch.Tensor, *more: object, **named: object) -> torch.Tensor:
        seen.append(query.dtype)
        return compute(query, *more, **named)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", watched)
    with network.ready_for((), bf16=True):
        for ref, logits in logits_by_ref(network, text, [0, 1, 21]).items():
            assert torch.equal(logits, plain[ref])
        seen.clear()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            network.body(input_ids=torch.tensor([[2, 5, 3]]))
    assert seen and set(seen) == {torch.float32}
    assert network.body.config._attn_implementation == usual
