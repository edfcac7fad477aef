"""What objects show of themselves in a notebook: all of it, and untrusted text stays text."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from cfner.corpus.corpus import Corpus
from cfner.corpus.sentence import Sentence, Span
from cfner.evaluation.intervals import Interval
from cfner.evaluation.scores import Counts, Evaluation, Scores
from cfner.network.prediction import Prediction, entity_of
from cfner.pages.before_after import TypeBars, before_after
from cfner.practice.diff.diff import ModelDiff, compare
from cfner.practice.learn import page as learn_page
from hostile import PIECES
from test_type_bars import estimate_of, guard_of, old_type

if TYPE_CHECKING:
    from cfner.practice.learn.learned import Learned

TAGS = {"div", "mark", "small", "bdi", "b", "span", "table", "thead", "tbody", "tr", "th", "td"}


class Reader(HTMLParser):
    """Elements and attributes as a browser sees them, and the text that is left."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text, self.open = "", list[str]()
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS
        for name, value in attributes:
            assert name in {"style", "class", "dir"}
            assert "url(" not in (value or "") and "expression" not in (value or "")
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def seen(thing: object) -> str:
    html = thing._repr_html_()  # type: ignore[attr-defined]
    html.encode("utf-8")
    reader = Reader(html)
    assert reader.open == []
    return reader.text


def prediction(words: tuple[str, ...], *spans: Span) -> Prediction:
    sentence = Sentence(words, ())
    return Prediction(sentence, tuple(entity_of(sentence, span, 0.875) for span in spans))


def diff_of(pairs: list[tuple[Prediction, Prediction]], old: str, new: str) -> ModelDiff:
    found = ModelDiff(old, new, (), (), ())
    for one, other in pairs:
        compare(found, one, other, 1000)
    return found


def test_a_prediction_is_its_text_with_mentions_marked() -> None:
    found = prediction(("Ada", "Lovelace", "in", "London"), Span(0, 2, "person"), Span(3, 4, "city"))
    assert seen(found) == "Ada Lovelaceperson 0.88 in Londoncity 0.88"
    assert found._repr_html_().count("<mark") == 2
    long = prediction(("word",) * 3000, Span(0, 1, "a"), Span(2999, 3000, "b"))
    assert "… 9,999 more characters" in seen(long) and len(long._repr_html_()) < 7000


def test_scores_are_a_table_with_bars() -> None:
    figures = (("person", "city"), {"person": Counts(8, 10, 10), "city": Counts(0, 5, 0)})
    assert repr(Evaluation(*figures)) == "Evaluation(micro F1 64.0, macro F1 40.0; person 80.0, city 0.0)"
    shown = seen(Scores(*figures))
    assert "person 80.080.080.01010" in shown and "all (micro)" in shown and "all (macro) 40.0" in shown


def test_a_guard_report_says_what_was_lost() -> None:
    report = guard_of(old_type("person", 80, 40, "lost"), old_type("city", 70, 70, "unchanged"))
    assert repr(report) == "GuardReport(refused; 300 sentences: person lost, city unchanged)"
    shown = seen(report)
    assert shown.startswith("Refused: F1 of old types on 300 sentences")
    assert "40.0 [39.0, 41.0]lost" in shown and "unchanged" in shown


def test_learned_is_a_picture_and_its_figures(one_step: Path, tiny_corpus: Corpus, tmp_path: Path) -> None:
    """As a page, which the command writes, and in a notebook."""
    from cfner.cli.main import app
    from cfner.corpus.writers import write_sentences

    new, guard, html = (tmp_path / name for name in ("new.conll", "guard.conll", "learned.html"))
    write_sentences([s.only(["dish"]) for s in tiny_corpus.train], new, format="conll")
    write_sentences([s.only(["city"]) for s in tiny_corpus.test], guard, format="conll")
    call = ["learn", str(one_step), str(new), "--out", str(tmp_path / "out"), "--guard", str(guard)]
    call += ["--method", "finetune", "--epochs", "1", "--folds", "2", "--html", str(html)]
    done = CliRunner().invoke(app, call, env={"COLUMNS": "80"})
    assert done.exit_code in (0, 3) and f"The page is in {html}." in done.output.replace("\n", "")
    page = html.read_text("utf-8")
    for told in ("city", "dish", "before", "after", "<svg", "95 % intervals", "Measured with"):
        assert told in page
    assert "<script" not in page and 'style="' not in page and "default-src 'none'" in page
    before = html.read_bytes()
    again = CliRunner().invoke(app, call)
    assert "the file exists" in str(again.exception) and html.read_bytes() == before


def test_a_diff_shows_counts_and_sentences() -> None:
    words = ("Ada", "in", "London")
    old = prediction(words, Span(0, 1, "person"))
    new = prediction(words, Span(0, 1, "person"), Span(2, 3, "city"))
    shown = seen(diff_of([(old, new)] * 20, "before", "after"))
    assert "before → after: 20 of 20 sentences changed (20 gained)" in shown
    assert "Londoncity 0.88" in shown and "10 more changed sentences" in shown


@pytest.mark.parametrize("piece", PIECES)
def test_whatever_a_text_or_a_label_holds_stays_text(piece: str) -> None:
    words = (piece or "x", "in", piece or "x")
    one, two = prediction(words, Span(0, 1, piece)), prediction(words, Span(2, 3, piece))
    row = TypeBars(piece, Interval(80, 70, 90), Interval(60, 50, 70), "lost")
    ElementTree.fromstring(before_after([row], piece).file())
    for thing in (
        one,
        Scores((piece,), {piece: Counts(1, 2, 3)}),
        guard_of(old_type(piece, 80, 40, "lost")),
        diff_of([(one, two)], piece, piece),
    ):
        shown = seen(thing)
        assert all(sign.isprintable() for sign in shown)


@pytest.mark.parametrize("piece", PIECES)
def test_the_page_of_learn_keeps_it_text(piece: str) -> None:
    plan = SimpleNamespace(new=(piece,), more=(piece,))
    told: dict[str, Any] = {"plan": plan, "accepted": False, "step": 2, "below": (piece,), "promise": piece}
    told |= {"folder": Path(piece.replace("\0", "") or "x"), "what_to_try": (piece,)}
    told |= {"guard": guard_of(old_type(piece, 80, 40, "lost")), "estimate": estimate_of(piece, 50)}
    written = learn_page.page(cast("Learned", SimpleNamespace(**told)))
    body = written[written.index("<main>") : written.index("</main>")]
    tags = set(re.findall(r"<([a-z0-9]+)", re.sub(r"<svg.*?</svg>", "", body, flags=re.DOTALL)))
    assert tags <= TAGS | {"main", "header", "h1", "h2", "p", "figure", "section", "ol", "li"}
    assert all(sign.isprintable() or sign == "\n" for sign in written)
