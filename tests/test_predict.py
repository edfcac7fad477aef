"""Predictions: from any file, in constant memory, into any format, with scores that mean something."""

from __future__ import annotations

import csv
import io
import json
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from cfner import predict
from cfner.batches.encoding import encode
from cfner.batches.loader import TokenBatch
from cfner.cli.main import main
from cfner.corpus.corpus import Corpus
from cfner.corpus.sentence import Sentence
from cfner.errors import CfnerError, ConfigError, CorpusError
from cfner.interop import prediction_files
from cfner.interop.export import open_for_prediction
from cfner.interop.prediction_files import write_predictions
from cfner.interop.text_stream import read_texts, sentence_of_text
from cfner.network.decoder import Decoder
from cfner.network.inference import label_words, outputs
from cfner.network.network import TaggerOutput
from cfner.network.prediction import Entity, Prediction, entity_of, tag, tag_stream
from cfner.store.model_files import LoadedModel
from cfner.store.open import open_model

WORD = st.text(st.characters(codec="utf-8", exclude_categories=["Z", "C"]), min_size=1, max_size=8)
WORDS = st.lists(st.lists(WORD.filter(lambda word: "#" not in word), min_size=1, max_size=6), max_size=6)


@pytest.fixture(scope="module")
def model(two_steps: Path) -> LoadedModel:
    return open_model(two_steps)


def found(predictions: list[Prediction]) -> list[list[tuple[str, int, int]]]:
    return [[(e.type, e.first, e.last) for e in prediction.entities] for prediction in predictions]


# -- what a prediction says --------------------------------------------------------------------------------


def test_the_score_is_the_mean_probability_of_the_type(model: LoadedModel, tiny_corpus: Corpus) -> None:
    sentences = tiny_corpus.test
    text = encode(sentences, model.tokenizer, max_length=model.max_length, overlap=model.overlap)
    probabilities = torch.zeros(text.words, len(model.labels))
    for batch, out in outputs(model.network, text):
        probabilities[batch.refs] = out.logits.softmax(1)
    checked = 0
    for index, prediction in enumerate(tag(model, sentences)):
        for entity in prediction.entities:
            wanted = []
            for word in range(entity.first, entity.last):
                row = probabilities[int(text.sentence_bounds[index]) + word]
                wanted.append(sum(float(row[label]) for label in model.labels.ids_of([entity.type])))
            assert entity.score == pytest.approx(sum(wanted) / len(wanted), abs=1e-5)
            checked += 1
    assert checked > 5


def test_labels_are_those_that_evaluation_sees(model: LoadedModel, tiny_corpus: Corpus) -> None:
    sentences = tiny_corpus.test
    text = encode(sentences, model.tokenizer, max_length=model.max_length, overlap=model.overlap)
    ids, _ = label_words(model.network, text, Decoder(model.labels))
    bounds = text.sentence_bounds.tolist()
    for index, prediction in enumerate(tag(model, sentences)):
        assert prediction.spans == model.labels.decode(ids[bounds[index] : bounds[index + 1]].tolist())


def test_bf16_rounds_and_says_nearly_the_same(two_steps: Path, tiny_corpus: Corpus) -> None:
    texts = list(tiny_corpus.test)
    plain, rounded = predict(two_steps, texts), predict(two_steps, texts, runtime="torch-bf16")
    pairs = [
        (one.score, other.score)
        for a, b in zip(plain, rounded, strict=True)
        for one in a.entities
        for other in b.entities
        if (one.type, one.first, one.last) == (other.type, other.first, other.last)
    ]
    assert len(pairs) > 0.9 * sum(len(one.entities) for one in plain) > 0
    gaps = [abs(one - other) for one, other in pairs]
    assert 0 < max(gaps) < 0.05  # it did compute in bf16


