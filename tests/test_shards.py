"""Many files into a folder: the same bytes whoever tags them, nothing lost or done twice, nothing mixed."""

from __future__ import annotations

import contextlib
import json
import pickle
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import many_documents
import warm
from cfner import predict
from cfner.cli.main import main
from cfner.corpus.formats.spacy import load_spacy
from cfner.errors import CfnerError, ConfigError, CorpusError, ModelError
from cfner.files.lock import locked
from cfner.interop.shards import run
from cfner.interop.shards.cutting import Shard, cut
from cfner.interop.shards.inputs import find_inputs
from cfner.interop.shards.model_source import ModelSource
from cfner.interop.shards.run import TaggedFiles, tag_files
from cfner.interop.shards.tagging import Refused, Settings, Tagged, tag_shard
from cfner.interop.text_stream import TextLayout, read_texts
from cfner.network.prediction import TaggingModel
from cfner.store.open import open_model

SMALL = 600  # bytes of a shard: the files below have several
SENTENCES = [
    "today ada saw the badger in oslo",
    "a stew with emmy and old kurt",
    "the heron of new york went to the river",
    "",
    "old kurt went to quito with a curry",
]


@pytest.fixture
def warm_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", warm.python())


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("texts") / "texts"
    (folder / "more").mkdir(parents=True)
    many = [SENTENCES[i % 5] for i in range(60)]
    (folder / "a.jsonl").write_text(
        "".join(json.dumps({"text": t, "n": i}) + "\n" for i, t in enumerate(many))
    )
    (folder / "b.txt").write_text("\n".join(many))  # without a line feed at its end
    columns = "\n".join("".join(f"{word}\tO\n" for word in text.split()) for text in many if text)
    (folder / "more" / "c.conll").write_text("word\tner\n" + columns)
    (folder / "more" / "empty.txt").write_text("")
    return folder


class InProcess:
    """Tags here, and counts; ``fails`` decides about shards that end the run."""

    def __init__(self, model: TaggingModel, settings: Settings, fails: Callable[[Shard], bool]) -> None:
        self.model, self.settings, self.fails, self.slots = model, settings, fails, 2
        self.waiting: list[Shard] = []
        self.tagged: list[tuple[str, int]] = []

    def start(self, shard: Shard) -> None:
        self.waiting.append(shard)

    def next(self) -> tuple[Shard, Tagged | Refused]:
        shard = self.waiting.pop(len(self.tagged) % len(self.waiting))  # not in the order of the file
        if self.fails(shard):
            raise KeyboardInterrupt
        self.tagged.append((Path(shard.file).name, shard.number))
        return shard, tag_shard(self.model, shard, self.settings)

    def stop(self) -> None: ...


@pytest.fixture
def here(two_steps: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[tuple[str, int]]]:
    """Tag in this process; returns the shards that were tagged."""
    opened = open_model(two_steps)

    def tag(*given: Any, fails: Callable[[Shard], bool] = lambda shard: False, **options: Any) -> Any:
        files, out, settings = given
        workers = InProcess(opened, settings, fails)
        monkeypatch.setattr(run, "local_workers", lambda *_: workers)
        with contextlib.suppress(KeyboardInterrupt):
            tag_files(two_steps, files, out, settings, **options)
        return workers.tagged

    return tag


def outputs(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    }


# -- what is written ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["jsonl", "csv", "tsv", "conll", "docbin"])
def test_shards_together_are_the_file(
    format: str, texts: Path, two_steps: Path, tmp_path: Path, here: Any
) -> None:
    here([texts], tmp_path / "cut", Settings(format, shard_bytes=SMALL))
    here([texts], tmp_path / "whole", Settings(format))
    if format == "docbin":
        for name in ("a", "b", "more/c", "more/empty"):
            assert documents(tmp_path / "cut" / name) == documents(tmp_path / "whole" / name)
        assert len(list((tmp_path / "cut" / "a").iterdir())) > 3
        return
    wanted = {f"{name}.{format}" for name in ("a", "b", "more/c", "more/empty")}
    assert outputs(tmp_path / "cut").keys() == wanted
    for name, source in {"a": "a.jsonl", "b": "b.txt", "more/c": "more/c.conll"}.items():
        predict(two_steps, file=texts / source, out=tmp_path / f"alone.{format}", overwrite=True)
        for folder in ("cut", "whole"):
            assert close((tmp_path / folder / f"{name}.{format}").read_text(), format) == close(
                (tmp_path / f"alone.{format}").read_text(), format
            )


