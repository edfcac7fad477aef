"""The spaCy component: its tokens, its conventions, our entities."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("spacy")

import spacy
from hypothesis import given, settings
from hypothesis import strategies as st

import cfner.interop.spacy_component
from cfner.corpus.corpus import Corpus
from cfner.errors import ModelError
from cfner.interop.spacy_component import CfnerComponent
from cfner.tagger import ContinualTagger

assert cfner.interop.spacy_component  # imported to register the factory, as the entry point does
TEXT = "today ada saw the badger in new york"


def pipeline(model: Path | None, **config: Any) -> Any:
    nlp = spacy.blank("en")
    nlp.add_pipe("cfner", config={"model": None if model is None else str(model), **config})
    return nlp


@pytest.fixture(scope="module")
def nlp(two_steps: Path) -> Any:
    return pipeline(two_steps)


def triples(doc: Any) -> list[tuple[str, int, int]]:
    return [(ent.label_, ent.start_char, ent.end_char) for ent in doc.ents]


def test_entities_are_ours(nlp: Any, two_steps: Path, tiny_corpus: Corpus) -> None:
    tagger = ContinualTagger.load(two_steps)
    total = 0
    for sentence in tiny_corpus.test:
        text = " ".join(sentence.words)
        wanted = tagger.predict(text)
        doc = nlp(text)
        assert triples(doc) == [(e.type, e.start, e.end) for e in wanted.entities]
        group = doc.spans["cfner"]
        assert [span.text for span in group] == [e.text for e in wanted.entities]
        assert group.attrs["scores"] == pytest.approx([e.score for e in wanted.entities], abs=1e-5)
        total += len(doc.ents)
    assert total > 10
    assert nlp.get_pipe("cfner").labels == tagger.types


def test_a_pipe_says_the_same_in_any_batch(nlp: Any, tiny_corpus: Corpus) -> None:
    texts = [" ".join(sentence.words) for sentence in tiny_corpus.test] + ["", "  ", TEXT]
    alone = [triples(nlp(text)) for text in texts]
    for size in (1, 4, 100):
        docs = list(nlp.pipe(texts, batch_size=size))
        assert [doc.text for doc in docs] == texts
        assert [triples(doc) for doc in docs] == alone


@pytest.mark.parametrize("size", [1, 2, 128])
def test_a_document_may_come_several_times(size: int, nlp: Any) -> None:
    doc, other, component = nlp.make_doc(TEXT), nlp.make_doc("the heron of oslo"), nlp.get_pipe("cfner")
    found = list(component.pipe([doc, other, doc, doc], batch_size=size))
    assert [id(one) for one in found] == [id(one) for one in (doc, other, doc, doc)]
    assert triples(doc) == triples(nlp(TEXT)) != []
    assert len(doc.spans["cfner"]) == len(doc.spans["cfner"].attrs["scores"]) == len(doc.ents)
    assert triples(other) == triples(nlp(other.text))


@settings(max_examples=20)
@given(pieces=st.lists(st.sampled_from([*"ada \n\t.,-'é新1#\u200b", " badger ", " new york"]), max_size=20))
def test_any_text_keeps_its_tokens(nlp: Any, pieces: list[str]) -> None:
    text = "".join(pieces)
    doc = nlp(text)
    assert doc.text == text
    assert [token.text for token in doc] == [token.text for token in nlp.make_doc(text)]
    assert len(doc.spans["cfner"]) == len(doc.spans["cfner"].attrs["scores"]) == len(doc.ents)


def test_sentences_of_the_document_are_tagged_one_by_one(two_steps: Path) -> None:
    nlp = pipeline(two_steps)
    nlp.add_pipe("sentencizer", first=True)
    text = f"{TEXT}. the heron of oslo."
    doc = nlp(text)
    alone = [nlp.make_doc(sent.text) for sent in doc.sents]
    component = nlp.get_pipe("cfner")
    found = [(ent.label_, ent.text) for part in alone for ent in component(part).ents]
    assert [(ent.label_, ent.text) for ent in doc.ents] == found
    assert len(list(doc.sents)) == 2


@pytest.mark.parametrize("overwrite", [False, True])
def test_entities_of_earlier_components(overwrite: bool, two_steps: Path) -> None:
    nlp = pipeline(two_steps, overwrite_ents=overwrite)
    ours = triples(nlp(TEXT))
    assert ours
    label, start, end = ours[0]
    theirs = nlp.make_doc(TEXT)
    clash, apart = theirs.char_span(start, end, label="MINE"), theirs.char_span(0, 5, label="DATE")
    assert not any(start < 5 for _, start, _ in ours)
    theirs.set_ents([apart, clash])
    doc = nlp.get_pipe("cfner")(theirs)
    found = triples(doc)
    assert ("DATE", 0, 5) in found
    assert ((label, start, end) in found) == overwrite
    assert (("MINE", start, end) in found) == (not overwrite)
    assert set(ours[1:]) <= set(found)
    assert len(doc.spans["cfner"]) == len(ours)


def test_a_saved_pipeline_brings_its_model(two_steps: Path, tmp_path: Path) -> None:
    shutil.copytree(two_steps, tmp_path / "model")
    nlp = pipeline(tmp_path / "model", step=1, batch_size=2)
    wanted = triples(nlp(TEXT))
    nlp.to_disk(tmp_path / "saved")
    shutil.rmtree(tmp_path / "model")
    again = spacy.load(tmp_path / "saved")
    assert triples(again(TEXT)) == wanted
    assert again.get_pipe("cfner").labels == ("animal", "city")
    spacy.load(tmp_path / "saved").to_disk(tmp_path / "saved")  # over itself, before it was ever used
    assert triples(spacy.load(tmp_path / "saved")(TEXT)) == wanted
    again.to_disk(tmp_path / "saved-again")
    assert triples(spacy.load(tmp_path / "saved-again")(TEXT)) == wanted


def test_other_settings(two_steps: Path) -> None:
    doc = pipeline(two_steps, step=1, spans_key="found")(TEXT)
    assert {ent.label_ for ent in doc.ents} <= {"animal", "city"}
    assert "found" in doc.spans and "cfner" not in doc.spans


def test_a_component_without_a_model_says_so(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"has no model.*add_pipe"):
        pipeline(None)(TEXT)
    with pytest.raises(ModelError, match="There is no model here"):
        CfnerComponent("cfner", tmp_path)(spacy.blank("en")(TEXT))
