"""Hostile words and labels through everything that shows them: text stays text. Counts: see counts.py."""

from __future__ import annotations

import csv
import io
import itertools
import json
import logging
import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from markdown_it import MarkdownIt

import cfner
from cfner.benchmark.grid import _CSV, _CSV_MEANS, csv_text
from cfner.cli.main import main
from cfner.corpus.sentence import Sentence, Span
from cfner.evaluation.forgetting import StepMatrix
from cfner.evaluation.scores import Counts, Scores
from cfner.files.markdown import escaped, table
from cfner.files.safe_text import json_text, visible
from cfner.interop.prediction_files import AS_TEXT
from cfner.network.prediction import Prediction, entity_of
from cfner.pages.heat_map import heat_maps
from cfner.practice.diff import page as diff_page
from cfner.practice.diff.diff import ModelDiff, compare
from cfner.practice.explain import page as explain_page
from cfner.practice.explain.explanation import (
    Distribution,
    EpochSelection,
    Explanation,
    Match,
    Share,
    SliceSummary,
    TermFacts,
    TokenExplanation,
    TokenLoss,
)
from counts import times
from hostile import pairs
from serving_models import add_step

Pair = tuple[str, str]
NUMBER = times(10_000, quick=1000, short=300)
AT_ONCE = 25
ALL = pairs(NUMBER)
PAIRS = [ALL[at : at + AT_ONCE] for at in range(0, NUMBER, AT_ONCE)]


def harmless(number: int) -> list[Pair]:
    """As many words and labels that mean no harm: a page of them has the same markup."""
    return [(f"word{index}", f"label{index}") for index in range(number)]


# -- pages -------------------------------------------------------------------------------------------------