def documents(folder: Path) -> list[Any]:
    spacy = load_spacy()
    vocab = spacy.blank("xx").vocab
    parts = (spacy.tokens.DocBin().from_disk(part) for part in sorted(folder.iterdir()))
    docs = (doc for part in parts for doc in part.get_docs(vocab))
    return [(doc.text, [(entity.text, entity.label_) for entity in doc.ents]) for doc in docs]


def close(content: str, format: str) -> list[Any]:
    """Lines with rounded scores: other batches may change the last digits."""
    if format == "jsonl":
        return [
            json.loads(line, parse_float=lambda score: f"{float(score):.3f}") for line in content.splitlines()
        ]
    cells = [line.split("," if format == "csv" else "\t") for line in content.splitlines()]
    return cells if format == "conll" else [[*row[:-1], row[-1][:4]] for row in cells]


@pytest.mark.usefixtures("warm_workers")
def test_the_number_of_workers_changes_no_byte(texts: Path, two_steps: Path, tmp_path: Path) -> None:
    found = []
    for workers in (1, 2, 3):
        files = [texts / "b.txt", texts / "a.jsonl"] if workers == 2 else [texts / "a.jsonl", texts / "b.txt"]
        out = tmp_path / str(workers)
        done = tag_files(two_steps, files, out, Settings(shard_bytes=SMALL), workers=workers)
        assert done == TaggedFiles(files=2, texts=120, before=0)
        found.append(outputs(out))
    assert found[0] == found[1] == found[2]
    assert [json.loads(line)["n"] for line in found[0]["a.jsonl"].splitlines()] == list(range(60))


