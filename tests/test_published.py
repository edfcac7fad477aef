"""The published figures: all there, as printed, and the doubtful ones marked."""

from __future__ import annotations

from collections import Counter

import pytest

from cfner.benchmark.published import Figure, load, statistics
from cfner.errors import ConfigError
from cfner.methods.registry import create, method_names


def only(table: str, data: str, method: str, first: int = 1, per_step: int = 1) -> Figure:
    found = [
        figure
        for figure in load().of(data, first, per_step)
        if figure.table == table and figure.method == method
    ]
    (figure,) = found
    return figure


def test_every_table_of_the_paper_is_there_with_all_its_rows() -> None:
    counted = Counter(figure.table for figure in load().figures)
    assert counted == {
        "main": 6 * 4 * 2 + 6 * 2,  # methods x settings x (I2B2, OntoNotes5), and CoNLL2003's own table
        "ablation": 7 * 3,
        "hyper-parameters": 3 * 5,
        "combination": 5 * 3,
        "random sampling": 3,
        "later": 31,
    }


@pytest.mark.parametrize(
    ("table", "data", "first", "per_step", "method", "micro", "macro"),
    [
        ("main", "I2B2", 1, 1, "cfner", (62.73, 3.62), (36.26, 2.24)),
        ("main", "I2B2", 8, 2, "podnet", (36.22, 12.9), (26.08, 7.42)),
        ("main", "OntoNotes5", 8, 1, "self-training", (73.59, 0.66), (49.41, 0.77)),
        ("main", "CoNLL2003", 2, 1, "lucir", (80.53, 0.31), (77.33, 0.31)),
        ("main", "CoNLL2003", 1, 1, "extendner", (76.36, 0.98), (73.04, 1.8)),
        ("ablation", "OntoNotes5", 1, 1, "cfner without effect_o", (53.09, None), (34.99, None)),
        ("combination", "I2B2", 1, 1, "lucir+cf", (66.27, None), (38.52, None)),
        ("hyper-parameters", "I2B2", 8, 2, "cfner with lambda_base=10", (54.12, None), (40.66, None)),
        ("later", "OntoNotes5", 8, 2, "seq*", (None, None), (72.27, None)),
    ],
)
def test_figures_are_as_printed(
    table: str,
    data: str,
    first: int,
    per_step: int,
    method: str,
    micro: tuple[float | None, float | None],
    macro: tuple[float | None, float | None],
) -> None:
    figure = only(table, data, method, first, per_step)
    assert (figure.micro, figure.micro_std) == micro
    assert (figure.macro, figure.macro_std) == macro


def test_the_doubtful_figures_are_exactly_the_rows_printed_twice() -> None:
    main = [figure for figure in load().figures if figure.table == "main"]
    seen = Counter((f.first, f.per_step, f.micro, f.macro) for f in main)
    twice = [f for f in main if seen[f.first, f.per_step, f.micro, f.macro] > 1]
    assert {(f.data, f.method, f.first, f.per_step) for f in twice} == {
        (data, method, 2, 2) for data in ("I2B2", "OntoNotes5") for method in ("lucir", "podnet")
    }
    assert [f for f in load().figures if f.doubtful] == twice


def test_tables_that_repeat_a_row_agree() -> None:
    for figure in load().figures:
        if figure.table in {"ablation", "combination"} and " without " not in figure.method:
            if figure.method.endswith("+cf"):
                continue
            same = only("main", figure.data, figure.method)
            assert (figure.micro, figure.macro) == (same.micro, same.macro)
    for data in ("I2B2", "OntoNotes5", "CoNLL2003"):
        bare = only("ablation", data, "cfner without effect_e & effect_o")
        assert (bare.micro, bare.macro) == (
            only("main", data, "extendner").micro,
            only("main", data, "extendner").macro,
        )


def test_methods_that_exist_here_have_the_names_that_they_have_here() -> None:
    peers = {"rdp", "tbcl", "seq*", "cpfd"}
    for figure in load().figures:
        base, _, left_out = figure.method.partition(" without ")
        base, _, setting = base.partition(" with ")
        if base in peers:
            continue
        assert base in method_names()
        name, _, value = setting.partition("=")
        method = create(base, {name: value} if name else {}, left_out.split(" & ") if left_out else ())
        if left_out:
            assert method.variant == figure.method


def test_every_figure_is_a_percentage_and_names_its_source() -> None:
    for figure in load().figures:
        shares = [figure.micro, figure.macro]
        assert any(share is not None for share in shares)
        assert all(0 < share < 100 for share in shares if share is not None)
        assert figure.source and figure.where


@pytest.mark.parametrize("name", ["CoNLL2003", "I2B2", "OntoNotes5"])
def test_statistics_agree_with_themselves(name: str) -> None:
    corpus = statistics(name)
    assert len(corpus.types) == {"CoNLL2003": 4, "I2B2": 16, "OntoNotes5": 18}[name] == len(corpus.labels)
    assert list(corpus.types) == sorted(corpus.types)  # learned in alphabetical order
    assert list(corpus.labels) == sorted(corpus.labels)
    for counted in ("sentences", "mentions"):
        total = sum(split[counted] for split in corpus.splits.values())
        if corpus.splits:
            assert round(total, -3) == getattr(corpus, counted)
            assert corpus.splits_source
    assert set(corpus.splits) in (set(), {"train", "dev", "test"})


def test_a_corpus_is_found_however_its_name_is_spelt() -> None:
    assert statistics("data/conll-2003") is statistics("CoNLL2003")
    assert statistics("CoNLL2003").labels == ("LOC", "MISC", "ORG", "PER")
    assert load().of("ontonotes_5", 1, 1)
    with pytest.raises(ConfigError, match="no corpus 'conl2003'"):
        statistics("conl2003")
