"""The commands, as a user types them."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args, get_type_hints

import pytest
from rich.console import Console

import warm
from cfner.cli.main import main
from cfner.corpus.corpus import Corpus
from cfner.corpus.sentence import Span
from cfner.corpus.writers import write_sentences
from cfner.errors import CfnerError
from cfner.methods import method_names
from cfner.tagger import ContinualTagger
from cfner.training.bars import Bars, watcher
from cfner.training.notebook_bars import NotebookBars
from commands import COMMANDS


@dataclass
class Said:
    code: int
    out: str
    err: str


Cfner = Callable[..., Said]


@pytest.fixture
def cfner(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cfner:
    """Run a command in this process, through the same entry point as the installed script."""
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("CFNER_DEBUG", "")

    def run(*words: object, stdin: bytes = b"") -> Said:
        monkeypatch.setattr(sys, "argv", ["cfner", *map(str, words)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        try:
            main()
            code = 0
        except SystemExit as done:
            code = int(done.code or 0)
        captured = capsys.readouterr()
        return Said(code, captured.out, captured.err)

    return run


@pytest.fixture
def train_words(tiny_data: Path, tiny_encoder: Path) -> list[object]:
    flags = "--first 2 --per-step 2 --min-mentions 1 --epochs 1 --batch-size 8 --lr-encoder 0.003"
    return ["train", tiny_data, "--encoder", tiny_encoder, *flags.split()]


# -- help --------------------------------------------------------------------------------------------------


def test_help_comes_at_once() -> None:
    before = os.times()
    done = subprocess.run(
        [sys.executable, "-m", "cfner", "--help"], capture_output=True, text=True, check=True
    )
    after = os.times()
    # of the processor, so that a busy machine says nothing about us
    assert after.children_user + after.children_system - before.children_user - before.children_system < 1.5
    for command in ("data", "demo", "train", "evaluate", "predict", "methods", "encoders"):
        assert command in done.stdout


@pytest.mark.parametrize("command", ["data", "bench", *COMMANDS])
def test_every_command_has_help(command: str, cfner: Cfner) -> None:
    said = cfner(*command.split(), "--help")
    assert said.code == 0
    assert re.search(rf"Usage: .*\b{command} ", said.out)
    assert [flag for flag in COMMANDS.get(command, ()) if flag[0] == "-" and flag not in said.out] == []


def test_help_shows_every_command_in_a_panel_in_at_most_ten_words(cfner: Cfner) -> None:
    from cfner.cli.panels import PANELS

    lines = {name: line for panel in PANELS.values() for name, line in panel.items()}
    commands = {path.split()[0] for path in COMMANDS}
    assert set(lines) == commands  # a new command is put into a panel, a removed one taken out
    assert {name: line for name, line in lines.items() if not 0 < len(line.split()) <= 10} == {}
    said = cfner("--help").out
    places = [said.find(f"─ {panel} ─") for panel in PANELS]
    assert places == sorted(places) and -1 not in places and "─ Commands ─" not in said
    for (_, names), start, end in zip(PANELS.items(), places, [*places[1:], None], strict=True):
        shown = [line.split()[1] for line in said[start:end].splitlines() if line.startswith("│")]
        assert set(shown) == set(names)
    assert set(re.findall(r"^ +cfner (\w+)", said, re.MULTILINE)) == {"demo", "learn", "predict"}


def test_help_of_learn_begins_with_the_ten_options_that_matter(cfner: Cfner) -> None:
    first, more = cfner("learn", "--help").out.split("─ More options ─")
    of_both = [set(re.findall(r"^│ (--[\w-]+)", part, re.MULTILINE)) for part in (first, more)]
    assert len(of_both[0] - {"--help"}) == 10 and {"--out", "--guard", "--unlabelled"} < of_both[0]
    assert {"--seed", "--tag-column"} < of_both[1] and not of_both[0] & of_both[1]
    assert "─ More options ─" not in cfner("train", "--help").out  # which shares options with it


def test_version(cfner: Cfner) -> None:
    import cfner as package

    assert cfner("--version").out.strip() == f"cfner {package.__version__}"


# -- lists -------------------------------------------------------------------------------------------------


def test_methods_lists_all_of_them(cfner: Cfner) -> None:
    said = cfner("methods")
    assert said.code == 0
    assert all(name in said.out for name in method_names())
    listed = json.loads(cfner("methods", "--json").out)
    assert [method["name"] for method in listed] == method_names()
    assert all(method["summary"] and method["good_for"] for method in listed)


@pytest.mark.parametrize("name", method_names())
def test_one_method_is_shown_with_its_parameters(name: str, cfner: Cfner) -> None:
    (facts,) = json.loads(cfner("methods", name, "--json").out)
    said = cfner("methods", name)
    assert said.code == 0
    assert all(parameter in said.out for parameter in facts["parameters"])


def test_methods_of_a_users_file_are_listed_shown_and_set(tiny_data: Path, tmp_path: Path) -> None:
    def said(*words: object) -> Any:  # in a child, so that they are not known to other tests
        file = Path(__file__).with_name("outside_method.py")
        command = [warm.python(), "-m", "cfner", *map(str, words), "--use", file, "--json"]
        return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)

    assert {method["name"] for method in said("methods")} == {*method_names(), "dld", "frozen-encoder"}
    assert said("methods", "dld")[0]["parameters"]["weight"]["default"] == 2.0
    train = ["train", tiny_data, "-o", tmp_path, "--min-mentions", 1, "--dry-run"]
    assert said(*train, "-m", "dld", "--set", "weight=3")["config"]["parameters"] == {"weight": 3}


def test_train_learns_the_types_that_are_asked_for(cfner: Cfner, train_words: list[object]) -> None:
    said = cfner(*train_words, "--out", "nowhere", "--dry-run", "--json", "--types", "person,animal")
    manifest = json.loads(said.out)["manifest"]
    assert manifest["order"] == ["animal", "person"]
    assert manifest["left_out_types"]


def test_encoders_names_the_one_that_needs_no_hub(cfner: Cfner) -> None:
    listed = json.loads(cfner("encoders", "--json").out)
    assert {"minilm", "bert-base-cased"} <= {encoder["name"] for encoder in listed}
    assert "minilm" in cfner("encoders").out


# -- train -------------------------------------------------------------------------------------------------


def test_a_dry_run_says_what_would_be_done_and_does_nothing(
    cfner: Cfner, train_words: list[object], tmp_path: Path
) -> None:
    said = cfner(*train_words, "--out", tmp_path / "out", "--dry-run")
    assert said.code == 0
    assert "animal, city" in said.out and "Nothing was trained" in said.out
    plan = json.loads(cfner(*train_words, "--out", tmp_path / "out", "--dry-run", "--json").out)
    assert plan["config"]["epochs"] == 1
    assert plan["manifest"]["hash"]
    assert not (tmp_path / "out").exists()


def test_train_prints_results_and_saves_every_step(
    cfner: Cfner, train_words: list[object], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    said = cfner(*train_words, "--out", out, "--json")
    assert said.code == 0 and said.err.count("\n") == said.err.count(": epoch 1,") == 2  # and no more
    results = json.loads(said.out)
    assert results["method"] == "own-other"  # the default
    assert json.loads((out / "results.json").read_text())["runs"][0]["steps"] == results["steps"]
    assert ContinualTagger.load(out).types == ("animal", "city", "dish", "person")
    again = cfner(*train_words, "--out", out)
    assert again.code == 2 and "--resume" in again.err
    resumed = cfner(*train_words, "--out", out, "--resume")
    assert resumed.code == 0
    assert "animal" in resumed.out and "Mean over steps" in resumed.out


def test_train_takes_parts_away_and_settings_of_all_kinds(
    cfner: Cfner, train_words: list[object], tmp_path: Path
) -> None:
    (tmp_path / "settings.toml").write_text("epochs = 9\nbatch_size = 3\nwarmup = 0.5\n")
    words = [*train_words, "--out", tmp_path / "out", "--config", tmp_path / "settings.toml", "--dry-run"]
    words += ["--json", "--method", "cfner", "--without", "effect_e", "--without", "curriculum", "--k", "5"]
    words += ["--set", "clip=null", "--set", "m=2", "--set", "head=linear"]
    config = json.loads(cfner(*words).out)["config"]
    assert (config["epochs"], config["batch_size"], config["warmup"]) == (1, 8, 0.5)  # flags beat the file
    assert config["without"] == ["effect_e", "curriculum"]
    assert config["parameters"] == {"k": 5, "m": 2}
    assert (config["clip"], config["head"]) == (None, "linear")


def test_every_takes_each_nth_sentence(cfner: Cfner, train_words: list[object], tmp_path: Path) -> None:
    def sentences(*more: str) -> int:
        plan = json.loads(cfner(*train_words, "--out", tmp_path / "o", "--dry-run", "--json", *more).out)
        return sum(part["sentences"] for part in plan["manifest"]["steps"])

    assert sentences() == 60
    assert sentences("--every", "3") == 20


# -- evaluate ----------------------------------------------------------------------------------------------


def test_evaluate_a_folder_or_a_file(cfner: Cfner, two_steps: Path, tiny_data: Path) -> None:
    folder = json.loads(cfner("evaluate", two_steps, tiny_data, "--json").out)
    file = json.loads(cfner("evaluate", two_steps, tiny_data / "test.txt", "--json").out)
    assert (folder["set"].pop("name"), file["set"].pop("name")) == ("tiny (test)", "test.txt")
    assert folder == file
    assert folder["types"] == ["animal", "city", "dish", "person"]
    assert folder["unknown_types"] == []
    assert "micro" in cfner("evaluate", two_steps, tiny_data).out


def test_types_that_the_data_does_not_label_are_set_aside(
    cfner: Cfner, two_steps: Path, tiny_corpus: Corpus, tmp_path: Path
) -> None:
    path = tmp_path / "cities.conll"
    write_sentences([s.only(["city"]) for s in tiny_corpus.test], path, format="conll")
    said = json.loads(cfner("evaluate", two_steps, path, "--json").out)
    assert said["types"] == ["city"] and list(said["per_type"]) == ["city"]
    assert said["unlabelled_types"] == ["animal", "dish", "person"]
    everything = json.loads(cfner("evaluate", two_steps, path, "--all-types", "--json").out)
    assert everything["types"] == ["animal", "city", "dish", "person"]
    assert everything["micro_f1"] < said["micro_f1"]


def test_types_that_a_step_does_not_know_are_set_aside_and_counted(
    cfner: Cfner, two_steps: Path, tiny_data: Path
) -> None:
    said = json.loads(cfner("evaluate", two_steps, tiny_data, "--step", "1", "--json").out)
    assert said["types"] == ["animal", "city"]
    assert said["unknown_types"] == ["dish", "person"]
    assert said["mentions_set_aside"] > 0


# -- predict -----------------------------------------------------------------------------------------------

TEXT = "today ada saw the badger in new york"


def entities(line: str) -> list[tuple[str, str]]:
    found = json.loads(line)
    assert all(found["text"][e["start"] : e["end"]] == e["text"] for e in found["entities"])
    return [(e["type"], e["text"]) for e in found["entities"]]


def test_predict_says_the_same_of_a_text_a_file_and_standard_input(
    cfner: Cfner, two_steps: Path, tmp_path: Path
) -> None:
    lines = [TEXT, "", "the heron of oslo", TEXT * 9]
    (tmp_path / "texts.txt").write_text("\ufeff" + "\r\n".join(lines) + "\r\n", encoding="utf-8", newline="")
    raw = "\n".join(lines).encode()
    ways = [
        cfner("predict", two_steps, *lines, "--json"),
        cfner("predict", two_steps, "--file", tmp_path / "texts.txt", "--as", "jsonl"),
        cfner("predict", two_steps, stdin=raw),
        cfner("predict", two_steps, "-", stdin=raw),
    ]
    assert [way.code for way in ways] == [0, 0, 0, 0]
    assert len({way.out for way in ways}) == 1
    assert [json.loads(line)["text"] for line in ways[0].out.splitlines()] == lines
    expected = [(e.type, e.text) for e in ContinualTagger.load(two_steps).predict(TEXT).entities]
    assert entities(ways[0].out.splitlines()[0]) == expected != []


def test_predict_as_a_table(cfner: Cfner, two_steps: Path) -> None:
    said = cfner("predict", two_steps, TEXT, "--as", "table")
    assert TEXT in said.out
    for entity in ContinualTagger.load(two_steps).predict(TEXT).entities:
        assert entity.type in said.out and f"{entity.start}-{entity.end}" in said.out


def test_predict_in_colour(cfner: Cfner, two_steps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = cfner("predict", two_steps, TEXT, "--as", "colour").out
    monkeypatch.setenv("FORCE_COLOR", "1")
    bright = cfner("predict", two_steps, TEXT, "--as", "colour").out
    first = ContinualTagger.load(two_steps).predict(TEXT).entities[0]
    assert f"{first.text}[{first.type}]" in plain
    assert "\x1b[" not in plain and "\x1b[" in bright


def test_control_characters_in_a_text_do_not_reach_the_terminal(cfner: Cfner, two_steps: Path) -> None:
    for style in ("table", "colour"):
        assert "\x1b" not in cfner("predict", two_steps, f"ada \x1b[31m {TEXT}", "--as", style).out


def test_predict_with_an_earlier_step(cfner: Cfner, two_steps: Path) -> None:
    said = cfner("predict", two_steps, TEXT, "--step", "1")
    assert {type_ for type_, _ in entities(said.out)} <= {"animal", "city"}


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_output_that_is_not_of_utf_8_is_written_out(
    encoding: str, cfner: Cfner, two_steps: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shown(*words: object) -> str:
        pipe = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        with monkeypatch.context() as patched:
            patched.setattr(sys, "stdout", pipe)
            said = cfner(*words)
        assert (said.code, said.err) == (0, "")
        pipe.seek(0)
        return pipe.read()

    text = "ad\xe9 saw \u25b6 \U0001f98a"
    assert json.loads(shown("predict", two_steps, text, "--json"))["text"] == text
    assert ("\u25b6" if encoding == "utf-8" else "\\u25b6") in shown("history", two_steps)


def test_a_reader_that_goes_away_is_no_error(cfner: Cfner, monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb", buffering=0) as pipe, monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", io.TextIOWrapper(pipe, write_through=True))
        said = cfner("methods", "--json")
    assert (said.code, said.err) == (0, "")


# -- errors ------------------------------------------------------------------------------------------------


def bad_commands(model: Path, data: Path, encoder: Path, empty: Path) -> dict[str, list[Any]]:
    learn: list[Any] = ["train", data, "--out", empty / "o", "--encoder", encoder, "--min-mentions", "1"]
    return {
        "no such file or folder": ["train", empty / "nothing", "--out", empty / "o"],
        "Did you mean 'finetune'": [*learn, "--method", "finetuen"],
        "Did you mean 'negatives'": [*learn, "--without", "negativs"],
        "Did you mean 'lambda_keep'": [*learn, "--set", "lamda_keep=1"],
        "Did you mean 'lr_encoder' or 'lr_head'": [*learn, "--set", "lr=1"],
        "and there is no such setting. Did you mean 'lr_encoder'": [
            *[*learn, "--set", "learning_rate=1"],
        ],
        "The method 'own-other' has no parameter 'tau'": [*learn, "--set", "tau=1"],
        "Give only --order": [*learn, "--order", "animal", "--types", "animal"],
        "Write --set NAME=VALUE": [*learn, "--set", "epochs"],
        "precision": [*learn, "--precision", "fp8"],
        "Lower --min-mentions": [*learn, "--min-mentions", "5000"],
        "Did you mean 'greedy'": [*learn, "--sampling", "gredy"],
        "There is no encoder folder": [*learn, "--encoder", "./nothing/here"],
        "There is no model here": ["predict", empty, "text"],
        "There is no step '0009'": ["predict", model, "text", "--step", "9"],
        "Did you mean 'table'": ["predict", model, "text", "--as", "tabel"],
        "Give one of them": ["predict", model, "text", "--file", data / "test.txt"],
        "nothing.txt": ["predict", model, "--file", empty / "nothing.txt"],
        "Did you mean 'podnet'": ["methods", "podnett"],
        "where/is/it": ["evaluate", model, "where/is/it"],
        "There is no model here.": ["evaluate", empty, data],
    }


@pytest.mark.parametrize("expected", bad_commands(Path(), Path(), Path(), Path()))
def test_an_error_is_one_paragraph_with_exit_code_2(
    expected: str, cfner: Cfner, two_steps: Path, tiny_data: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    said = cfner(*bad_commands(two_steps, tiny_data, tiny_encoder, tmp_path)[expected])
    assert said.code == 2
    assert said.out == ""
    assert said.err.startswith("Error: ")
    assert said.err.count("\n") == 1
    assert expected.rstrip(".") in said.err


ODD = ("-1", "0", "nan", "inf", "-inf", str(10**18))
# what is refused of these, besides what is not a number at all
NUMBERS = {
    "data describe {data} --every": ODD[:5],
    "data split {data}/train.txt {out} --format conll --dev": ODD[:1] + ODD[2:],
    "data split {data}/train.txt {out} --format conll --test": ODD[:1] + ODD[2:],
    "data sample {out} --size": ODD,
    "demo --out {out} --size": ODD,
    "demo --out {out} --epochs": ODD[:5],
    "train {data} --out {out} --min-mentions 1 --dry-run --epochs": ODD[:5],
    "train {data} --out {out} --min-mentions 1 --dry-run --score-every": ODD[:5],
    "train {data} --out {out} --min-mentions 1 --dry-run --lr-head": ODD[:1] + ODD[2:5],
    "train {data} --out {out} --min-mentions 1 --dry-run --lambda-base": ODD[:1] + ODD[2:5],
    "train {data} --out {out} --min-mentions 1 --dry-run --t-student": ODD[:5],
    "learn {model} {data}/train.txt --out {out} --old-labels use --dev-share": ODD[:1] + ODD[2:],
    "learn {model} {data}/train.txt --out {out} --old-labels use --max-forgetting": ODD[:1] + ODD[2:],
    "diff {model} --text ada --show": ODD[:1] + ODD[2:5],
    "diff {model} --text ada --keep": ODD[:1] + ODD[2:5],
    "diff {model} --text ada --batch-size": ODD[:5],
    "predict {model} ada --batch-size": ODD[:5],
    "evaluate {model} {data} --batch-size": ODD[:5],
    "evaluate {model} {data} --step": ODD,
    "rollback {model} --": ODD,
    "serve {model} --threads": ODD,
    "serve {model} --max-wait": ODD,
    "serve {model} --reload-seconds": ODD,
    "serve {model} --shutdown-seconds": ODD,
    "serve {model} --port": ODD[:1] + ODD[2:],
    "bench run --data {data} --out {out} --min-mentions 1 --dry-run --processes": ODD[:5],
    "bench run --data {data} --out {out} --min-mentions 1 --dry-run --gpus": ODD[:1] + ODD[2:5],
}


@pytest.mark.parametrize("words", NUMBERS)
def test_numbers_that_make_no_sense_are_refused(
    words: str, cfner: Cfner, two_steps: Path, tiny_data: Path, tmp_path: Path
) -> None:
    places = {"data": tiny_data, "model": two_steps, "out": tmp_path / "out"}
    for value in NUMBERS[words]:
        said = cfner(*(word.format(**places) for word in words.split()), value)
        assert said.code == 2, f"{value}: {said}"
        assert "Error" in said.err and "Traceback" not in said.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("value", ["0", str(10**18)])
def test_as_few_or_as_many_as_asked_for(value: str, cfner: Cfner, two_steps: Path, tiny_data: Path) -> None:
    said = cfner("diff", f"{two_steps}@1", f"{two_steps}@2", tiny_data, "--show", value, "--keep", value)
    assert said.code == 0, said.err


def numbers_of(app: Any) -> Iterator[tuple[str, Any]]:
    """Every number that a command takes, and the lowest that it may be."""
    for group in app.registered_groups:
        yield from numbers_of(group.typer_instance)
    for command in app.registered_commands:
        for name, hint in get_type_hints(command.callback, include_extras=True).items():
            kind, *about = get_args(hint) or (hint,)
            if about and {int, float} & {kind, *get_args(kind)}:
                yield f"{command.callback.__name__} {name}", about[0].min


def test_every_number_has_a_lowest_value() -> None:
    from cfner.cli.main import app

    found = dict(numbers_of(app))
    assert len(found) > 50
    # any seed will do where only the choice of sentences depends on it
    assert {name for name, lowest in found.items() if lowest is None} == {"split seed", "sample seed"}


def test_input_that_is_not_utf_8_is_named_by_its_line(cfner: Cfner, two_steps: Path) -> None:
    said = cfner("predict", two_steps, stdin=b"fine\n\xff\xfe\n")
    assert said.code == 2
    assert "standard input:2" in said.err


def test_debug_shows_the_traceback(cfner: Cfner, tmp_path: Path) -> None:
    with pytest.raises(CfnerError):
        cfner("--debug", "predict", tmp_path, "text")


@pytest.mark.parametrize("words", [["nonsense"], ["train"], ["predict"], ["train", "x", "--epochs", "many"]])
def test_wrong_usage_is_exit_code_2(words: list[str], cfner: Cfner) -> None:
    said = cfner(*words)
    assert said.code == 2
    assert "Usage" in said.err


# -- nothing silent ----------------------------------------------------------------------------------------


def test_train_prints_the_types_that_it_drops_and_records_them(
    cfner: Cfner, train_words: list[object], tmp_path: Path
) -> None:
    words = [*train_words, "--min-mentions", 31, "--every", 1, "--out", tmp_path / "out"]
    said = cfner(*words, "--dry-run")
    dropped = "types dropped, with fewer than 31 training mentions: animal (30)"
    assert dropped in said.out
    said = cfner(*words, "--json")
    assert said.code == 0 and dropped in said.err
    assert json.loads(said.out)["dropped_types"] == {"animal": 30}
    (run,) = json.loads((tmp_path / "out/results.json").read_text())["runs"]
    assert run["dropped_types"] == {"animal": 30} and run["left_out_types"] == []
    assert json.loads((tmp_path / "out/run.json").read_text())["manifest"]["dropped_types"] == {"animal": 30}


def test_a_grid_prints_the_types_that_it_drops(
    cfner: Cfner, tiny_data: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    words = ["bench", "run", "--data", tiny_data, "--encoder", tiny_encoder, "--min-mentions", 31]
    said = cfner(*words, "--methods", "finetune", "--out", tmp_path / "out", "--dry-run")
    assert said.code == 0
    assert said.err.count("types dropped, with fewer than 31 training mentions: animal (30)") == 1


def test_sentences_that_are_left_out_while_reading_are_printed(
    cfner: Cfner, train_words: list[object], tmp_path: Path
) -> None:
    said = cfner(*train_words, "--every", 2, "--out", tmp_path / "out", "--dry-run")
    assert "sentence left out by every=2: 50, first at" in said.err


@pytest.mark.parametrize(
    "wrong", [["--encoder", "bert-base-casde"], ["--encoder", "./nothing"], ["--method", "cfnr"],
              ["--set", "max_length=100000"], ["--set", "lr_encoder=1e30"]]
)  # fmt: skip
def test_a_train_that_fails_leaves_nothing_so_that_the_next_one_runs(
    wrong: list[str], cfner: Cfner, train_words: list[object], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    said = cfner(*train_words, "--out", out, *wrong)
    assert said.code == 2, said.err
    assert not out.exists()
    assert cfner(*train_words, "--out", out).code == 0


def test_a_grid_with_a_misspelt_encoder_leaves_nothing(cfner: Cfner, tiny_data: Path, tmp_path: Path) -> None:
    words = ["bench", "run", "--data", tiny_data, "--min-mentions", 1, "--methods", "finetune"]
    said = cfner(*words, "--encoder", "bert-base-casde", "--out", tmp_path / "out")
    assert said.code == 2 and "bert-base-casde" in said.err
    assert not (tmp_path / "out").exists()


def test_a_users_empty_folder_stays(cfner: Cfner, train_words: list[object], tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    assert cfner(*train_words, "--out", out, "--set", "max_length=100000").code == 2
    assert list(out.iterdir()) == []


NO_MODEL = {
    "There is no method 'cfnr'": "learn {model} {new} --out {out} --method cfnr",
    "no part 'nothing'": "learn {model} {new} --out {out} --without nothing",
    "There is no device 'gpu'": "learn {model} {new} --out {out} --device gpu",
    "nowhere.conll: no such file": "learn {model} {new} --out {out} --guard nowhere.conll",
    "no-replay.conll: no such file": "learn {model} {new} --out {out} --replay no-replay.conll",
    "no-text.txt: no such file": "learn {model} {new} --out {out} --unlabelled no-text.txt",
    "no-data.conll: no such file": "learn {model} no-data.conll --out {out}",
    "lives.conll:1: the columns are swapped": "learn {model} lives.conll --out {out}",
    "no-more.conll: no such file": "evaluate {model} no-more.conll",
    "There is no device 'tpu'": "evaluate {model} {new} --device tpu",
    "no-letters.txt: no such file": "predict {model} --file no-letters.txt",
    "no-check.txt: no such file": "check {new} --model {model} --unlabelled no-check.txt",
    "There is no method 'cfner2": "check {new} --model {model} --method cfner2",
    "no-check-text.txt": "export {model} --out {out} --check-text no-check-text.txt",
    "There is no method 'finetun'": "train {data} --out {out} --method finetun",
}


@pytest.mark.parametrize("expected", NO_MODEL)
def test_what_needs_no_model_is_refused_before_one_is_loaded(
    expected: str, cfner: Cfner, two_steps: Path, tiny_data: Path, tiny_corpus: Corpus, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    def loaded(*_: object, **__: object) -> None:
        pytest.fail("a model was loaded")

    for name in ("tagger.read_model", "tagger.open_model", "tagger.new_model", "store.open.read_model",
                 "interop.export.open_model"):  # fmt: skip
        monkeypatch.setattr(f"cfner.{name}", loaded)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lives.conll").write_text("O\tlives\nB-LOC\tOslo\n")
    new = [s.with_spans([]) for s in tiny_corpus.train[:-1]]
    new.append(tiny_corpus.train[-1].with_spans([Span(0, 1, "new")]))
    write_sentences(new, tmp_path / "new.conll")
    places = {"model": two_steps, "new": tmp_path / "new.conll", "data": tiny_data, "out": tmp_path / "out"}
    said = cfner(*NO_MODEL[expected].format(**places).split())
    assert said.code == 2
    assert expected in said.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "words", ["predict {} ada", "evaluate {} {data}", "learn {} {data}/train.txt --out m9", "history {}"]
)
@pytest.mark.parametrize("name", ["modle", "./modle", "work/modle", "wrok/model/"])
def test_a_misspelt_model_names_the_folder_that_was_meant(
    name: str, words: str, cfner: Cfner, two_steps: Path, tiny_data: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    (tmp_path / "work").mkdir()
    for place in ("model", "work/model"):
        (tmp_path / place).symlink_to(two_steps)
    monkeypatch.chdir(tmp_path)
    said = cfner(*words.format(name, data=tiny_data).split())
    meant = "work/model" if "/model" in name or name.startswith("work") else "model"
    assert said.code == 2
    assert f"Did you mean '{meant}'?" in said.err
    assert "hub and in its cache" not in said.err and len(said.err) < 350


def test_a_hub_name_keeps_its_own_message(
    cfner: Cfner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = cfner("predict", "dslim/bert-base-NER", "ada")
    assert said.code == 2
    assert "The model 'dslim/bert-base-NER' could not be loaded" in said.err and "hub" in said.err


# -- progress ----------------------------------------------------------------------------------------------


def test_the_bar_and_the_time_left_fit_a_terminal_of_80_columns() -> None:
    bars = Bars()
    bars.console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system=None)
    bars.start("learn ORGANIZATION, LOCATION, MISCELLANEOUS", 10, 1200)
    for _ in range(1200):
        bars.batch(0.1234, 8)
    bars.epoch(1, {"dev_f1": 55.3, "dev_agreement": 99.1})
    bars.batch(0.1234, 8)
    assert bars.bar is not None
    screen = Console(file=io.StringIO(), width=80, force_terminal=True, color_system=None)
    with screen.capture() as drawn:
        screen.print(bars.bar.get_renderable())
    line = drawn.get().strip("\n")
    assert "\n" not in line and len(line) <= 80
    assert re.search(r"learn ORGANIZATIO… ━\S* +1201/12000 \d:\d\d:\d\d loss 0.123  epoch 1", line), line
    bars.end()


def test_in_a_notebook_a_bar_is_drawn_without_widgets(monkeypatch: pytest.MonkeyPatch) -> None:
    from IPython import display

    drawn: list[dict[str, str]] = []

    def show(picture: dict[str, str], **_: object) -> SimpleNamespace:
        drawn.append(picture)
        return SimpleNamespace(update=show)

    monkeypatch.setattr(display, "display", show)
    monkeypatch.setattr("cfner.training.bars.Console", lambda: SimpleNamespace(is_jupyter=True))
    bars = watcher(None)
    assert isinstance(bars, NotebookBars)
    bars.start("learn <b>", 2, 3)
    for number in (1, 2):
        for _ in range(3):
            bars.batch(0.5, 8)
        bars.epoch(number, {"dev_f1": 55.3})
    bars.end()
    assert drawn[0]["text/html"].startswith('<div>learn &lt;b&gt; <progress value="0" max="6">')
    assert '<progress value="6" max="6"></progress> epoch 2, dev F1 55.3, 0 s' in drawn[-1]["text/html"]
    assert drawn[-1]["text/plain"] == "learn <b>: epoch 2, dev F1 55.3, 0 s"


def test_into_a_file_goes_a_line_per_epoch(cfner: Cfner, train_words: list[object], tmp_path: Path) -> None:
    said = cfner(*train_words, "--epochs", 2, "--out", tmp_path / "out")
    lines = [line for line in said.err.splitlines() if ": epoch " in line]
    starts = ["step 1: epoch 1", "step 1: epoch 2", "step 2: epoch 1", "step 2: epoch 2"]
    assert [line.split(",")[0] for line in lines] == starts
    assert lines[0].endswith("s, 1 to go")