class Reader(HTMLParser):
    """What a browser makes of a page: its elements with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, tuple[tuple[str, str | None], ...]]] = []
        self.titles: list[str] = []
        self.others: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.titles += [str(value) for name, value in attrs if name == "title"]
        # a title may be made of a name: its place counts, not its text
        kept = tuple((name, "" if name == "title" else value) for name, value in attrs)
        self.elements.append((tag, kept))

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        self.others.append(data)

    handle_decl = handle_pi = unknown_decl = handle_comment


def same_markup(page: str, twin: str, shown: list[str]) -> None:
    """The page has the elements and attributes of its harmless twin, and shows all that is to be seen."""
    page.encode()
    read, expected = Reader(page), Reader(twin)
    assert read.elements == expected.elements
    assert read.others == expected.others == ["doctype html"]
    for text in shown:
        assert visible(text) in read.text or visible(text) in "".join(read.titles), text


def a_diff(given: list[Pair]) -> ModelDiff:
    found = ModelDiff(given[0][0], given[0][1], (), (), tuple(label for _, label in given))
    for word, label in given:
        sentence = Sentence((word, "and", word), (Span(0, 1, label),), source=word)
        old = Prediction(sentence, (entity_of(sentence, Span(0, 1, label), 0.5),))
        compare(found, old, Prediction(sentence, ()), 1000)
    return found


def an_explanation(given: list[Pair]) -> Explanation:
    tokens = []
    for position, (word, label) in enumerate(given):
        said = Distribution((Share(label, 0.7), Share(word, 0.2)), 0.1)
        match = Match(0, 1, (word, word, label), label, word, label, 0.25, 0.5, said)
        losses = (TokenLoss(label, label, "keep_old", 1.0, True, 0.5),)
        matched = position % 2 == 0
        tokens.append(
            TokenExplanation(
                *(position, word, label, word, label + "?", said, label, 0.9, said),
                *(said if matched else None, 1.0, "entity" if matched else None, matched, None, losses, 0.5),
                (match,) if matched else (),
            )
        )
    slice_ = SliceSummary(2, 9, 3, 6, 2, 2, 1, 1, (EpochSelection(1, 0.5, 1, 1, 1),))
    term = TermFacts(given[0][0], "keep_old", 1.0, "f", True)
    types = tuple(label for _, label in given)
    return Explanation(
        given[0][1], 2, types, types, 1, 1, 1, 3, (term,), slice_, 0, given[0][0], tuple(tokens)
    )


def everything(given: list[Pair]) -> list[str]:
    return [text for pair in given for text in pair]


def test_pages_have_the_markup_of_harmless_ones() -> None:
    for given in PAIRS:
        twin = harmless(len(given))
        same_markup(diff_page.page(a_diff(given)), diff_page.page(a_diff(twin)), everything(given))
        explained = explain_page.page(an_explanation(given)), explain_page.page(an_explanation(twin))
        same_markup(*explained, everything(given))


def test_pages_forbid_themselves_everything_but_their_style_sheet() -> None:
    for page in (diff_page.page(a_diff(PAIRS[0])), explain_page.page(an_explanation(PAIRS[0]))):
        policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
        assert policy is not None
        assert policy[1].startswith("default-src 'none'; style-src 'sha256-")
        assert "unsafe" not in policy[1]
        assert not [
            name for _, attributes in Reader(page).elements for name, _ in attributes if name == "style"
        ]


def some_scores(given: list[Pair]) -> Scores:
    return Scores(tuple(label for _, label in given), {label: Counts(1, 2, 3) for _, label in given})


def test_pictures_have_the_elements_of_harmless_ones() -> None:
    def drawn(given: list[Pair]) -> list[ElementTree.Element]:
        matrix = StepMatrix((some_scores(given),))
        picture = heat_maps({given[0][0]: matrix}, given[0][0])
        return list(ElementTree.fromstring(picture).iter())

    for given in PAIRS:
        found, twin = drawn(given), drawn(harmless(len(given)))
        # a name that is too long for its place is cut, and whole in a title
        cut = [e for e in found if e.tag.endswith("}title")][1:]
        assert [(e.tag, e.keys()) for e in found if e not in cut] == [(e.tag, e.keys()) for e in twin]
        assert {visible(label) for _, label in given} <= {e.text for e in found}


# -- Markdown ----------------------------------------------------------------------------------------------


def test_markdown_shows_it_and_means_nothing_by_it() -> None:
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    for given in PAIRS:
        rows = [[escaped(word), escaped(label)] for word, label in given]
        tokens = parser.parse(f"{rows[0][0]}\n\n" + table(["a", "b"], rows))
        cells = [token for token in tokens if token.type == "inline"]
        assert [token.type for token in tokens].count("td_open") == 2 * len(given)
        assert {child.type for cell in cells for child in cell.children or ()} <= {"text"}
        read = ["".join(child.content for child in cell.children or ()) for cell in cells]
        shown = ["".join(c if c.isprintable() else " " for c in text).strip() for text in everything(given)]
        assert read == [shown[0], "a", "b", *shown] if shown[0] else read[2:] == shown


# -- terminal and files ------------------------------------------------------------------------------------


def steers(text: str) -> list[str]:
    """Characters in what was printed that a terminal would obey, or that hide what is there."""
    return [sign for sign in text if not sign.isprintable() and sign != "\n"]


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "6000")  # so that no line is broken
    monkeypatch.setenv("CFNER_DEBUG", "")


@pytest.mark.usefixtures("wide")
def test_the_terminal_shows_it_and_obeys_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    from cfner.cli import diff, explain, predict
    from cfner.cli.show import LogHandler, coloured, console, matrix_table, scores_table

    for given in PAIRS:
        found = a_diff(given)
        both = [sentence.old for sentence in found.changed]
        screen = console()
        for prediction in both:
            screen.print(coloured(prediction))
        predict._show(iter(both), "table")
        screen.print(scores_table(some_scores(given), given[0][0]))
        screen.print(matrix_table(StepMatrix((some_scores(given),)), given[0][0]))
        diff._tell(screen, found, AT_ONCE)
        explain._tell_step(an_explanation(given))
        explain._tell_tokens(an_explanation(given))
        LogHandler().emit(logging.makeLogRecord({"msg": given[0][0]}))
        shown = capsys.readouterr()
        said = shown.out + shown.err
        assert not steers(said)
        for text in everything(given):
            assert visible(text).strip() in said, text


def test_json_says_the_same_and_steers_nothing() -> None:
    for word, label in itertools.chain(*PAIRS, [("\ud800", "\udfff")]):
        for indent in (None, 1):
            written = json_text({label: [word]}, indent)
            assert json.loads(written) == {label: [word]}
            assert not [sign for sign in steers(written) if sign not in "\u00a0\u3000"]


def test_lines_of_predictions_keep_their_rows() -> None:
    for word, label in itertools.chain(*PAIRS):
        sentence = Sentence((word, "and"), (), source="x")
        prediction = Prediction(sentence, (entity_of(sentence, Span(0, 1, label), 0.5),))
        (line,) = AS_TEXT["jsonl"]([prediction])
        assert line.count("\n") == 1
        assert json.loads(line)["entities"][0]["type"] == label
        if not {"\t", "\n", "\r", "\0"} & {*word, *label} and word.strip():
            (lines,) = AS_TEXT["conll"]([prediction])
            assert lines.split("\n")[0].split("\t") == [word, f"B-{label}"]


def test_no_cell_of_a_table_for_spreadsheets_is_a_formula() -> None:
    for given in PAIRS:
        for word, label in given:
            step = {"types": [label], "micro_f1": -1.5, "macro_f1": 2.5}
            means = dict.fromkeys(_CSV_MEANS, -3.25)
            run = {**dict.fromkeys(_CSV, word), **means, "steps": [step], "key": "k"}
            head, row = csv.reader(io.StringIO(csv_text([run])))
            assert len(row) == len(head)
            sentence = Sentence((word, "and"), (), source="x", record={"id": word})
            prediction = Prediction(sentence, (entity_of(sentence, Span(0, 1, label), 0.5),))
            names, mention = csv.reader(io.StringIO("".join(AS_TEXT["csv"]([prediction]))))
            assert len(mention) == len(names)
            for cell in (*row, *mention):
                assert re.fullmatch(r"-?[0-9.]+", cell) or cell[:1] not in tuple("=+-@\t\r\n")
                assert not re.search("[\x00-\x1f\x7f-\x9f]", cell)


@pytest.mark.parametrize("separator", [";", "\t", "\n", '; "', ';"', ";;"])
@pytest.mark.parametrize("formula", ["=1+1", "+1+1", "-1+1", "@SUM(A1:A9)", '=HYPERLINK("a","b")'])
def test_no_cell_is_a_formula_whatever_separates_cells(formula: str, separator: str) -> None:
    hostile = f"a{separator}{formula}{separator}b"
    step = {"types": [hostile, formula, "a;", formula], "micro_f1": 1.5, "macro_f1": 2.5}
    run = {**dict.fromkeys((*_CSV, *_CSV_MEANS), hostile), "steps": [step], "key": "k"}
    for delimiter in ",;\t":
        rows = list(csv.reader(io.StringIO(csv_text([run])), delimiter=delimiter))
        assert len(rows) == 2
        assert not [cell for cell in rows[1] if cell.lstrip()[:1] in tuple("=+-@")]


def test_nobody_else_writes_tables_for_spreadsheets() -> None:
    """A cell that begins with '=' is a formula there: whoever writes CSV must add it to these tests."""
    sources = {path.name: path.read_text() for path in Path(cfner.__file__).parent.rglob("*.py")}
    found = [name for name, text in sources.items() if re.search(r"import csv|to_csv|\.csv['\"]", text)]
    found.remove("text_names.py")  # knows the suffix, and writes nothing
    assert sorted(found) == ["grid.py", "prediction_files.py"]


# -- the commands, on hostile data and a hostile model -----------------------------------------------------


class Program:
    """The commands in this process, and what they print."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.patch, self.capsys = monkeypatch, capsys

    def __call__(self, *words: object, codes: tuple[int, ...] = (0,), allowed: str = "") -> str:
        self.patch.setattr(sys, "argv", ["cfner", *map(str, words)])
        self.patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
        ended: int | str | None = 0
        try:
            main()
        except SystemExit as end:
            ended = end.code or 0
        said = self.capsys.readouterr()
        assert ended in codes, said.err
        assert "Traceback" not in said.err
        for stream in (said.out, said.err):
            assert not [sign for sign in steers(stream) if sign not in allowed], words
        return str(said.out)