def test_a_merged_type_counts_all_its_labels(model: LoadedModel, tiny_corpus: Corpus) -> None:
    merged = replace(model, labels=model.labels.renamed(["animal", "dish"], "thing"))
    before, after = tag(model, tiny_corpus.test), tag(merged, tiny_corpus.test)
    pairs = [
        (one, other)
        for old, new in zip(before, after, strict=True)
        for one in old.entities
        for other in new.entities
        if (one.first, one.last) == (other.first, other.last) and one.type in {"animal", "dish"}
    ]
    assert pairs
    assert all(other.type == "thing" and other.score >= one.score - 1e-6 for one, other in pairs)


@settings(max_examples=25)
@given(text=st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=60))
def test_characters_of_an_entity_are_its_text(text: str, model_of_all: LoadedModel) -> None:
    (prediction,) = tag(model_of_all, [sentence_of_text(text, "here")])
    assert sum(e.last - e.first for e in prediction.entities) == len(prediction.sentence)
    for entity in prediction.entities:
        assert entity.start is not None and entity.end is not None
        assert text[entity.start : entity.end] == entity.text
        assert 0 < entity.score <= 1


class EveryWord(nn.Module):
    """Scores without computing: every word is of one type."""

    subwords_per_batch = 1024
    batches_at_once = 1
    ranks = ()

    def __init__(self, labels: int, best: int) -> None:
        super().__init__()
        self.row = torch.zeros(labels)
        self.row[best] = 5.0
        self.device = torch.device("cpu")

    def forward(self, batch: TokenBatch, probes: Any = ()) -> TaggerOutput:
        logits = self.row.expand(len(batch.refs), -1)
        return TaggerOutput(logits[:, :0], logits)


@pytest.fixture(scope="module")
def model_of_all(model: LoadedModel) -> LoadedModel:
    network: Any = EveryWord(len(model.labels), 1)
    return replace(model, network=network)


def test_words_without_a_text_are_joined_by_blanks() -> None:
    from cfner.corpus.sentence import Span

    entity = entity_of(Sentence(("a", "bc", "d")), Span(1, 3, "x"), 0.5)
    assert (entity.text, entity.start, entity.end) == ("bc d", 2, 6)


# -- reading -----------------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(WORDS)
def test_words_are_kept_as_they_are(tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]]) -> None:
    folder = tmp_path_factory.mktemp("words")
    (folder / "a.jsonl").write_text("".join(json.dumps({"words": row}) + "\n" for row in rows))
    columns = "\n".join("".join(f"{word}\tx\n" for word in row) for row in rows)
    (folder / "b.conll").write_text(columns, encoding="utf-8")
    (folder / "c.conll").write_text(columns.replace("\tx", ""), encoding="utf-8")
    for file in sorted(folder.iterdir()):
        assert [list(sentence.words) for sentence in read_texts(file)] == rows


def test_our_own_output_can_be_tagged_again(model: LoadedModel, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("Today  ada saw\tthe badger, in oslo.\n\nthe heron\n")
    assert predict(model, file=tmp_path / "in.txt", out=tmp_path / "a.jsonl") == 3
    assert predict(model, file=tmp_path / "a.jsonl", out=tmp_path / "b.jsonl") == 3
    once, twice = ([json.loads(line) for line in (tmp_path / name).open()] for name in ("a.jsonl", "b.jsonl"))
    assert twice == [{**line, "entities_given": line["entities"]} for line in once]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("# columns: tag form\nO\tada\nO\tsaw\n", [["ada", "saw"]]),
        ("tag token\nO ada\n", [["ada"]]),
        ("-DOCSTART- O\n\nada O\n\n#tag O\n# O\n# id 7 of 9\n", [["ada"], ["#tag", "#"]]),
        ("#tag\tO\nada\tO\n", [["#tag", "ada"]]),
        ("#tag\n# a remark\n\n\nada\n", [["#tag"], ["ada"]]),
        ("", []),
    ],
)
def test_columns(content: str, words: list[list[str]], tmp_path: Path) -> None:
    (tmp_path / "x.conll").write_text(content)
    assert [list(sentence.words) for sentence in read_texts(tmp_path / "x.conll")] == words


