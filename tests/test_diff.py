"""What changed between two models: the pairing by its properties, the command as a user types it."""

from __future__ import annotations

import itertools
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from cfner import diff
from cfner.cli.diff import diff as diff_command
from cfner.corpus.corpus import Corpus
from cfner.corpus.sentence import Sentence, Span
from cfner.corpus.tokenise import sentence_from_characters
from cfner.corpus.writers import write_sentences
from cfner.errors import ConfigError, CorpusError, ModelError
from cfner.network.prediction import Prediction, entity_of
from cfner.practice.diff.diff import ModelDiff, blank_before, compare
from cfner.practice.diff.page import page
from cfner.practice.diff.pairs import KINDS, Change, judge, pair
from cfner.practice.diff.sources import plain_texts, text_source, two_models
from cfner.store.open import ModelRef

TYPES = ["city", "person", "dish"]
WORDS = 12


@st.composite
def taggings(draw: st.DrawFn) -> tuple[Span, ...]:
    edges = sorted(draw(st.sets(st.integers(0, WORDS), max_size=8)))
    return tuple(
        Span(a, b, draw(st.sampled_from(TYPES))) for a, b in itertools.pairwise(edges) if draw(st.booleans())
    )


def shared(a: Span, b: Span) -> int:
    return max(0, min(a.end, b.end) - max(a.start, b.start))


# the pairing


@given(taggings())
def test_a_tagging_does_not_differ_from_itself(spans: tuple[Span, ...]) -> None:
    assert pair(spans, spans) == ([], list(spans))


@given(taggings(), taggings())
def test_every_mention_is_in_exactly_one_place(old: tuple[Span, ...], new: tuple[Span, ...]) -> None:
    changes, same = pair(old, new)
    assert sorted([c.old for c in changes if c.old] + same) == sorted(old)
    assert sorted([c.new for c in changes if c.new] + same) == sorted(new)


@given(taggings(), taggings())
def test_each_kind_is_what_it_says(old: tuple[Span, ...], new: tuple[Span, ...]) -> None:
    for change in pair(old, new)[0]:
        a, b = change.old, change.new
        if a is None or b is None:
            assert change.kind == ("gained" if a is None else "lost")
            continue
        assert shared(a, b) > 0 and a != b
        same_words, same_type = (a.start, a.end) == (b.start, b.end), a.type == b.type
        expected = {(True, False): "retyped", (False, True): "moved", (False, False): "moved+retyped"}
        assert change.kind == expected[same_words, same_type]


@given(taggings(), taggings())
def test_swapping_the_models_swaps_lost_and_gained(old: tuple[Span, ...], new: tuple[Span, ...]) -> None:
    swapped = {"lost": "gained", "gained": "lost", "split": "joined", "joined": "split", None: None}

    def mirrored(change: Change) -> tuple[object, ...]:
        return swapped.get(change.kind, change.kind), change.new, change.old, swapped[change.piece]

    there = {mirrored(change) for change in pair(old, new)[0]}
    back = {(c.kind, c.old, c.new, c.piece) for c in pair(new, old)[0]}
    assert there == back


@given(taggings(), taggings())
def test_no_two_leftovers_could_still_be_paired(old: tuple[Span, ...], new: tuple[Span, ...]) -> None:
    changes, _ = pair(old, new)
    lost, gained = [c for c in changes if c.kind == "lost"], [c for c in changes if c.kind == "gained"]
    for left in lost:
        assert left.old is not None
        touches = [span for span in new if shared(left.old, span)]
        assert bool(touches) == (left.piece == "joined")
        for right in gained:
            assert right.new is not None and not shared(left.old, right.new)
        # a larger overlap is never given up for a smaller one, unless the partner has a larger one still
        for span in touches:
            [partner] = [c.old for c in changes if c.new == span]
            assert partner is not None and shared(partner, span) >= shared(left.old, span)