@pytest.fixture
def program(
    wide: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Program]:
    yield Program(monkeypatch, capsys)


def write_data(folder: Path, given: list[Pair]) -> Path:
    folder.mkdir()
    for split in ("train", "dev", "test"):
        rows = [
            {"tokens": [word, "and", "ada", word], "tags": [f"B-{label}", "O", "O", f"B-{label}"]}
            for word, label in given
        ]
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.mark.parametrize("round_", range(times(20, quick=2, short=1)))
def test_no_command_lets_it_through(
    program: Program, tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, round_: int
) -> None:
    drawn = [(w.replace("\0", ""), label.replace("\0", "")) for w, label in pairs(40, seed=100 + round_)]
    given = [(w, label.strip()) for w, label in drawn if w.strip()]  # data with NUL is refused as a whole
    strange = tmp_path / "[bold]\x1b[31m\u202e<b>"
    strange.mkdir()
    data, types, old = write_data(strange / "data\x1b[2J", given), [label for _, label in given], 20
    started = strange / "started\x1b[31m"
    add_step(tiny_encoder, started, types[:old], seed=1)
    texts = strange / "texts.txt"
    texts.write_text("".join(f"ada {visible(w)} {w} lisbon\n".replace("\r", "") for w, _ in given))

    described = program("data", "describe", data)
    assert all(visible(label) in described for label in types)
    program("data", "describe", data, "--json")
    program("data", "convert", data, strange / "out", "--to", "jsonl")
    program("check", data, "--json")
    program("check", data)
    program("train", data, "--out", strange / "run", "--dry-run", "--min-mentions", 1, "-e", tiny_encoder)
    checkpoint, model = strange / "hf\x9b31m", strange / "model\x9b31m"
    card(program, started, checkpoint)
    program("check", data, "--model", checkpoint, "--no-timing", "--old-labels", "ignore")
    known, new = write_data(strange / "known", given[:old]), write_data(strange / "new", given[old:])
    learning = ("--guard", known / "test.jsonl", "--epochs", 1, "--max-forgetting", 100)
    program("learn", checkpoint, new, "--out", model, *learning)
    assert "ada" in program("predict", model, "--file", texts, "--as", "colour")
    program("predict", model, "--file", texts, "--as", "table")
    program("predict", model, "--file", texts, "--json")
    columns = (0, 2)  # a type with a tab or a line end in its name cannot stand in a column, and is refused
    program("predict", model, "ada \x1b[31m\x9b1m lisbon", "--out", strange / "out.conll", codes=columns)
    with monkeypatch.context() as terminal:
        terminal.setattr(sys.stdout, "isatty", lambda: True, raising=False)
        program("predict", model, "ada \x1b[31m\x9b1m lisbon", "--as", "conll", allowed="\t", codes=columns)
    program("evaluate", model, data)
    program("evaluate", model, data, "--json")
    program("diff", f"{model}@1", started, texts, "--html", strange / "diff.html")
    program("diff", model, texts, "--json")
    program("rename", model, "--", types[0], "<b>\x1b[31m", codes=(2,))
    program("merge", model, "--into", "[bold]x", "--", types[0], types[1])
    program("history", model)
    program("history", model, "--json", "--verify")
    card(program, model, strange / "hf-2")
    program("rollback", model, 2)
    program("evaluate", strange / "nothing\x1b[31m", data, codes=(2,))
    page = Reader((strange / "diff.html").read_text("utf-8"))
    assert not {"script", "img", "svg", "iframe"} & {tag for tag, _ in page.elements}