@pytest.mark.parametrize("name", ["eng.txt", "eng"])
def test_columns_are_recognised_whatever_the_name(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("-DOCSTART- -X- O\n\nEU NNP B-ORG\nrejects VBZ O\n\nBonn NNP B-LOC\n")
    assert [list(s.words) for s in read_texts(tmp_path / name)] == [["EU", "rejects"], ["Bonn"]]
    assert len(list(read_texts(tmp_path / name, "text"))) == 6  # unless it is called text
    (tmp_path / name).write_text("I like vitamin B-12\nand O\nand a third line\nand a fourth\n")
    assert len(list(read_texts(tmp_path / name))) == 4


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.jsonl", b'{"text": "fine"}\n{"text": \n', "a.jsonl:2: Not valid JSON"),
        ("a.jsonl", b"[1]\n", "a.jsonl:1: The record has neither"),
        ("a.jsonl", b'{"tokens": "one two"}\n', "a.jsonl:1: `tokens` must be a list"),
        ("a.jsonl", b'{"tokens": ["one", ""]}\n', "a.jsonl:1: `tokens` must be a list"),
        ("a.jsonl", b'{"tokens": ["one"], "text": "two"}\n', "is not in the text"),
        (
            "a.jsonl",
            b'{"tokens": ["is", "ada"], "text": "this is ada"}\n',
            "is not in the text at",
        ),
        ("a.jsonl", b'{"tokens": ["ada"], "text": "ada is"}\n', "The text continues at character 3"),
        ("a.jsonl", b'{"text": "\\ud800"}\n', "a.jsonl:1: the text contains an unpaired surrogate"),
        ("a.txt", b"fine\n\xff\n", "a.txt:2: not valid UTF-8"),
        ("a.conll", b"one\tO\n\tO\n", "a.conll:2: There is no word"),
        ("a.conll", b"ada\tO\n#tag\nsaw\tO\n", "a.conll:2: 1 column where the file has 2"),
        ("a.conll", b"ada O\nnew york O\nsaw O\n", "a.conll:2: 3 columns where the file has 2"),
        ("a.conll", b"ada\nnew york\n", "a.conll:2: 2 columns where the file has 1"),
    ],
)
def test_what_cannot_be_read_is_named_by_its_line(
    name: str, content: bytes, expected: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CorpusError) as caught:
        list(read_texts(tmp_path / name))
    assert expected in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_closed_standard_input_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(ConfigError, match="standard input is closed"):
        list(read_texts(None))


# -- files of any size -------------------------------------------------------------------------------------