@given(taggings(), taggings(), taggings())
def test_verdicts_agree_with_the_gold_labels(
    old: tuple[Span, ...], new: tuple[Span, ...], gold: tuple[Span, ...]
) -> None:
    for change in pair(old, new)[0]:
        verdict = judge(change, gold, TYPES)
        assert verdict is not None  # all types are judged
        if change.new in gold:
            assert verdict == "right"
        elif change.old in gold:
            assert verdict == "wrong"
        elif not any(shared(span, mention) for span in (change.old, change.new) if span for mention in gold):
            assert verdict == {"lost": "right", "gained": "wrong"}.get(change.kind, "still wrong")


def test_a_type_that_is_not_labelled_is_not_judged() -> None:
    lost = Change("lost", Span(0, 1, "person"), None)
    assert judge(lost, [], ["city"]) is None
    assert judge(lost, [], ["person"]) == "right"
    assert judge(lost, [Span(0, 2, "city")], ["city"]) == "still wrong"  # a city was and is missed
    assert judge(Change("retyped", Span(0, 1, "person"), Span(0, 1, "city")), [], ["city"]) is None


def test_a_split_mention_is_a_moved_one_and_a_gained_piece() -> None:
    whole, left, right = Span(0, 3, "city"), Span(0, 2, "city"), Span(2, 3, "city")
    changes, _ = pair([whole], [left, right])
    assert [(c.kind, c.new, c.piece) for c in changes] == [("moved", left, None), ("gained", right, "split")]
    changes, _ = pair([left, right], [whole])
    assert {(c.kind, c.piece) for c in changes} == {("moved", None), ("lost", "joined")}


# the counts


def tagged(sentence: Sentence, spans: tuple[Span, ...]) -> Prediction:
    return Prediction(sentence, tuple(entity_of(sentence, span, 0.5) for span in spans))


@given(st.lists(st.tuples(taggings(), taggings(), taggings()), max_size=6), st.integers(0, 3))
def test_counts_add_up(rows: list[tuple[tuple[Span, ...], ...]], keep: int) -> None:
    found = ModelDiff("a", "b", (), (), tuple(TYPES))
    for old, new, gold in rows:
        sentence = Sentence(tuple(f"w{i}" for i in range(WORDS)), gold)
        compare(found, tagged(sentence, old), tagged(sentence, new), keep)
    assert found.sentences == len(rows)
    assert found.changed_sentences == sum(set(old) != set(new) for old, new, _ in rows)
    assert len(found.changed) == min(keep, found.changed_sentences)
    for type_, c in found.per_type.items():
        assert c.before == sum(span.type == type_ for old, _, _ in rows for span in old)
        assert c.after == sum(span.type == type_ for _, new, _ in rows for span in new)
        assert c.before == c.unchanged + c.lost + c.moved + c.away
        assert c.after == c.unchanged + c.gained + c.moved + c.to
    assert sum(c.lost for c in found.per_type.values()) == found.counts["lost"]
    assert sum(verdicts.total() for verdicts in found.verdicts.values()) == found.total
    as_json = found.to_json()
    assert json.loads(json.dumps(as_json)) == as_json


# the page

HOSTILE = '<script>alert(1)</script> "quoted" & \x1b[31m \u202e evil'


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def hostile_diff() -> ModelDiff:
    sentence = Sentence((HOSTILE, "and", HOSTILE), (Span(0, 1, HOSTILE),), source=HOSTILE)
    found = ModelDiff(HOSTILE, HOSTILE, (HOSTILE,), (HOSTILE,), (HOSTILE,))
    compare(found, tagged(sentence, (Span(0, 1, HOSTILE),)), tagged(sentence, (Span(2, 3, HOSTILE),)), 10)
    compare(found, tagged(sentence, (Span(0, 1, HOSTILE),)), tagged(sentence, (Span(0, 2, "x"),)), 10)
    return found


def test_nothing_on_the_page_is_markup_but_its_own() -> None:
    parser = Tags()
    shown = page(hostile_diff())
    parser.feed(shown)
    assert "script" not in parser.tags and not {"onclick", "src", "onerror"} & parser.attributes
    assert "<script>alert(1)</script>" in "".join(parser.text)
    assert "\x1b" not in shown and "\u202e" not in shown
    assert "http" not in shown.replace("http-equiv", "")  # nothing from elsewhere
    assert "default-src 'none'" in shown and "light-dark(" in shown


