"""The paper's tables as grids: on its corpora, checked against its own counts, or on anybody's data."""

from __future__ import annotations

from pathlib import Path

import pytest

from cfner.benchmark import published
from cfner.benchmark.cells import parse_methods
from cfner.benchmark.reproduce import (
    RECIPES,
    cells_on_other_data,
    cells_on_paper_corpora,
    check_counts,
    expected_files,
    recipe,
)
from cfner.benchmark.streams import Source
from cfner.corpus.corpus import Corpus
from cfner.corpus.sentence import Sentence, Span
from cfner.corpus.writers import write_sentences
from cfner.errors import ConfigError, CorpusError
from cfner.training.config import TrainingConfig

CONFIG = TrainingConfig.build({}, preset="paper")


def corpus_like(name: str, *, sentences: int, mentions: int) -> Corpus:
    """As many sentences and mentions, spread over the types."""
    types = published.statistics(name).types
    bare = Sentence(("a",))
    made = [
        Sentence(("a",), (Span(0, 1, types[i % len(types)]),)) if i < mentions else bare
        for i in range(sentences)
    ]
    return Corpus(name, tuple(made[::2]), tuple(made[1::4]), tuple(made[3::4]))


def test_every_recipe_names_methods_that_exist_and_settings_of_the_paper() -> None:
    for wanted in RECIPES.values():
        assert parse_methods(wanted.methods)
        assert all(published.statistics(corpus) for corpus in wanted.settings)
    known = {(f.data, f.first, f.per_step) for f in published.load().figures}
    for name in ("table1", "table-conll", "table-ablation", "table-hyperparameters", "table-combine"):
        for corpus, settings in RECIPES[name].settings.items():
            assert all((corpus, *pair) in known for pair in settings), name


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("table1", 6),
        ("table-conll", 6),
        ("table-ablation", 7),
        ("table-hyperparameters", 15),
        ("table-combine", 5),
        ("figure-other-class", 2),
        ("figure-sampling", 12),
        ("figure-tsne", 2),
        ("figure-steps", 6),
    ],
)
def test_the_same_comparison_on_other_data(name: str, cells: int) -> None:
    made = cells_on_other_data(name, Source("somewhere"), (3, 4), CONFIG, [0, 1])
    assert len(made) == 2 * cells
    assert {(c.division.first, c.division.per_step) for c in made} == {(3, 4)}


def test_a_missing_corpus_is_asked_for_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(CorpusError) as caught:
        cells_on_paper_corpora("table1", tmp_path, CONFIG, [0])
    assert expected_files("table1") in str(caught.value)
    assert "i2b2/ (I2B2) and ontonotes5/ (OntoNotes5)" in str(caught.value)
    assert "ontonotes5" not in expected_files("table-conll")


def test_an_unknown_table_is_refused() -> None:
    with pytest.raises(ConfigError, match="table-ablation"):
        recipe("table-ablations")


def test_counts_are_checked_against_the_papers() -> None:
    right = corpus_like("CoNLL2003", sentences=20744, mentions=20744)
    with pytest.raises(CorpusError, match=r"20,744 mentions \(the paper: 35,000\)"):
        check_counts("CoNLL2003", right, Path("x"), anyway=False)
    assert check_counts("CoNLL2003", right, Path("x"), anyway=True) == (
        "LOCATION",
        "MISC",
        "ORGANISATION",
        "PERSON",
    )
    exact = corpus_like("I2B2", sentences=141_300, mentions=29_100)
    assert check_counts("I2B2", exact, Path("x"), anyway=False) == published.statistics("I2B2").types
    with pytest.raises(CorpusError, match="PERSON"):
        check_counts("OntoNotes5", exact, Path("x"), anyway=True)


def test_the_papers_corpora_get_its_epochs_and_order(tmp_path: Path) -> None:
    root = tmp_path / "ontonotes5"
    root.mkdir()
    made = corpus_like("OntoNotes5", sentences=180, mentions=180)
    for split in ("train", "dev", "test"):
        write_sentences(made.split_named(split), root / f"{split}.jsonl", format="jsonl")
    cells = cells_on_paper_corpora("table1", tmp_path, CONFIG, [0], only=["OntoNotes5"], anyway=True)
    epochs = {(c.division.first, c.division.per_step): c.config.epochs for c in cells}
    assert epochs == {(1, 1): 10, (2, 2): 20, (8, 1): 10, (8, 2): 20}
    assert {c.source.order for c in cells} == {published.statistics("OntoNotes5").types}
    with pytest.raises(CorpusError, match="as in the paper"):
        cells_on_paper_corpora("table1", tmp_path, CONFIG, [0], only=["OntoNotes5"])