@pytest.mark.usefixtures("warm_workers")
def test_an_onnx_runtime_is_exported_once_for_all(texts: Path, two_steps: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    given: dict[str, Any] = {"file": [texts / "a.jsonl"], "runtime": "onnx-int8"}
    assert predict(two_steps, **given, out=tmp_path / "out", workers=1) == 60
    predict(two_steps, **given, out=tmp_path / "alone.jsonl")
    assert close((tmp_path / "out/a.jsonl").read_text(), "jsonl") == close(
        (tmp_path / "alone.jsonl").read_text(), "jsonl"
    )


# -- cutting -----------------------------------------------------------------------------------------------


def test_shards_have_the_sentences_and_lines_of_the_file(texts: Path, tmp_path: Path) -> None:
    (tmp_path / "mark.jsonl").write_bytes(b'\xef\xbb\xbf{"text": "ada"}\r\n\n\xc2\xa0\n{"text": "emmy"}\n')
    # a second file is glued to the first, comments, documents, a word that looks like a comment
    (tmp_path / "odd.conll").write_text(
        "# id 1\nada\tO\n \n-DOCSTART-\tO\n\n#ada\tO\nemmy\tO\n\n\n# x\nkurt\tO"
    )
    (tmp_path / "tagged.txt").write_text("ada O\nsaw O\n\n" * 20)
    for path in [*texts.rglob("*.*"), *tmp_path.iterdir()]:
        layout = TextLayout.of(path)
        for size in (1, 7, 100, 1 << 18):
            shards = list(cut(path, layout, numbered=True, size=size))
            assert b"".join(shard.content for shard in shards) == path.read_bytes()
            assert [shard.number for shard in shards] == list(range(1, len(shards) + 1))
            assert [shard.last for shard in shards] == [False] * (len(shards) - 1) + [True]
            together = [sentence for shard in shards for sentence in shard.sentences()]
            assert together == list(read_texts(path))  # with their places
            texts_before = 1
            for shard in shards:
                assert shard.first_text == texts_before
                texts_before += len(list(shard.sentences()))


# -- which files -------------------------------------------------------------------------------------------


def test_files_folders_and_patterns(
    texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.copytree(texts, tmp_path / "texts")
    monkeypatch.chdir(tmp_path)
    Path("texts/image.png").write_bytes(b"")
    Path("texts/.hidden.txt").write_text("x")
    Path("texts/odd[1].txt").write_text("x")

    def named(*given: str) -> list[str]:
        return [one.name for one in find_inputs(given, Path("texts/out"))]

    assert named("texts/*.jsonl") == ["a"]
    assert named("texts/odd[1].txt") == ["odd[1]"]  # a name that exists is not a pattern
    assert named("texts") == ["a", "b", "more/c", "more/empty", "odd[1]"]
    assert "1 files are not text files by their suffix, such as image.png" in caplog.text
    assert named("texts/**/c*", str(tmp_path / "texts/*.txt"), "texts/b.txt") == ["more/c", "b", "odd[1]"]
    Path("texts/out").mkdir()
    Path("texts/out/a.jsonl").write_text("")  # of an earlier run
    assert named("texts/**/*.jsonl") == ["a"]
    with pytest.raises(CorpusError, match="texts/x\\*: No file matches this pattern"):
        named("texts/x*")
    with pytest.raises(CorpusError, match="no such file"):
        named("texts/x.txt")
    Path("texts/a.txt").write_text("x")
    with pytest.raises(ConfigError, match=r"a\.jsonl and texts/a\.txt would have the same output, 'a'"):
        named("texts/*")


@pytest.fixture
def cfner(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[str, str]]:
    def run_command(*words: object) -> tuple[str, str]:
        monkeypatch.setattr(sys, "argv", ["cfner", *map(str, words)])
        try:
            main()
        except SystemExit as end:
            said = capsys.readouterr()
            assert not end.code, said.err
            return said
        raise AssertionError

    return run_command


@pytest.mark.usefixtures("warm_workers")
def test_the_command_takes_a_pattern_and_goes_on(
    cfner: Any, texts: Path, two_steps: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(texts.parent)
    out = tmp_path / "out"
    words = ["predict", two_steps, "texts/*.jsonl", "--out", out]
    assert "60 sentences of 1 files tagged: " in cfner(*words, "--workers", 2)[1]
    made = outputs(out)
    assert "All 1 files were tagged before" in cfner(*words, "--workers", 1)[1]
    both = ["--file", "texts/a.jsonl", "--file", "texts/b.txt"]
    said = cfner(*words[:2], *both, "--out", out)[1]
    assert "120 sentences of 2 files tagged, 1 of them before" in said
    assert outputs(out)["a.jsonl"] == made["a.jsonl"] and "b.jsonl" in outputs(out)
    cfner(*words[:2], "texts/a.jsonl", "texts/b.txt", "--out", tmp_path / "table", "--as", "csv")
    assert sorted(outputs(tmp_path / "table")) == ["a.csv", "b.csv"]


def test_a_text_with_a_star_stays_a_text(
    cfner: Any, texts: Path, two_steps: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(texts)
    for text in ("*", "ada saw 3 * 4", "what? [a]"):
        assert json.loads(cfner("predict", two_steps, text)[0])["text"] == text
        cfner("predict", two_steps, text, "--out", tmp_path / "x.jsonl", "--overwrite")
        assert json.loads((tmp_path / "x.jsonl").read_text())["text"] == text
    cfner("predict", two_steps, "ada saw 3 * 4", "--as", "conll", "--out", tmp_path / "plain")
    assert (tmp_path / "plain").is_file()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["b.txt", "--workers", "1"], "Many files need a folder for their outputs. Add --out FOLDER"),
        (["*.txt", "--workers", "1", "--out", "x.csv"], "this is the name of one file"),
        (["b.txt", "--out", "OUT", "--as", "json"], "cannot be written as 'json'"),
        (["b.txt", "--out", "OUT", "--as", "table"], "cannot be written as 'table'"),
        (["b.txt", "ada saw", "--out", "OUT"], "ada saw: no such file"),
        (["b.txt", "--out", "OUT", "--on", "rai"], "Did you mean 'ray'"),
        (["b.txt", "--out", "OUT", "--address", "auto"], "Add --on ray"),
        (["b.txt", "--out", "OUT", "--text", "ada"], "Both a text and files"),
        (["--workers", "2", "--out", "OUT"], "There is no file to tag"),
        (["b.txt", "a.jsonl", "--out", "."], "would replace an input"),
        (["b.txt", "--out", "OUT", "--runtime", "onxx"], "Did you mean 'onnx'"),
    ],
)
def test_what_makes_no_sense_is_said(
    words: list[str],
    expected: str,
    texts: Path,
    two_steps: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from typer.testing import CliRunner

    from cfner.cli.main import app

    monkeypatch.chdir(texts)
    given = [word.replace("OUT", str(tmp_path / "out")) for word in words]
    error = CliRunner().invoke(app, ["predict", str(two_steps), *given]).exception
    assert isinstance(error, CfnerError) and expected in str(error)


# -- resuming ----------------------------------------------------------------------------------------------


def test_a_stopped_run_goes_on_with_what_is_missing(texts: Path, tmp_path: Path, here: Any) -> None:
    settings = Settings("csv", shard_bytes=SMALL)
    all_shards = here([texts], tmp_path / "once", settings)
    assert len(all_shards) > 12
    seen: list[tuple[str, int]] = []
    for most in (3, 9):
        count = iter(range(100))
        seen += here(
            [texts], tmp_path / "twice", settings, fails=lambda _, most=most, count=count: next(count) >= most
        )
        assert outputs(tmp_path / "twice") != outputs(tmp_path / "once")
    seen += here([texts], tmp_path / "twice", settings)
    assert sorted(seen) == sorted(all_shards)  # each once
    assert outputs(tmp_path / "twice") == outputs(tmp_path / "once")
    assert here([texts], tmp_path / "twice", settings) == []
    assert not list((tmp_path / "twice/.cfner/shards").rglob("*-*"))


def test_a_removed_output_is_made_again(texts: Path, tmp_path: Path, here: Any) -> None:
    settings = Settings()
    here([texts], tmp_path / "out", settings)
    made = outputs(tmp_path / "out")
    (tmp_path / "out/b.jsonl").unlink()
    assert here([texts], tmp_path / "out", settings) == [("b.txt", 1)]
    assert outputs(tmp_path / "out") == made


@pytest.mark.usefixtures("warm_workers")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_run_goes_on(how: signal.Signals, texts: Path, two_steps: Path, tmp_path: Path) -> None:
    """While workers tag: no output is half written, and the rest is tagged by the next run."""
    files = tmp_path / "texts"
    files.mkdir()
    for number in range(40):
        shutil.copy(texts / "a.jsonl", files / f"{number}.jsonl")
    words = [sys.executable, "-m", "cfner", "predict", two_steps, str(files), "--workers", "2", "--out"]
    killed, once = tmp_path / "killed", tmp_path / "once"
    process = subprocess.Popen([*words, str(killed)], stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while len(list(killed.glob("*.jsonl"))) < 3 and time.monotonic() < until and process.poll() is None:
        time.sleep(0.005)
    process.send_signal(how)
    said = process.communicate()[1]
    assert how == signal.SIGKILL or "run the same command again to resume" in said
    finished = {path: path.stat().st_ino for path in killed.glob("*.jsonl")}
    assert 3 <= len(finished) < 40
    for folder in (killed, once):
        done = subprocess.run([*words, str(folder)], check=True, capture_output=True, text=True)
        assert "2400 sentences of 40 files tagged" in done.stderr
    assert outputs(killed) == outputs(once)
    assert all(path.stat().st_ino == number for path, number in finished.items())  # not written again


def test_another_model_or_setting_is_refused(texts: Path, two_steps: Path, tmp_path: Path, here: Any) -> None:
    files, out = [texts / "a.jsonl"], tmp_path / "out"
    here(files, out, Settings())
    made = outputs(out)
    with pytest.raises(ConfigError, match=r"begun with another model \(.*, step 2\).*`overwrite=True`"):
        here(files, out, Settings(), step=1)
    with pytest.raises(ConfigError, match=r"begun with `min_score` None \(now 0.5\)\."):
        here(files, out, Settings(min_score=0.5))
    (out / ".cfner/run.json").write_text("{")
    with pytest.raises(ConfigError, match="begun with an unknown version"):
        here(files, out, Settings())
    assert outputs(out) == made
    assert here(files, out, Settings(min_score=1.0), overwrite=True) == [("a.jsonl", 1)]
    assert outputs(out) != made


def test_a_changed_input_is_refused(texts: Path, tmp_path: Path, here: Any) -> None:
    files, out = tmp_path / "texts", tmp_path / "out"
    shutil.copytree(texts, files)
    settings = Settings(shard_bytes=SMALL)

    def fails(shard: Shard) -> bool:
        return shard.file.endswith("a.jsonl") and shard.number > 3

    here([files / "b.txt", files / "a.jsonl"], out, settings, fails=fails)
    assert (out / ".cfner/shards/a").is_dir()
    with (files / "a.jsonl").open("a") as file:
        file.write('{"text": "ada"}\n')
    with pytest.raises(ConfigError, match=r"a\.jsonl: The file changed since it was tagged into"):
        here([files], out, settings)
    tagged = here([files / "b.txt", files / "a.jsonl"], out, settings, overwrite=True)
    assert {name for name, _ in tagged} == {"a.jsonl"}  # what did not change is kept
    assert len((out / "a.jsonl").read_text().splitlines()) == 61


def test_an_input_that_changes_meanwhile_has_no_output(texts: Path, tmp_path: Path, here: Any) -> None:
    file = tmp_path / "a.jsonl"
    shutil.copy(texts / "a.jsonl", file)

    def grow(shard: Shard) -> bool:
        if shard.number == 1:
            file.write_text(file.read_text() + '{"text": "ada"}\n')
        return False

    with pytest.raises(CorpusError, match="changed while it was tagged"):
        here([file], tmp_path / "out", Settings(shard_bytes=SMALL), fails=grow)
    assert outputs(tmp_path / "out") == {}


def test_what_is_not_ours_is_not_replaced(texts: Path, tmp_path: Path, here: Any) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/a.jsonl").write_text("mine")
    with pytest.raises(ConfigError, match="The output exists, and was not written by this run"):
        here([texts], tmp_path / "out", Settings())
    assert outputs(tmp_path / "out") == {"a.jsonl": b"mine"}


@pytest.mark.usefixtures("warm_workers")
def test_a_second_run_at_the_same_time_is_refused(texts: Path, two_steps: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "cfner", "predict", two_steps, texts / "b.txt", "--out", tmp_path]
    with locked(tmp_path):
        done = subprocess.run(words, check=False, capture_output=True, text=True)
    assert done.returncode == 2 and "Another process is writing here" in done.stderr


# -- errors ------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("warm_workers")
def test_a_bad_line_is_named_and_the_rest_is_tagged(texts: Path, two_steps: Path, tmp_path: Path) -> None:
    files, out = tmp_path / "texts", tmp_path / "out"
    shutil.copytree(texts, files)
    lines = (texts / "a.jsonl").read_text().splitlines()
    (files / "a.jsonl").write_text("\n".join([*lines[:40], "{", *lines[40:]]))
    (files / "bad.txt").write_bytes(b"\xff\n")
    settings = Settings(shard_bytes=SMALL)
    with pytest.raises(CorpusError) as caught:
        tag_files(two_steps, [files], out, settings, workers=2)
    said = str(caught.value)
    assert f"{files}/a.jsonl:41: Not valid JSON" in said and f"{files}/bad.txt:1: not valid UTF-8" in said
    assert "3 of 5 files are tagged" in said
    assert sorted(outputs(out)) == ["b.jsonl", "more/c.jsonl", "more/empty.jsonl"]
    shutil.copy(texts / "a.jsonl", files)
    (files / "bad.txt").write_text("")
    tag_files(two_steps, [files], out, settings, workers=2, overwrite=True)
    tag_files(two_steps, [texts], tmp_path / "good", settings, workers=2)
    assert outputs(out) == {**outputs(tmp_path / "good"), "bad.jsonl": b""}


def test_a_worker_that_dies_is_an_error_that_names_the_shard(
    texts: Path, two_steps: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\nkill -9 $$\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    with pytest.raises(CfnerError, match=r"a.jsonl, lines 1 to \d+: The worker .* killed by signal 9"):
        tag_files(two_steps, [texts / "a.jsonl"], tmp_path / "out", Settings(shard_bytes=SMALL), workers=2)


@pytest.mark.usefixtures("warm_workers")
def test_a_worker_says_why_it_cannot_open_the_model(texts: Path, tmp_path: Path, one_step: Path) -> None:
    with (one_step / "steps/0001/model.safetensors").open("ab") as file:
        file.write(b"x")
    with pytest.raises(CfnerError, match=r"model\.safetensors"):
        tag_files(one_step, [texts / "a.jsonl"], tmp_path / "out", Settings(), workers=1)


def test_the_step_is_that_of_the_beginning(two_steps: Path) -> None:
    source = ModelSource.of(two_steps, None, None)
    assert source.step == 2 and source.identity != ModelSource.of(f"{two_steps}@1", None, None).identity
    assert ModelSource.of(f"{two_steps}@1", None, None).packed().open("cpu").labels.types == (
        "animal",
        "city",
    )
    with pytest.raises(ModelError):
        ModelSource.of(two_steps, 7, None)


def test_an_open_model_is_refused(two_steps: Path, texts: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Give its path"):
        predict(open_model(two_steps), file=[texts], out=tmp_path / "out", workers=1)
    with pytest.raises(ConfigError, match="There is no file to tag"):
        predict(two_steps, file=[], out=tmp_path / "out")


# -- a cluster (a real one with a node that dies: tests/torture) --------------------------------------------


class OneMachine:
    """What is asked of Ray, done here."""

    exceptions = SimpleNamespace(RayError=RuntimeError)

    def __init__(self) -> None:
        self.asked: dict[str, Any] = {}

    def is_initialized(self) -> bool:
        return False

    def init(self, **settings: Any) -> None:
        self.asked |= settings

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 2.0}

    def put(self, value: Any) -> Any:
        return pickle.dumps(value)

    def remote(self, **resources: Any) -> Any:
        self.asked |= resources
        return lambda work: SimpleNamespace(remote=lambda *given: Task(work, given))

    def wait(self, tasks: list[Any], *, num_returns: int) -> tuple[list[Any], list[Any]]:
        return [tasks[-1]], tasks[:-1]

    def get(self, task: Any) -> Any:
        if isinstance(task, bytes):
            return pickle.loads(task)
        try:
            return task.work(*task.given)
        except OSError as error:
            raise RuntimeError(str(error)) from error

    def cancel(self, task: Any, *, force: bool) -> None: ...

    def shutdown(self) -> None:
        self.asked["shut"] = True


@dataclass(frozen=True, eq=False)
class Task:
    work: Callable[..., Any]
    given: tuple[Any, ...]


def test_a_cluster_gets_the_model_and_the_text_and_gives_the_same_bytes(
    texts: Path, two_steps: Path, tmp_path: Path, here: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine: Any = OneMachine()
    monkeypatch.setitem(sys.modules, "ray", machine)
    settings = Settings(shard_bytes=SMALL)
    here([texts], tmp_path / "here", settings)
    tag_files(two_steps, [texts], tmp_path / "there", settings, on="ray", address="auto")
    assert outputs(tmp_path / "here") == outputs(tmp_path / "there")
    assert machine.asked["address"] == "auto" and machine.asked["max_retries"] > 0 and machine.asked["shut"]

    def dies(*_: Any) -> None:
        raise OSError("the node died three times")

    monkeypatch.setattr("cfner.interop.shards.cluster.tag_shard", dies)
    with pytest.raises(CfnerError, match=r"lines \d+ to \d+: the node died three times .*resume"):
        tag_files(two_steps, [texts], tmp_path / "lost", settings, on="ray")


@pytest.mark.usefixtures("warm_workers")
def test_the_benchmark_counts_what_it_made(two_steps: Path) -> None:
    found = many_documents.main([str(two_steps), "-n", "200", "--workers", "2"])
    assert found["documents"] == 200 and 200 * 100 < found["words"] < 200 * 210
    assert found["documents/s"] > 0 and found["peak memory, MB"] > 0
