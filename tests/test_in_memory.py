"""Data in memory wherever a path is taken, and texts in every shape that ``predict`` takes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import cfner
from cfner import ContinualTagger, Corpus, CorpusError, Sentence, Span
from cfner.corpus.in_memory import IN_MEMORY
from cfner.corpus.tags import tags_from_spans
from cfner.network.prediction import Prediction
from cfner.runs.run_folder import read_run
from cfner.stream.manifest import sentences_hash

TEXT = "Ada lived in London."
SPANS = [(0, 3, "PER"), (13, 19, "LOC")]
WORDS, TAGS = ["Ada", "lived", "in", "London", "."], ["B-PER", "O", "O", "B-LOC", "O"]
EXPECTED = Sentence(tuple(WORDS), (Span(0, 1, "PER"), Span(3, 4, "LOC")))


def dataset() -> Any:
    import datasets

    names = ["O", "B-PER", "B-LOC"]
    features = datasets.Features(
        tokens=datasets.Sequence(datasets.Value("string")),
        ner_tags=datasets.Sequence(datasets.ClassLabel(names=names)),
    )
    return datasets.Dataset.from_dict({"tokens": [WORDS], "ner_tags": [[1, 0, 0, 2, 0]]}, features=features)


def frame(**columns: Any) -> Any:
    import pandas

    return pandas.DataFrame(columns)


FORMS: dict[str, Callable[[], Any]] = {
    "text and spans": lambda: [(TEXT, SPANS)],
    "text and entities, as spaCy's": lambda: [(TEXT, {"entities": SPANS})],
    "tokens and tags": lambda: [(WORDS, TAGS)],
    "dictionaries with spans": lambda: [
        {"text": TEXT, "spans": [{"start": s, "end": e, "label": t} for s, e, t in SPANS]}
    ],
    "dictionaries with tags": lambda: [{"tokens": tuple(WORDS), "tags": tuple(TAGS)}],
    "a generator": lambda: ((WORDS, TAGS) for _ in range(1)),
    "sentences": lambda: [EXPECTED],
    "a corpus": lambda: Corpus("c", (EXPECTED,)),
    "a dataset": dataset,
    "a frame of sentences": lambda: frame(tokens=[WORDS], tags=[TAGS]),
    "a frame of texts": lambda: frame(text=[TEXT], spans=[SPANS]),
    "a frame of words": lambda: frame(sentence=[7] * 5, word=WORDS, tag=TAGS),
    "splits": lambda: {"train": [(WORDS, TAGS)]},
}


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_are_the_same_data(form: str) -> None:
    (found,) = Corpus.read(FORMS[form]()).train
    assert (found.words, found.spans) == (EXPECTED.words, EXPECTED.spans)


def test_splits_stay_splits() -> None:
    corpus = Corpus.read({"train": [(WORDS, TAGS)] * 3, "validation": dataset(), "test": [(TEXT, SPANS)]})
    assert (len(corpus.train), len(corpus.dev), len(corpus.test)) == (3, 1, 1)
    assert corpus.name == IN_MEMORY and corpus.report.tokens_read == 25


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (["Ada lived in London."], "The item 'Ada lived in London.' is not a labelled sentence"),
        ([(TEXT, SPANS), 3], "data in memory:2: The item 3"),
        (7, "A int is not labelled data"),
        ({"tokens": WORDS, "tags": TAGS}, "is not a labelled sentence"),
        ([(WORDS, TAGS[:2])], "data in memory:1"),
        ([(TEXT, [(0, 300, "PER")])], "data in memory:1: the mention 0-300"),
        ({0: [(WORDS, TAGS)]}, "no split named train"),
        (lambda: frame(**{"0": [WORDS], "1": [TAGS]}).rename(columns=int), "its fields are: 0, 1"),
        (
            lambda: frame(sentence=[1, None, None], word=["a", "b", "c"], tag=["O"] * 3),
            "in a row that names none",
        ),
        (
            lambda: frame(sentence=[1, 2, 1], word=["a", "b", "c"], tag=["O"] * 3),
            "a sentence begins again: 1",
        ),
    ],
)
def test_anything_else_is_an_error_that_shows_what_is_right(data: Any, what: str) -> None:
    with pytest.raises(CorpusError) as caught:
        Corpus.read(data() if callable(data) else data)
    assert what in str(caught.value) and "--" not in str(caught.value)


def test_a_format_is_of_files(two_steps: Path) -> None:
    with pytest.raises(cfner.ConfigError, match="Data in memory has no format"):
        cfner.evaluate(two_steps, [(WORDS, TAGS)], format="conll")


# -- wherever a path is taken ------------------------------------------------------------------------------


def pairs(sentences: Any, *types: str) -> list[Any]:
    """Words and tags, of some types or all."""
    kept = [s.only(types) if types else s for s in sentences]
    return [(list(s.words), tags_from_spans(s.spans, len(s), "BIO")) for s in kept]


def test_learn_guard_replay_and_text_from_memory_as_from_files(
    one_step: Path, tiny_corpus: Corpus, tmp_path: Path
) -> None:
    from cfner.corpus.writers import write_sentences

    train, old = tiny_corpus.train, tiny_corpus.test
    texts = [" ".join(s.words) for s in tiny_corpus.dev]
    write_sentences([s.only(["person"]) for s in train], tmp_path / "new.conll")
    write_sentences(old, tmp_path / "old.conll")
    (tmp_path / "text.txt").write_text("\n".join(texts))
    fast = {"epochs": 1, "folds": 0, "unchecked": True, "max_forgetting": 100, "progress": False}
    files = cfner.learn(
        one_step, tmp_path / "new.conll", out=tmp_path / "files", guard=tmp_path / "old.conll",
        replay=tmp_path / "old.conll", unlabelled=tmp_path / "text.txt", **fast,
    )  # fmt: skip
    memory = cfner.learn(
        str(one_step), pairs(train, "person"), out=tmp_path / "memory", guard=pairs(old), replay=pairs(old),
        unlabelled=texts, **fast,
    )  # fmt: skip
    assert files.scores is not None and memory.scores is not None
    assert memory.scores.f1_of == files.scores.f1_of
    recorded = [cfner.history(tmp_path / name)[-1] for name in ("files", "memory")]
    assert recorded[0].data == recorded[1].data  # hashes of the sentences, wherever they came from
    figures = recorded[1].figures
    assert figures is not None and figures.on is not None
    assert figures.on.name == IN_MEMORY and figures.on.hash == recorded[0].figures.on.hash  # type: ignore[union-attr]


def test_evaluate_calibrate_diff_and_check_from_memory(
    two_steps: Path, tiny_corpus: Corpus, tmp_path: Path
) -> None:
    test = pairs(tiny_corpus.test)
    assert (
        cfner.evaluate(two_steps, test).scores.counts == cfner.evaluate(two_steps, tiny_corpus).scores.counts
    )
    assert cfner.diff(two_steps, text=test).judged_types == tuple(tiny_corpus.types)
    said = cfner.diff(two_steps, text=["ada saw the heron", "oslo"])
    assert (said.sentences, said.judged_types) == (2, ())
    assert cfner.diff(f"{two_steps}@1", two_steps, "ada saw the heron in oslo").sentences == 1
    report = cfner.check(test, two_steps, old_labels="use", timing=False)
    assert report.data == IN_MEMORY and report.plan is not None
    own = shutil.copytree(two_steps, tmp_path / "own")
    measured = cfner.calibrate(own, pairs(tiny_corpus.train + tiny_corpus.test))
    assert (measured.data, measured.sentences) == (IN_MEMORY, 80)


def test_a_run_says_that_its_data_was_in_memory(
    tiny_corpus: Corpus, tiny_encoder: Path, tmp_path: Path
) -> None:
    from cfner.interop.reproduction import reproduction
    from cfner.store.lineage import lineage

    data = {split: pairs(tiny_corpus.split_named(split)) for split in ("train", "dev", "test")}
    texts = [" ".join(s.words) for s in tiny_corpus.dev]
    result = cfner.train(
        data, tmp_path / "run", first=2, per_step=2, min_mentions=1, unlabelled=[texts], epochs=1,
        encoder=str(tiny_encoder), max_length=32, progress=False,
    )  # fmt: skip
    manifest = read_run(tmp_path / "run")["manifest"]
    assert result.stream.corpus_name == manifest["corpus"] == IN_MEMORY
    (text,) = result.stream.taken["unlabelled"]
    sentences = [Sentence(tuple(t.split())) for t in texts]
    assert text.startswith(f"{IN_MEMORY}, SHA-256 ") and len(sentences_hash(sentences)) == len(
        text.split()[-1]
    )
    card = reproduction(cfner.open_model(tmp_path / "run"), lineage(tmp_path / "run"))
    assert "--unlabelled TEXT" in card and IN_MEMORY not in card
    assert json.loads(json.dumps(manifest)) == manifest


# -- predict -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tagger(two_steps: Path) -> ContinualTagger:
    return ContinualTagger.open(two_steps)


ONE = "ada saw the heron in oslo"


@pytest.mark.parametrize(
    "given",
    [
        [ONE],
        [ONE.split()],
        [tuple(ONE.split())],
        [{"text": ONE, "id": 3}],
        [{"tokens": ONE.split()}],
        [Sentence(tuple(ONE.split()))],
    ],
)
def test_many_are_answered_with_a_list(given: Any, tagger: ContinualTagger, two_steps: Path) -> None:
    expected = [(e.type, e.first, e.last) for e in tagger.predict(ONE).entities]
    for found in (tagger.predict(given), cfner.predict(two_steps, given)):
        assert isinstance(found, list)
        assert [[(e.type, e.first, e.last) for e in one.entities] for one in found] == [expected]


def test_one_is_answered_with_one(tagger: ContinualTagger, two_steps: Path) -> None:
    for given in (ONE, Sentence(tuple(ONE.split())), {"text": ONE}):
        assert isinstance(tagger.predict(given), Prediction)
        assert isinstance(cfner.predict(two_steps, given), Prediction)


def test_frames_and_columns_are_texts(tagger: ContinualTagger) -> None:
    texts = frame(text=[ONE, "oslo"], id=[1, 2])
    assert [p.to_json().get("id") for p in tagger.predict(texts)] == [1, 2]
    assert len(tagger.predict(texts["text"])) == 2


def test_a_generator_is_read_while_it_is_tagged(two_steps: Path, tagger: ContinualTagger) -> None:
    taken = 0

    def endless() -> Iterator[str]:
        nonlocal taken
        while True:
            taken += 1
            yield ONE

    for found in (tagger.predict(endless()), cfner.predict(two_steps, endless())):
        taken = 0
        assert next(found).spans == tagger.predict(ONE).spans  # scores differ in the last bits, by the batch
        assert 0 < taken < 2000


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"step": 1}, "`step` was given, but the model is open already"),
        ({"runtime": "onnx"}, "`runtime` was given"),
        ({"as_": "csv"}, "`as_` was given, but `out` is not given"),
        ({"input_format": "jsonl"}, "`input_format` was given, but `file` is not given"),
        ({"min_score": 7}, "`min_score` cannot be 7"),
        ({"batch_size": -1}, "`batch_size` cannot be -1"),
    ],
)
def test_what_would_do_nothing_is_refused(given: dict[str, Any], what: str, tagger: ContinualTagger) -> None:
    with pytest.raises(cfner.ConfigError, match=what):
        cfner.predict(tagger.model, ONE, **given)


def test_files_in_and_out(two_steps: Path, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text(f"{ONE}\noslo\n")
    assert len(list(cfner.predict(two_steps, file=tmp_path / "in.txt"))) == 2
    assert cfner.predict(two_steps, file=str(tmp_path / "in.txt"), out=tmp_path / "out.jsonl") == 2
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 2
    with pytest.raises(cfner.ConfigError, match="overwrite=True"):
        cfner.predict(two_steps, ONE, out=tmp_path / "out.jsonl")


@pytest.mark.parametrize(
    "given", [7, None, b"text", [3], [["a", 3]], {"body": "x"}, Path("letters.txt"), [None]]
)
def test_whatever_cannot_be_tagged_is_an_error_that_shows_the_call(
    given: Any, tagger: ContinualTagger
) -> None:
    with pytest.raises(CorpusError) as caught:
        tagger.predict(given)
    assert "Give " in str(caught.value) or "Write " in str(caught.value)


def test_words_that_look_like_one_sentence_are_warned_of(
    tagger: ContinualTagger, caplog: pytest.LogCaptureFixture
) -> None:
    assert len(tagger.predict(["oslo", "quito"])) == 2 and not caplog.records
    tagger.predict(ONE.split())
    assert "predict([words])" in caplog.text


def test_what_to_do_after_a_check_of_data_in_memory_can_be_done(
    one_step: Path, tiny_corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data = pairs(tiny_corpus.train, "person")
    given = {"timing": False, "epochs": 1, "method": "cfner", "k": 2}
    told = cfner.check(data, one_step, **given).next_command
    assert told.startswith(f"cfner.learn({str(one_step)!r}, data, out=") and "epochs=1" in told
    learned = eval(told.removesuffix(")") + ", folds=0, unchecked=True)", {"cfner": cfner, "data": data})
    assert learned.plan.new == ("person",) and learned.folder.is_dir()
    unsplit = cfner.check(data, timing=False).next_command
    assert len(eval(unsplit, {"Corpus": Corpus, "data": data}).test) > 0
    splits = {"train": data, "test": data}
    planned = cfner.check(splits, timing=False).next_command.replace(")", ", dry_run=True)")
    assert eval(planned, {"cfner": cfner, "data": splits}).stream.first == 1


def test_the_command_after_a_check_sets_parameters_as_the_command_line_does(
    one_step: Path, tiny_corpus: Corpus, tmp_path: Path
) -> None:
    from cfner.corpus.writers import write_sentences

    write_sentences([s.only(["person"]) for s in tiny_corpus.train], tmp_path / "new.conll")
    told = cfner.check(tmp_path / "new.conll", one_step, timing=False, method="cfner", k=2).next_command
    assert told.endswith("--set k=2")