def card(program: Program, model: Path, folder: Path) -> None:
    """The README of an exported model: its front matter is data, its text has the shape of any other."""
    program("export", model, "--out", folder, "--license", "mit\n---\n<b>")
    _, front, body = (folder / "README.md").read_text("utf-8").split("---\n", 2)
    assert yaml.safe_load(front)["pipeline_tag"] == "token-classification"
    tokens = MarkdownIt("commonmark").enable("table").parse(body)
    assert sum(token.type == "heading_open" and token.tag == "h1" for token in tokens) == 1
    assert not [token for token in tokens if token.type == "html_block"]
    inline = {child.type for token in tokens for child in token.children or ()}
    assert inline <= {"text", "softbreak", "code_inline"}


# -- the served page, in a browser -------------------------------------------------------------------------

DRAWN = """
const [pairs, done] = [arguments[0], arguments[arguments.length - 1]];
import('/static/drawing.js').then(({ Hues, drawTexts, drawLegend, drawChanges }) => {
  const hues = new Hues(pairs.map(([, label]) => label));
  const allowed = new Set(['span', 'mark', 'li', 'q', 'div']);
  const names = new Set(['class', 'title', 'style', 'aria-hidden', 'dir', 'data-number']);
  const wrong = [];
  for (const [word, label] of pairs) {
    const length = Array.from(word).length;
    const entity = { start: 0, end: length, type: label, text: word, score: 0.5 };
    for (const draw of [
      (place) => drawTexts(place, [`${word} and`], [[entity]], hues),
      (place) => drawTexts(place, [`${word} and`, word], [[entity], [entity]], hues),
      (place) => drawLegend(place, [label], new Set([label]), [entity], hues),
      (place) => drawChanges(place, [{ kind: 'lost', old: entity }]),
    ]) {
      const place = document.createElement('div');
      document.body.append(place);
      draw(place);
      const inside = [...place.querySelectorAll('*')];
      const shown = place.textContent;
      if (!inside.every((e) => allowed.has(e.localName) && [...e.attributes].every((a) => names.has(a.name)))
          || !(shown.includes(word) || shown.includes(label))) wrong.push([word, label]);
      place.remove();
    }
  }
  done(wrong);
});
"""