def test_tagging_a_stream_is_tagging_all_at_once(
    model: LoadedModel, tiny_corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    sentences = [*tiny_corpus.test, Sentence(()), *tiny_corpus.dev]
    whole = tag(model, sentences)
    for most in (1, 7):
        monkeypatch.setattr("cfner.network.prediction._SENTENCES_AT_A_TIME", most)
        assert found(list(tag_stream(model, iter(sentences)))) == found(whole)
    monkeypatch.setattr("cfner.network.prediction._WORDS_AT_A_TIME", 1)
    assert found(list(tag_stream(model, iter(sentences)))) == found(whole)


def test_memory_does_not_grow_with_the_file(
    model_of_all: LoadedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cfner.network.prediction._SENTENCES_AT_A_TIME", 16)  # tracing memory is slow
    line = "today ada saw the badger in new york and went to the river with a curry\n"
    (tmp_path / "small.txt").write_text(line * 32)
    (tmp_path / "large.txt").write_text(line * 512)
    peaks = []
    for name in ("small", "large"):
        tracemalloc.start()
        predict(model_of_all, file=tmp_path / f"{name}.txt", out=tmp_path / f"{name}.jsonl")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 3 * peaks[0]  # 16 times the file; what varies is when garbage is collected


# -- writing -----------------------------------------------------------------------------------------------

SENTENCE = sentence_of_text("Ada  lives in\tNew York.", "here")
PREDICTION = Prediction(
    SENTENCE, (Entity("PER", "Ada", 0.75, 0, 1, 0, 3), Entity("LOC", "New York", 0.5, 3, 5, 14, 22))
)


def test_columns_out() -> None:
    (lines,) = prediction_files.conll_lines([PREDICTION])
    assert lines.splitlines() == ["Ada\tB-PER", "lives\tO", "in\tO", "New\tB-LOC", "York\tI-LOC", ".\tO", ""]


def test_a_word_that_breaks_columns_is_refused() -> None:
    for word in ("a\tb", "-DOCSTART-"):
        with pytest.raises(CorpusError, match="Write JSON lines"):
            list(prediction_files.conll_lines([Prediction(Sentence((word,)), ())]))


def test_a_row_per_mention(tmp_path: Path) -> None:
    odd = sentence_of_text('the "old, tall"\tman', "there")
    named = replace(odd, record={"id": "a7\ud800", "text": odd.text})
    found = Prediction(named, (Entity("PER", '"old, tall"\tman', 0.123456, 1, 7, 4, 19),))
    assert write_predictions([PREDICTION, Prediction(odd, ()), found], tmp_path / "x.csv") == 3
    assert (tmp_path / "x.csv").read_text().splitlines() == [
        "id,start,end,type,text,score",
        "1,0,3,PER,Ada,0.7500",
        "1,14,22,LOC,New York,0.5000",
        'a7\\xd800,4,19,PER,"""old, tall""\\x09man",0.1235',
    ]
    assert write_predictions([PREDICTION, found], tmp_path / "x.tsv") == 2
    with (tmp_path / "x.tsv").open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert [(row["id"], row["text"]) for row in rows[1:]] == [
        ("1", "New York"),
        ("a7\\xd800", '"old, tall"\\x09man'),
    ]


def test_one_json_list(tmp_path: Path) -> None:
    for count in (0, 1, 2):
        assert write_predictions([PREDICTION] * count, tmp_path / "x.json", overwrite=True) == count
        assert json.loads((tmp_path / "x.json").read_text()) == [PREDICTION.to_json()] * count


@pytest.mark.parametrize("name", ["out", "out.xlsx", "out.txt"])
def test_a_suffix_that_names_no_format_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"Known are .jsonl, .ndjson, .json, .csv, .tsv, .conll, .spacy"):
        write_predictions([PREDICTION], tmp_path / name)
    assert write_predictions([PREDICTION], tmp_path / name, "jsonl") == 1


@pytest.mark.parametrize("name", ["one.spacy", "parts"])
def test_docbin_out(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spacy = pytest.importorskip("spacy")
    from spacy.training import Corpus as SpacyCorpus

    monkeypatch.setattr(prediction_files, "DOCS_PER_PART", 2)
    empty = Prediction(sentence_of_text("", "there"), ())
    assert write_predictions([PREDICTION, empty, PREDICTION, PREDICTION], tmp_path / name, "docbin") == 4
    nlp = spacy.blank("en")
    docs = [example.reference for example in SpacyCorpus(tmp_path / name)(nlp)]
    full = [doc for doc in docs if len(doc)]
    assert len(full) == 3
    for doc in full:
        assert doc.text == SENTENCE.text
        assert [(ent.label_, ent.start_char, ent.end_char) for ent in doc.ents] == [
            ("PER", 0, 3),
            ("LOC", 14, 22),
        ]
        assert doc.spans["cfner"].attrs["scores"] == [0.75, 0.5]
    if name == "parts":
        assert [file.name for file in sorted((tmp_path / name).iterdir())] == [
            "part-00001.spacy",
            "part-00002.spacy",
        ]


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("x.jsonl", "jsonl"),
        ("x.json", "json"),
        ("x.csv", "csv"),
        ("x.conll", "conll"),
        ("x.spacy", "docbin"),
        ("x", "docbin"),
    ],
)
def test_a_file_is_written_whole_or_not_at_all(name: str, format: str, tmp_path: Path) -> None:
    pytest.importorskip("spacy")

    def stops() -> Iterator[Prediction]:
        yield PREDICTION
        raise CorpusError("no more")

    with pytest.raises(CorpusError, match="no more"):
        write_predictions(stops(), tmp_path / name, format)
    assert list(tmp_path.iterdir()) == []
    assert write_predictions([PREDICTION], tmp_path / name, format) == 1
    with pytest.raises(CorpusError, match="exists"):
        write_predictions([PREDICTION] * 2, tmp_path / name, format)
    assert write_predictions([PREDICTION] * 2, tmp_path / name, format, overwrite=True) == 2
    assert len(list(tmp_path.iterdir())) == 1


