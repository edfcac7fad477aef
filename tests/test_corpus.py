"""Corpora as a whole: folders, splits, thinning, overlaps, and the commands of `cfner data`."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from cfner.cli.data import app
from cfner.corpus.corpus import Corpus
from cfner.corpus.report import ReadReport
from cfner.corpus.sentence import Sentence, Span
from cfner.errors import ConfigError, CorpusError
from reading import read_sentences

TRAIN = "Ada\tB-PER\nran\tO\n\nin\tO\nRome\tB-LOC\n\nAda\tB-PER\nran\tO\n"
TEST = "in\tO\nRome\tB-LOC\n\nBo\tB-PER\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "news"
    path.mkdir()
    (path / "train.txt").write_text(TRAIN)
    (path / "Validation.tsv").write_text("x\tO\n")
    (path / "test.jsonl").write_text(
        '{"tokens": ["in", "Rome"], "tags": ["O", "U-LOC"]}\n{"tokens": ["Bo"], "tags": ["U-PER"]}\n'
    )
    (path / "README.md").write_text("not a split")
    return path


def test_a_folder_of_different_formats(folder: Path) -> None:
    corpus = Corpus.read(folder)
    assert (corpus.name, corpus.types) == ("news", ["LOC", "PER"])
    assert [len(corpus.train), len(corpus.dev), len(corpus.test)] == [3, 1, 2]
    assert corpus.mentions("train") == {"PER": 2, "LOC": 1}
    assert corpus.report.format == "conll + jsonl"
    assert corpus.report.scheme == "BIO + BILOU"
    assert len(corpus.report.files) == 3
    assert corpus.overlaps() == {
        **{"train_repeated": 1, "dev_repeated": 0, "test_repeated": 0},
        **{"dev_in_train": 0, "test_in_train": 1, "test_in_dev": 0},
    }


def test_folders_that_cannot_be_read_say_what_was_expected(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.docx").write_text("x")
    with pytest.raises(CorpusError, match=r"it contains: notes\.docx\. cfner expects files named train"):
        Corpus.read(tmp_path / "other")
    (folder / "train.jsonl").write_text('{"tokens": ["a"], "tags": ["O"]}\n')
    with pytest.raises(CorpusError, match=r"two files for train: train\.jsonl and train\.txt"):
        Corpus.read(folder)
    assert len(Corpus.read(folder, format="jsonl").train) == 1
    (folder / "train.jsonl").unlink()
    (folder / "train.txt").write_text("")
    with pytest.raises(CorpusError, match=r"train\.txt: the file has no line"):
        Corpus.read(folder)


def test_each_nth_sentence_is_kept_and_the_rest_reported(folder: Path) -> None:
    corpus = Corpus.read(folder, every=2)
    assert corpus == Corpus.read(folder).every(2)
    assert [sentence.words[0] for sentence in corpus.train] == ["Ada", "Ada"]
    assert corpus.report.sentences == 4
    assert corpus.report.tokens_reported == 3
    assert corpus.report.tokens_read == corpus.report.tokens_used + corpus.report.tokens_reported
    sentences, report = read_sentences(folder / "train.txt", every=2)
    assert sentences == corpus.train
    assert report.repairs == {"sentence left out by every=2": 1}
    with pytest.raises(CorpusError, match="every=0"):
        corpus.every(0)


@given(st.lists(st.integers(0, 60), min_size=40, max_size=120), st.integers(0, 5))
@settings(deadline=None, derandomize=True, max_examples=50)
def test_splitting_keeps_every_sentence_and_equal_ones_together(numbers: list[int], seed: int) -> None:
    corpus = Corpus("x", tuple(Sentence((f"w{number}",)) for number in numbers))
    try:
        divided = corpus.split(0.2, 0.3, seed)
    except CorpusError as error:
        assert "none of the" in str(error)
        return
    parts = (divided.train, divided.dev, divided.test)
    assert Counter(s for part in parts for s in part) == Counter(corpus.train)
    words = [{sentence.words for sentence in part} for part in parts]
    assert not (words[0] & words[1] or words[0] & words[2] or words[1] & words[2])
    # A sentence stays where it is when others come or go.
    more = Corpus("x", (*corpus.train, *(Sentence((f"v{number}",)) for number in range(20)))).split(
        0.2, 0.3, seed
    )
    for part, larger in zip(parts, (more.train, more.dev, more.test), strict=True):
        assert set(part) <= set(larger)
    assert divided == corpus.split(0.2, 0.3, seed)


def test_shares_are_met_on_average_and_bad_ones_refused(folder: Path) -> None:
    corpus = Corpus("x", tuple(Sentence((f"w{number}",)) for number in range(5000)))
    divided = corpus.split(0.1, 0.2)
    assert abs(len(divided.dev) - 500) < 80
    assert abs(len(divided.test) - 1000) < 100
    assert corpus.split(0.1, 0.2, seed=1).test != divided.test
    for dev, test in ((-0.1, 0.2), (0.5, 0.5), (float("nan"), 0.1)):
        with pytest.raises(CorpusError, match="leave nothing for training"):
            corpus.split(dev, test)
    with pytest.raises(CorpusError, match="has a dev or test split already"):
        Corpus.read(folder).split()
    with pytest.raises(CorpusError, match="none of the 1 sentences falls into"):
        Corpus("x", corpus.train[:1]).split()


def _report(kinds: list[tuple[str, int]], used: list[int]) -> ReadReport:
    report = ReadReport(format="f", files=("x",))
    for index, (kind, tokens) in enumerate(kinds):
        report.tokens_read += tokens
        report.note(kind, f"x:{index}", tokens=tokens)
    for tokens in used:
        report.tokens_read += tokens
        report.use(tokens)
    return report


reports = st.builds(
    _report,
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 3)), max_size=8),
    st.lists(st.integers(1, 4), max_size=4),
)


@given(reports, reports)
@settings(deadline=None, derandomize=True, max_examples=50)
def test_merged_reports_balance_and_add_up(one: ReadReport, other: ReadReport) -> None:
    merged = one.merge(other).verified()
    assert merged.repairs == one.repairs + other.repairs
    assert merged.tokens_read == one.tokens_read + other.tokens_read
    assert all(len(kept) <= 5 for kept in merged.places.values())
    assert one.merge(ReadReport()) == one
    merged.tokens_read += 1
    with pytest.raises(RuntimeError, match="bug in the reader"):
        merged.verified()


# ---------------------------------------------------------------- commands


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_describe(folder: Path) -> None:
    facts = json.loads(run("describe", folder, "--json"))
    assert facts["splits"]["train"]["mentions_per_type"] == {"LOC": 1, "PER": 2}
    assert facts["report"]["tokens_read"] == 10
    assert facts["overlaps"]["test_in_train"] == 1
    (folder / "train.txt").write_text(TRAIN.replace("\n", "\r\n"), newline="")
    printed = run("describe", folder, "--every", 2)
    for expected in ("BIO + BILOU", "PER", "CRLF", "left out by every=2", "train.txt:1"):
        assert expected in printed


def test_convert_back_and_forth(folder: Path, tmp_path: Path) -> None:
    source, middle, last = folder / "train.txt", tmp_path / "t.jsonl", tmp_path / "t.conll"
    run("convert", source, middle, "--scheme", "bioes")
    assert '"S-PER"' in middle.read_text()
    run("convert", middle, last)
    assert last.read_text() == TRAIN + "\n"
    with pytest.raises(CorpusError, match="the file exists"):
        run("convert", middle, last)
    written = json.loads(run("convert", middle, last, "--overwrite", "--json"))
    assert written["written"] == [{"file": str(last), "sentences": 3}]
    with pytest.raises(CorpusError, match=r"suffix '\.csv' does not belong to a format"):
        run("convert", middle, tmp_path / "t.csv")
    run("convert", folder, tmp_path / "all", "--to", "jsonl")
    assert Corpus.read(tmp_path / "all").mentions("test") == {"LOC": 1, "PER": 1}
    with pytest.raises(CorpusError, match="Name a folder"):
        run("convert", folder, tmp_path / "all.jsonl")


def test_a_part_is_converted(folder: Path, tmp_path: Path) -> None:
    run("convert", folder, tmp_path / "part", "--to", "conll", "--types", "PER", "--every", 2)
    part = Corpus.read(tmp_path / "part")
    assert [len(part.train), len(part.dev), len(part.test)] == [2, 1, 1]
    assert part.types == ["PER"]  # LOC stays in the text, without its label
    with pytest.raises(CorpusError, match=r"no type 'PRE'\. Did you mean 'PER'"):
        run("convert", folder, tmp_path / "other", "--to", "conll", "--types", "PRE")
    assert not (tmp_path / "other").exists()


def test_splits_are_converted_all_or_none(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run("convert", folder, out, "--to", "conll")
    before = {file.name: file.read_bytes() for file in out.iterdir()}
    (folder / "train.txt").write_text("new\tO\n")
    (folder / "Validation.tsv").write_text("a\tB-X\nb\tB-X\n")  # which IO cannot say
    with pytest.raises(CorpusError, match="IO cannot express"):
        run("convert", folder, out, "--to", "conll", "--scheme", "IO", "--overwrite")
    assert {file.name: file.read_bytes() for file in out.iterdir()} == before


def test_split_command(tmp_path: Path) -> None:
    source = tmp_path / "all.conll"
    source.write_text("".join(f"w{number}\tB-X\n\n" for number in range(200)))
    run("split", source, tmp_path / "out", "--dev", 0.2, "--test", 0.2, "--seed", 3)
    corpus = Corpus.read(tmp_path / "out")
    assert sum(corpus.report.repairs.values()) == 0
    assert corpus.report.sentences == 200
    assert corpus.dev and corpus.test
    before = (tmp_path / "out" / "train.conll").read_text()
    (tmp_path / "out" / "train.conll").unlink()
    with pytest.raises(CorpusError, match=r"dev\.conll: the file exists"):
        run("split", source, tmp_path / "out")
    assert not (tmp_path / "out" / "train.conll").exists()  # all or nothing
    run("split", source, tmp_path / "out", "--dev", 0.2, "--test", 0.2, "--seed", 3, "--overwrite")
    assert (tmp_path / "out" / "train.conll").read_text() == before


def test_sample_command(tmp_path: Path) -> None:
    pytest.importorskip("faker", reason="the extra 'demo' is not installed")
    run("sample", tmp_path / "out", "--size", 60, "--types", "DATE, CITY")
    corpus = Corpus.read(tmp_path / "out")
    assert (len(corpus.train), len(corpus.dev), len(corpus.test)) == (60, 10, 20)
    assert corpus.types == ["CITY", "DATE"]
    with pytest.raises(ConfigError, match="no type 'TOWN'"):
        run("sample", tmp_path / "other", "--types", "TOWN")


# ---------------------------------------------------------------- real corpora

DATA = os.environ.get("CFNER_DATA")


@pytest.mark.skipif(not DATA, reason="CFNER_DATA does not name the folder of the real corpora")
@pytest.mark.parametrize("name", ["wnut17", "presidio-synth"])
def test_real_corpora_survive_conversion(name: str, tmp_path: Path) -> None:
    corpus = Corpus.read(Path(str(DATA)) / name, every=3)
    assert corpus.report.scheme == "BIO"
    run("convert", Path(str(DATA)) / name, tmp_path / "c", "--to", "jsonl", "--scheme", "BILOU")
    again = Corpus.read(tmp_path / "c", every=3)
    for split in ("train", "dev", "test"):
        pairs = zip(corpus.split_named(split), again.split_named(split), strict=True)
        assert all(a.words == b.words and a.spans == b.spans for a, b in pairs)
    assert all(isinstance(span, Span) for sentence in again.train for span in sentence.spans)
