"""Text without labels: what is read, what is trained on, what only judges, and what is said about it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cfner import learn
from cfner.cli.main import app
from cfner.corpus.corpus import Corpus
from cfner.corpus.sentence import Sentence
from cfner.corpus.writers import write_sentences
from cfner.errors import CorpusError
from cfner.interop.text_stream import unlabelled_text
from cfner.methods import method_class, method_names
from cfner.practice.history.history import history, rollback
from cfner.practice.learn.learned import Learned
from cfner.practice.learn.types_found import HANDFUL, TypesFound, not_reminded
from cfner.practice.learn.unlabelled import GIVEN, UnlabelledText, read_unlabelled
from cfner.training.progress import Silent

OLD = ("animal", "city")
FAST: dict[str, Any] = {"epochs": 2, "method": "own-other"}


@pytest.fixture
def one_step(two_steps: Path, tmp_path: Path) -> Path:
    """A model that knows animal and city."""
    model = Path(shutil.copytree(two_steps, tmp_path / "model"))
    rollback(model, 1)
    return model


@pytest.fixture
def new(tiny_corpus: Corpus, tmp_path: Path) -> str:
    """Sentences with dishes and without any old type."""
    plain = [s.only(["dish"]) for s in tiny_corpus.train if not s.types & set(OLD)][:12]
    write_sentences(plain, tmp_path / "new.conll", format="conll")
    return str(tmp_path / "new.conll")


def text_of(corpus: Corpus, times: int = 1) -> list[str]:
    """Many different sentences that mention old types."""
    return [" ".join((*s.words, str(n))) for n in range(times) for s in corpus.dev if s.types & set(OLD)]


class UntilItBegins(Silent):
    """Keeps what was logged before the first batch."""

    def __init__(self, log: pytest.LogCaptureFixture) -> None:
        self.log, self.said = log, ""
        log.clear()
        log.set_level("INFO", "cfner")

    def start(self, name: str, epochs: int, batches: int) -> None:
        self.said = self.said or " ".join(self.log.messages)


# -- reading -----------------------------------------------------------------------------------------------


def test_files_folders_texts_and_sentences(tiny_data: Path, tiny_corpus: Corpus, tmp_path: Path) -> None:
    (tmp_path / "my letters.txt").write_text("the heron of oslo\n\nnew york\n")
    (tmp_path / "more.jsonl").write_text('{"tokens": ["a", "stew"]}\n{"text": "the otter"}\n')
    (tmp_path / "some.conll").write_text("oslo\tB-city\nrains\tO\n")
    files = [tmp_path / "my letters.txt", tmp_path / "more.jsonl", str(tmp_path / "some.conll"), tiny_data]
    given = ["ada saw the heron", tiny_corpus.test[0]]
    found = read_unlabelled([*files, *given, files[0]])
    assert [len(text) for text in found.values()] == [2, 2, 1, len(tiny_corpus.train), 2]
    assert list(found) == [*map(str, files), GIVEN]
    assert not any(sentence.spans for text in found.values() for sentence in text)
    assert read_unlabelled([]) == {}


def test_columns_in_a_txt_file_are_words_not_texts(tiny_data: Path, tiny_corpus: Corpus) -> None:
    """``learn``, ``check``, ``train`` and ``consolidate`` all read what they are given in this way."""
    file = tiny_data / "train.txt"
    (found,) = read_unlabelled([file]).values()
    assert [s.words for s in found] == [s.words for s in tiny_corpus.train]
    assert not any(sentence.spans for sentence in found)


@pytest.mark.parametrize("name", ["missing.txt", "my missing letters.txt", "missing", "missing/folder"])
def test_a_misspelt_file_is_not_a_text(name: str, tmp_path: Path) -> None:
    for path in (name, str(tmp_path / name), tmp_path / name):
        with pytest.raises(CorpusError, match="no such file"):
            read_unlabelled([path])


def test_a_file_without_text_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("\n\n")
    with pytest.raises(CorpusError, match="contains no text"):
        unlabelled_text(tmp_path / "empty.txt")


# -- which part judges -------------------------------------------------------------------------------------


def sentences(count: int, word: str = "oslo") -> tuple[Sentence, ...]:
    return tuple(Sentence((word, str(number))) for number in range(count))


def test_a_share_is_held_out_and_nothing_that_judges_is_trained_on() -> None:
    texts = {"a": sentences(200), "b": (*sentences(40, "quito"), *sentences(40))}
    divided = UnlabelledText.divide(texts, new=sentences(20), judging=sentences(10, "quito"))
    pool = {s.key for s in divided.pool}
    compared = {s.key for text in divided.compared.values() for s in text}
    assert not pool & compared and not divided.trained_on
    assert not pool & {s.key for s in (*sentences(20), *sentences(10, "quito"))}
    assert 0 < len(divided.pool) < len([*texts["a"], *texts["b"]])
    assert divided == UnlabelledText.divide(texts, new=sentences(20), judging=sentences(10, "quito"))


def test_a_few_sentences_are_trained_on_and_compared_on() -> None:
    divided = UnlabelledText.divide(
        {"a": sentences(30), "b": sentences(5, "quito")}, (), sentences(5, "quito")
    )
    assert divided.pool == sentences(30) and divided.trained_on == {"a"}
    assert divided.compared == {"a": sentences(30), "b": sentences(5, "quito")}


def test_of_a_large_text_enough_is_compared() -> None:
    divided = UnlabelledText.divide({"a": sentences(9000)}, (), ())
    assert (len(divided.pool), len(divided.compared["a"])) == (8000, 1000)


# -- learning ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["own-other", "cfner"])
def test_it_is_trained_on_and_recorded(
    method: str,
    one_step: Path,
    new: str,
    tiny_corpus: Corpus,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    (tmp_path / "text.txt").write_text("\n".join(text_of(tiny_corpus, 12)))
    watch = UntilItBegins(caplog)

    def learned(out: str, **more: Any) -> Learned:
        return learn(one_step, new, out=tmp_path / out, folds=0, **{**FAST, "method": method}, **more)

    without = learned("without")
    done = learned("with", unlabelled=[tmp_path / "text.txt"], progress=watch)
    assert without.reminders is None and done.reminders is not None
    train = history(tmp_path / "with")[-1].data or {}
    assert done.reminders == train["reminders"]
    assert train["reminders"]["sentences"] == train["train"]["sentences"] < train["unlabelled"]["sentences"]
    mentions = train["reminders"]["mentions"]
    assert set(mentions) == set(OLD) and sum(mentions.values()) > 0
    assert f"city {mentions['city']}" in watch.said
    held_out = done.agreement[1]
    assert not held_out.trained_on and 0 < held_out.sentences < len(text_of(tiny_corpus, 12))
    weights = [(tmp_path / out / "steps/0003/model.safetensors").read_bytes() for out in ("with", "without")]
    assert weights[0] != weights[1]
    assert done.to_json()["agreement"][1]["trained_on"] is False


def test_the_ratio_says_how_much(one_step: Path, new: str, tiny_corpus: Corpus, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("\n".join(text_of(tiny_corpus, 2)))
    words = [
        "learn",
        one_step,
        new,
        "--unlabelled",
        tmp_path / "text.txt",
        "--epochs",
        "1",
        "--json",
        "--folds",
        "0",
    ]

    def told(out: str, *more: object) -> dict[str, Any]:
        done = CliRunner().invoke(app, [str(w) for w in (*words, "--out", tmp_path / out, *more)])
        assert done.exit_code == 0, done.output
        return dict(json.loads(done.stdout))

    half = told("half", "--unlabelled-ratio", "0.5")
    train = (history(tmp_path / "half")[-1].data or {})["train"]["sentences"]
    assert half["reminders"]["sentences"] == round(train / 2)
    assert half["agreement"][1]["trained_on"] is True  # too few to hold some out
    none = told("none", "--unlabelled-ratio", "0")
    assert none["reminders"] is None and none["agreement"][1]["trained_on"] is False
    finetune = told("finetune", "--method", "finetune")
    assert finetune["reminders"] is None and finetune["agreement"][1]["trained_on"] is False
    assert "forgotten" in finetune["promise"]


def test_texts_and_sentences_in_python(one_step: Path, new: str, tiny_corpus: Corpus, tmp_path: Path) -> None:
    given = [*text_of(tiny_corpus)[:5], *[s for s in tiny_corpus.test if "city" in s.types][:5]]
    done = learn(one_step, new, out=tmp_path / "m2", unlabelled=given, folds=0, **FAST)
    assert done.reminders is not None and done.reminders["sentences"] == 10
    assert (done.agreement[1].where, done.agreement[1].trained_on) == (GIVEN, True)


# -- what is said ------------------------------------------------------------------------------------------


def test_types_that_nothing_mentions_are_named_before_it_begins(
    one_step: Path, new: str, tiny_corpus: Corpus, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def notes(out: str, **more: Any) -> tuple[Learned, str]:
        watch = UntilItBegins(caplog)
        done = learn(one_step, new, out=tmp_path / out, folds=0, **FAST, progress=watch, **more)
        return done, watch.said

    done, said = notes("m2")
    assert done.not_reminded == OLD and "animal, city" in said and "`unlabelled`" in said
    done, said = notes("m3", unlabelled=text_of(tiny_corpus))
    assert done.not_reminded == () and "`unlabelled`" not in said
    write_sentences([s.only(["city"]) for s in tiny_corpus.train], tmp_path / "replay.conll", format="conll")
    done, said = notes("m4", replay=tmp_path / "replay.conll")
    assert done.not_reminded == ("animal",)


def test_the_note_is_seen_where_nobody_watches(one_step: Path, new: str, tmp_path: Path) -> None:
    words = ["learn", str(one_step), new, "--out", str(tmp_path / "m2"), "--epochs", "1", "--folds", "0"]
    done = CliRunner().invoke(app, words)
    assert "reminds the model of animal, city" in " ".join(done.stderr.split())
    assert "distillation" in done.stdout and "not guaranteed" in done.stdout


def test_a_sample_counts_for_all() -> None:
    rare = TypesFound(sentences=1000, sample=100, mentions={"city": 1, "animal": 0})
    assert not_reminded(["city", "animal"], [rare]) == ("animal",)
    some = TypesFound(10, 10, {"animal": HANDFUL - 1})
    assert not_reminded(["animal"], [rare, some]) == ("animal",)
    assert not_reminded(["animal"], [some, some]) == ()


def test_every_method_says_what_it_promises() -> None:
    assert all(method_class(name).promise for name in method_names())
    assert method_class("own-other+fusion").promise == method_class("own-other").promise
    assert method_class("own-other").promise != method_class("cfner").promise