def test_a_folder_of_something_else_is_never_replaced(tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(CorpusError, match="contains other files"):
        write_predictions([PREDICTION], tmp_path / "mine", "docbin", overwrite=True)
    assert (tmp_path / "mine" / "letter.txt").read_text() == "dear"


# -- the command -------------------------------------------------------------------------------------------

TEXT = "today ada saw the badger in new york"
Cfner = Callable[..., str]


@pytest.fixture
def cfner(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cfner:
    monkeypatch.setenv("CFNER_DEBUG", "1")  # errors are raised, to be looked at

    def run(*words: object, stdin: str = "") -> str:
        monkeypatch.setattr(sys, "argv", ["cfner", *map(str, words)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        with pytest.raises(SystemExit) as done:
            main()
            raise SystemExit(0)
        assert not done.value.code
        return capsys.readouterr().out

    return run


def test_all_formats_in_say_the_same(cfner: Cfner, two_steps: Path, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": TEXT}) + "\n")
    (tmp_path / "b.jsonl").write_text(json.dumps({"tokens": TEXT.split()}) + "\n")
    (tmp_path / "c.conll").write_text("".join(f"{word}\tO\n" for word in TEXT.split()))
    answers = {cfner("predict", two_steps, "--file", file, "--json") for file in tmp_path.iterdir()}
    answers.add(cfner("predict", two_steps, TEXT))
    answers.add(cfner("predict", two_steps, "--input-format", "jsonl", stdin=json.dumps({"text": TEXT})))
    assert len(answers) == 1
    assert json.loads(answers.pop())["entities"]


def test_the_name_of_a_file_is_not_tagged_but_asked_about(
    cfner: Cfner, two_steps: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a letter").write_text(TEXT)
    for name, quoted in {"letters.txt": "letters.txt", "a letter": "'a letter'"}.items():
        with pytest.raises(ConfigError) as caught:  # before a model is looked for
            cfner("predict", "no-model", name)
        assert str(caught.value) == (
            f"'{name}' looks like the name of a file. Tag the text in it with --file {quoted}, "
            f"or these words with --text {quoted}."
        )
        assert json.loads(cfner("predict", two_steps, "--text", name))["text"] == name
    assert json.loads(cfner("predict", two_steps, "--file", "a letter"))["text"] == TEXT
    with pytest.raises(CorpusError, match="no such file"):
        cfner("predict", "no-model", "--file", "letters.txt")
    for text in ("ada.", "She sent letters.txt", "ada@oslo.org"):
        assert json.loads(cfner("predict", two_steps, text))["text"] == text


def test_the_fields_of_json_lines_are_handed_through(cfner: Cfner, two_steps: Path, tmp_path: Path) -> None:
    lines = [
        {"id": 7, "text": TEXT, "meta": {"from": ["\ud800", None]}, "entities": ["gold"]},
        {"words": TEXT.split(), "id": "x"},
        {"text": TEXT},
    ]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    cfner("predict", two_steps, "--file", tmp_path / "in.jsonl", "-o", tmp_path / "out.jsonl")
    first, second, third = (json.loads(line) for line in (tmp_path / "out.jsonl").open())
    assert list(first) == ["id", "meta", "entities_given", "text", "tokens", "entities"]
    assert list(second) == ["words", "id", "text", "tokens", "entities"]
    assert list(third) == ["text", "tokens", "entities"]
    assert first["meta"] == lines[0]["meta"] and first["entities_given"] == ["gold"]
    assert first["entities"] == second["entities"] == third["entities"] != []
    cfner("predict", two_steps, "--file", tmp_path / "in.jsonl", "-o", tmp_path / "out.csv")
    rows = list(csv.DictReader((tmp_path / "out.csv").open()))
    assert list(dict.fromkeys(row["id"] for row in rows)) == ["7", "x", "3"]
    assert [row["type"] for row in rows] == [e["type"] for e in first["entities"]] * 3


def test_files_out(cfner: Cfner, two_steps: Path, tmp_path: Path) -> None:
    shown = cfner("predict", two_steps, TEXT, TEXT, "--as", "conll")
    assert cfner("predict", two_steps, TEXT, TEXT, "--out", tmp_path / "x.conll") == ""
    assert (tmp_path / "x.conll").read_text() == shown
    with pytest.raises(CfnerError, match="The output exists"):
        cfner("predict", two_steps, TEXT, "--out", tmp_path / "x.conll")
    cfner("predict", two_steps, TEXT, "--out", tmp_path / "x.conll", "--overwrite", "--json")
    assert json.loads((tmp_path / "x.conll").read_text())["text"] == TEXT


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--as", "docbin"], "Name a file"),
        (["--as", "table", "--out", "x"], "is for the terminal"),
        (["--out", "x.xlsx"], "ends in '.xlsx', which is not a format of predictions"),
        (["--out", "x"], "has no suffix that names a format"),
        (["--as", "conl"], "Did you mean 'conll'"),
        (["--runtime", "onxx"], "Did you mean 'onnx'"),
    ],
)
def test_what_makes_no_sense_is_said(
    words: list[str], expected: str, cfner: Cfner, two_steps: Path, tmp_path: Path
) -> None:
    with pytest.raises(CfnerError, match=expected):
        cfner("predict", two_steps, TEXT, *words)
    with pytest.raises(CfnerError, match="Did you mean 'jsonl'"):
        cfner("predict", two_steps, "--input-format", "jsnl")
    with pytest.raises(CfnerError, match="There is no model here"):
        cfner("predict", tmp_path, TEXT)


def test_a_strangers_checkpoint_predicts_what_it_says(
    cfner: Cfner, model: LoadedModel, tmp_path: Path, tiny_corpus: Corpus
) -> None:
    """The stock model itself is the oracle: argmax of its logits at the first subword of each word."""
    from transformers import AutoModelForTokenClassification

    from cfner.interop.hf_export import stock_model

    stock = stock_model(model, 1.0)
    del stock.config.cfner_label_order  # only cfner's own exports have it
    stock.save_pretrained(tmp_path / "theirs")
    model.tokenizer.save_pretrained(tmp_path / "theirs")
    opened = open_for_prediction(tmp_path / "theirs")
    read = AutoModelForTokenClassification.from_pretrained(tmp_path / "theirs").eval()
    for prediction in tag(opened, tiny_corpus.test[:5]):
        words = list(prediction.sentence.words)
        batch = opened.tokenizer(words, is_split_into_words=True, return_tensors="pt")
        with torch.no_grad():
            ids = read(**batch).logits[0].argmax(1).tolist()
        places = batch.word_ids(0)
        firsts = [ids[places.index(word)] for word in range(len(words))]
        assert prediction.spans == opened.labels.decode(firsts)
    assert json.loads(cfner("predict", tmp_path / "theirs", TEXT))["text"] == TEXT