@given(taggings(), taggings())
def test_the_page_shows_every_word_on_both_sides(old: tuple[Span, ...], new: tuple[Span, ...]) -> None:
    sentence = Sentence(tuple(f"w{i}" for i in range(WORDS)))
    found = ModelDiff("a", "b", (), (), ())
    compare(found, tagged(sentence, old), tagged(sentence, new), 10)
    shown = page(found)
    for word in sentence.words:
        assert len(re.findall(rf"<bdi>{word}</bdi>", shown)) == 2 * found.total
    for kind in KINDS:
        assert shown.count(f"<section id='{kind.replace('+', '-and-')}'") == (found.counts[kind] > 0)


def test_text_keeps_its_blanks() -> None:
    sentence = sentence_from_characters("Ada's  dog.", [])[0]
    words = [blank_before(sentence, at) + word for at, word in enumerate(sentence.words)]
    assert "".join(words).strip() == "Ada's dog."


# what the command is given


def test_models_can_be_named_in_several_ways(two_steps: Path) -> None:
    m = str(two_steps)
    first, second = ModelRef(m, 1), ModelRef(m, 2)
    assert two_models([m]) == (first, second)
    assert two_models([m], 1, 2) == two_models([m], None, 2) == two_models([m], 1) == (first, second)
    assert two_models([f"{m}@1", f"{m}@2"]) == two_models([f"{m}@1"]) == (first, second)
    assert two_models([m, m], 2, 1) == (second, first)
    assert two_models([m, f"{m}@1"]) == (ModelRef(m), first)
    with pytest.raises(ConfigError, match="Name the step once"):
        two_models([f"{m}@1", m], step=2)
    with pytest.raises(ConfigError, match="no step before"):
        two_models([m], None, 1)
    done = runner.invoke(app, [m, m, m, "text.txt"])
    assert "3 models were given" in str(done.exception)
    with pytest.raises(ConfigError, match="not a folder with steps"):
        two_models(["somebody/checkpoint"])
    with pytest.raises(ModelError, match="no step"):
        two_models([f"{m}@7", m])[0].open()


def test_a_folder_with_an_at_sign_in_its_name_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "model@2").mkdir()
    assert ModelRef.parse(str(tmp_path / "model@2")) == ModelRef(str(tmp_path / "model@2"))


def test_text_files_are_told_from_labelled_ones(tmp_path: Path, tiny_corpus: Corpus) -> None:
    labelled, plain = tmp_path / "labelled.txt", tmp_path / "plain.txt"
    write_sentences(tiny_corpus.test, labelled, format="conll")
    plain.write_text("Today ada saw O\n\n  \nthe river.\n", encoding="utf-8")
    assert text_source(str(labelled)).judged == tuple(TYPES_OF_TINY)
    source = text_source(str(plain))
    assert source.judged == () and [s.text for s in source.sentences] == ["Today ada saw O", "the river."]
    assert text_source(str(labelled), plain=True).judged == ()
    other = tmp_path / "letters.md"
    other.write_text("the river", encoding="utf-8")
    assert [s.source for s in text_source(str(other)).sentences] == [f"{other}:1"]
    with pytest.raises(CorpusError, match="no such file"):
        text_source(str(tmp_path / "none.txt"))
    (tmp_path / "latin.md").write_bytes(b"caf\xe9")
    with pytest.raises(CorpusError, match="UTF-8"):
        list(plain_texts(tmp_path / "latin.md"))


TYPES_OF_TINY = ["animal", "city", "dish", "person"]

# the command

runner = CliRunner()
app = typer.Typer()
app.command()(diff_command)


def run(*arguments: object) -> str:
    result = runner.invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def texts(tmp_path: Path, tiny_corpus: Corpus) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(" ".join(s.words) for s in tiny_corpus.test), encoding="utf-8")
    return path