def test_the_page_shows_it_and_runs_nothing(tiny_encoder: Path, tmp_path: Path) -> None:
    pytest.importorskip("selenium")
    from test_page import CHROMIUM, DRIVER, Page, window

    if CHROMIUM is None or DRIVER is None:
        pytest.skip("no chromium with chromedriver on this machine")
    from cfner.serving.server import in_background

    given = [(w, label) for each in PAIRS for w, label in each]
    model = tmp_path / "model"
    add_step(tiny_encoder, model, [label for _, label in given[:60]], seed=1)
    with window() as driver, in_background(model) as url:
        page = Page(driver)
        page.open(url)
        for at in range(0, len(given), 500):
            assert driver.execute_async_script(DRAWN, given[at : at + 500]) == []
        for word, _ in given[: times(200, quick=30, short=3)]:
            page.script("document.getElementById('text').value = arguments[0]", f"ada {word}")
            page["text"].send_keys(" ")
            page.settle()
        strange = "main :is(script, img, iframe, object, embed), [onerror], [onload], [onfocus]"
        assert page.script("return document.querySelectorAll(arguments[0]).length", strange) == 0
        assert driver.get_log("browser") == []
        for name, html in _pages(given[:AT_ONCE]):
            file = tmp_path / f"{name}.html"
            file.write_text(html, encoding="utf-8")
            driver.get(file.as_uri())
            assert page.script("return getComputedStyle(document.querySelector('main')).maxWidth") != "none"
            assert driver.get_log("browser") == []  # the policy lets the page's own style in


def _pages(given: list[Pair]) -> list[tuple[str, Any]]:
    return [
        ("diff", diff_page.page(a_diff(given))),
        ("explain", explain_page.page(an_explanation(given))),
    ]
