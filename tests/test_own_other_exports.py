"""Models with own Others, also with types merged and taken away, in the hands of others: stock transformers,
ONNX, spaCy and the server find what cfner finds.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

import oracle_groups as slow
from cfner.corpus.corpus import Corpus
from cfner.interop.export import export_model
from cfner.interop.hf_export import folded
from cfner.network.head import CosineHead, HeadKind, make_head
from cfner.network.prediction import Prediction, tag
from cfner.practice.diff.diff import diff_models
from cfner.practice.history.relabel import forget, merge, rename
from cfner.serving.pipeline import Pipeline
from cfner.store.open import open_model
from reading import word_by_word

CHANGES: dict[str, list[tuple[Any, ...]]] = {
    "as learned": [],
    "merged and renamed": [(merge, ["person", "animal"], "being"), (rename, "city", "place")],
    "an own type taken away": [(forget, ["person"])],
    "a type of the first step taken away": [(forget, ["animal"])],
}


@pytest.fixture(scope="module", params=["own_others", "checkpoint_and_own"])
def base(request: pytest.FixtureRequest) -> Path:
    return Path(request.getfixturevalue(request.param))


@pytest.fixture(scope="module", params=list(CHANGES))
def model(base: Path, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = Path(shutil.copytree(base, tmp_path_factory.mktemp("changed") / "model"))
    for change, *arguments in CHANGES[request.param]:
        change(folder, *arguments)
    return folder


def triples(found: list[Prediction]) -> list[list[tuple[str, Any, Any]]]:
    return [[(e.type, e.start, e.end) for e in prediction.entities] for prediction in found]


def by_cfner(model: Path, corpus: Corpus) -> list[list[tuple[str, Any, Any]]]:
    return triples(tag(open_model(model), list(corpus.test)))


def characters(found: list[tuple[str, Any, Any]]) -> set[tuple[str, int]]:
    """Which of them are of which type."""
    return {(type_, at) for type_, start, end in found for at in range(start, end)}


def texts(corpus: Corpus) -> list[str]:
    return [" ".join(sentence.words) for sentence in corpus.test]


def test_a_stock_pipeline_finds_the_same(model: Path, tiny_corpus: Corpus, tmp_path: Path) -> None:
    from transformers import pipeline

    export_model(model, tmp_path / "hf")
    ours = triples(tag(word_by_word(open_model(model)), list(tiny_corpus.test)))
    find = pipeline("token-classification", str(tmp_path / "hf"), aggregation_strategy="first", device="cpu")
    theirs = [
        [(e["entity_group"], e["start"], e["end"]) for e in found] for found in find(texts(tiny_corpus))
    ]
    labels = open_model(model).labels
    if set(labels.silent) - set(labels.unheard):  # it can only say O where a group of several falls silent
        for one, other in zip(ours, theirs, strict=True):
            assert characters(other) <= characters(one)
    else:
        assert theirs == ours
    assert {type_ for found in theirs for type_, _, _ in found} <= set(labels.types)
    card = (tmp_path / "hf/README.md").read_text()
    assert (
        "in which `O` shrinks with every type" in card
        and "X" not in card.split("## Where")[0].split("types in")[1]
    )


def test_a_stock_export_opened_again_is_one_group(model: Path, tiny_corpus: Corpus, tmp_path: Path) -> None:
    export_model(model, tmp_path / "hf")
    original, again = open_model(model), open_model(tmp_path / "hf")
    assert not again.labels.has_own_others and again.labels.other_id == original.labels.other_id
    assert again.labels.types == original.labels.types
    assert again.labels.silent == original.labels.silent
    if not set(original.labels.silent) - set(original.labels.unheard):
        assert by_cfner(tmp_path / "hf", tiny_corpus) == by_cfner(model, tiny_corpus)
    export_model(tmp_path / "hf", tmp_path / "twice")
    assert by_cfner(tmp_path / "twice", tiny_corpus) == by_cfner(tmp_path / "hf", tiny_corpus)


def test_onnx_finds_the_same_with_the_same_scores(base: Path, tiny_corpus: Corpus, tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    pytest.importorskip("onnxruntime")
    from cfner.interop.onnx import read_onnx

    model = Path(shutil.copytree(base, tmp_path / "model"))
    forget(model, ["person"])
    export_model(model, tmp_path / "onnx", "onnx")
    original, exported = open_model(model), read_onnx(tmp_path / "onnx")
    assert exported.labels == original.labels and exported.labels.has_own_others
    ours, theirs = (tag(one, list(tiny_corpus.test)) for one in (original, exported))
    assert triples(ours) == triples(theirs)
    for one, other in zip(ours, theirs, strict=True):
        for a, b in zip(one.entities, other.entities, strict=True):
            assert a.score == pytest.approx(b.score, abs=1e-4)


def test_spacy_finds_the_same(model: Path, tiny_corpus: Corpus) -> None:
    spacy = pytest.importorskip("spacy")
    nlp = spacy.blank("en")
    nlp.add_pipe("cfner", config={"model": str(model)})
    found = [[(e.label_, e.start_char, e.end_char) for e in nlp(text).ents] for text in texts(tiny_corpus)]
    assert found == by_cfner(model, tiny_corpus)


def test_the_server_finds_the_same(model: Path, tiny_corpus: Corpus) -> None:
    loaded = open_model(model)
    served = Pipeline(loaded).tag(texts(tiny_corpus))
    ours = tag(loaded, list(tiny_corpus.test))
    for one, other in zip(served, ours, strict=True):
        assert [(e.type, e.start, e.end) for e in one] == [(e.type, e.start, e.end) for e in other.entities]
        assert [e.score for e in one] == pytest.approx([e.score for e in other.entities], abs=2e-3)


def test_a_diff_with_what_it_was(model: Path, tiny_corpus: Corpus) -> None:
    found = diff_models(open_model(model, 2), open_model(model), list(tiny_corpus.test))
    assert set(found.new_types) == set(open_model(model).labels.types)


@pytest.mark.parametrize("kind", ["cosine", "linear"])
def test_a_folded_head_gives_the_columns(kind: HeadKind) -> None:
    """Row w_O + w_c; of a cosine head sigma_0 w_O + sigma_g (w_c - w_Og), unit vectors all."""
    torch.manual_seed(0)
    head = make_head(kind, 6, 3, sigma=5.0, other=1).grown(torch.randn(3, 6), [1, 1, 2], torch.randn(2, 6))
    features = torch.randn(20, 6) * 3
    with torch.no_grad():
        weight, bias = folded(head, 2.0 if kind == "cosine" else None)
        expected = head(features)
        if isinstance(head, CosineHead):
            expected = expected * features.norm(dim=1, keepdim=True) / 2.0
            row = slow.unit(head.weight[1].tolist())
            towards, away = slow.unit(head.weight[5].tolist()), slow.unit(head.others[1].tolist())
            by_hand = [
                (float(head.sigma) * o + float(head.sigmas[1]) * (c - a)) / 2.0
                for o, c, a in zip(row, towards, away, strict=True)
            ]
            assert weight[5].tolist() == pytest.approx(by_hand, abs=1e-5)
    torch.testing.assert_close(features @ weight.T + bias, expected, atol=1e-4, rtol=1e-4)