def test_a_model_does_not_differ_from_itself(two_steps: Path, texts: Path) -> None:
    found = json.loads(run(two_steps, two_steps, texts, "--json"))
    assert found["counts"] == dict.fromkeys(KINDS, 0) and found["changed"] == []
    assert found["unchanged"] > 0 and found["sentences"] == 20
    assert "No prediction changed" in run(two_steps, two_steps, texts)


def test_two_steps_of_one_model(two_steps: Path, tiny_data: Path, tmp_path: Path) -> None:
    target = tmp_path / "diff.html"
    found = json.loads(run(two_steps, tiny_data, "--json", "--html", target))  # a folder: its test split
    assert found["old"]["types"] == ["animal", "city"] and set(found["new"]["types"]) == set(TYPES_OF_TINY)
    assert found["labelled_types"] == TYPES_OF_TINY
    # the second step learned dishes and persons, most of them rightly
    gained = found["per_type"]["person"]["gained"] + found["per_type"]["person"]["to"]
    assert gained == found["per_type"]["person"]["after"] > 0
    assert sum(v["right"] for v in found["verdicts"].values()) > sum(
        v["wrong"] for v in found["verdicts"].values()
    )
    assert target.read_text(encoding="utf-8").startswith("<!doctype html>")
    backwards = json.loads(run(two_steps, "--step", 2, "--step2", 1, tiny_data, "--json"))
    assert backwards["counts"]["lost"] == found["counts"]["gained"]
    assert backwards["counts"]["gained"] == found["counts"]["lost"]
    assert backwards["counts"]["retyped"] == found["counts"]["retyped"]
    few = json.loads(run(f"{two_steps}@1", f"{two_steps}@2", tiny_data, "--json", "--keep", 2))
    assert len(few["changed"]) == 2 and few["changed_left_out"] == found["changed_sentences"] - 2
    assert few["counts"] == found["counts"]


def test_a_generator_may_be_labelled_or_not(two_steps: Path) -> None:
    labelled = [("today ada saw the river", [(6, 9, "person")]), ("a stew with alan turing", [])]
    texts = [text for text, _ in labelled]
    judged = diff(two_steps, text=iter(labelled))
    assert judged.judged_types == ("person",) and judged.to_json() == diff(two_steps, text=labelled).to_json()
    for unlabelled in (texts, [{"text": text} for text in texts]):
        assert diff(two_steps, text=iter(unlabelled)).to_json() == diff(two_steps, text=texts).to_json()


def test_in_the_terminal_side_by_side(two_steps: Path) -> None:
    shown = run(two_steps, "--text", "today alan turing saw the river", "--text", "a stew \x1b[31m with ada")
    assert "gained" in shown and "Gained" in shown and "\x1b[31m" not in shown
    assert re.search(r"\[.*\]\((person|dish) \d\.\d\d\)", shown.replace("\n", " "))


def test_what_is_missing_is_said(two_steps: Path, texts: Path, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="text 2: the text contains an unpaired surrogate"):
        run(two_steps, "--text", "fine", "--text", "a \udcff b")  # what the system makes of a wrong byte
    with pytest.raises(ConfigError, match="no text"):
        run(two_steps)
    with pytest.raises(ConfigError, match="gone' is not a folder with steps"):
        run(tmp_path / "gone", texts)
    with pytest.raises(CorpusError, match=r"page\.html: the file cannot be written"):
        run(two_steps, texts, "--html", texts / "page.html")


def test_a_page_replaces_nothing_unless_asked_to(two_steps: Path, texts: Path) -> None:
    before = texts.read_bytes()
    with pytest.raises(CorpusError, match=r"the file exists.*`overwrite=True`"):
        run(two_steps, texts, "--html", texts)
    assert texts.read_bytes() == before
    run(two_steps, texts, "--html", texts, "--overwrite")
    assert texts.read_bytes().startswith(b"<!doctype html>")
    assert list(texts.parent.iterdir()) == [texts]
