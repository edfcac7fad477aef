"""The report of benchmark runs: right figures, plain words on what is missing, names that stay text."""

from __future__ import annotations

import re
import shutil
import statistics
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cfner.benchmark.report import write_report
from cfner.benchmark.report.as_latex import tex
from cfner.benchmark.report.contents import document
from cfner.benchmark.report.document import Heading, Paragraph, Table
from cfner.benchmark.report.grouping import groups_of
from cfner.benchmark.report.plots import round_scale, spread
from cfner.benchmark.report.reading import SentenceCounts, read_runs
from cfner.benchmark.report.significance import compare, difference, draws, resampled
from cfner.benchmark.report.tsne import tsne
from cfner.errors import ConfigError, ModelError
from cfner.pages import svg
from made_runs import Made, write_runs

TYPES = ("AGE", "CITY", "DATE", "DOCTOR")
SMALL = Made(TYPES, 2, 1)
HOSTILE = "<script>alert(1)</script>|`*_#&%$\\{}~^\"' [x](y)\u202e\x07"


def cells(table: Table, row: str) -> list[str]:
    (found,) = [line for line in table.rows if line[0].text == row]
    return [cell.text for cell in found]


def score_table(folder: Path) -> Table:
    return next(block for block in document(read_runs(folder)).blocks if isinstance(block, Table))


def said(folder: Path) -> str:
    blocks = document(read_runs(folder)).blocks
    return "\n".join(block.text for block in blocks if isinstance(block, Paragraph | Heading))


def tables_after(folder: Path, heading: str) -> list[Table]:
    """The tables of one section."""
    found, here = [], False
    for block in document(read_runs(folder)).blocks:
        if isinstance(block, Heading):
            here = block.text == heading
        elif here and isinstance(block, Table):
            found.append(block)
    return found


def counts(
    rows: list[tuple[int, int, int, int, int, int]], types: int, sentences: int, learned: list[int]
) -> SentenceCounts:
    columns = np.array(rows, dtype=np.int32).reshape(-1, 6).T
    names = np.array([f"t{i}" for i in range(types)])
    return SentenceCounts(*columns, names, np.array(sentences), learned=np.array(learned, dtype=np.int32))


def test_the_table_shows_mean_and_deviation_and_the_best_mean_in_bold(tmp_path: Path) -> None:
    write_runs(tmp_path, {"finetune": 0.2, "cfner": 0.9, "extendner": 0.7}, [SMALL])
    runs = read_runs(tmp_path)
    table = score_table(tmp_path)
    for column, pick in (
        (2, "mean_micro_f1"),
        (3, "mean_macro_f1"),
        (5, "last_macro_f1"),
        (6, "mean_forgetting"),
    ):
        means = {}
        for row in table.rows:
            values = [getattr(run, pick) for run in runs.runs if run.method == row[0].text]
            means[row[0].text] = statistics.fmean(values)
            written = f"{statistics.fmean(values):.2f} ± {statistics.stdev(values):.2f}"
            assert row[column].text == written.replace("-", "−")
        best = min(means, key=means.__getitem__) if column == 6 else max(means, key=means.__getitem__)
        assert [row[0].text for row in table.rows if row[column].bold] == [best]


def test_bounds_are_never_bold_and_not_compared(tmp_path: Path) -> None:
    skills = {"joint": 1.0, "joint-own": 0.97, "cfner": 0.8, "finetune": 0.3, "joint with lr=1": 0.99}
    write_runs(tmp_path, skills, [SMALL])
    scores = score_table(tmp_path)
    bold = {row[0].text for row in scores.rows if any(cell.bold for cell in row)}
    assert "cfner" in bold and bold <= {"cfner", "finetune"}
    assert all(sum(row[column].bold for row in scores.rows) == 1 for column in range(2, 10))
    assert "an upper bound" in said(tmp_path) and "a fair upper bound, not a strict one" in said(tmp_path)
    best, *_ = tables_after(tmp_path, "Is the difference real?")
    assert [row[0].text for row in best.rows] == ["cfner", "finetune"]


def test_one_seed_has_no_deviation(tmp_path: Path) -> None:
    write_runs(tmp_path, {"finetune": 0.2, "cfner": 0.9}, [SMALL], seeds=[3])
    table = score_table(tmp_path)
    assert not any("±" in cell.text or cell.bold for row in table.rows for cell in row)
    alarms = [b for b in document(read_runs(tmp_path)).blocks if isinstance(b, Paragraph) and b.alarm]
    assert [alarm.text[:38] for alarm in alarms] == ["Nothing can be concluded from one seed"]
    assert tables_after(tmp_path, "Is the difference real?") == []
    write_report(tmp_path)
    assert "<p class=alarm>Nothing can be concluded" in (tmp_path / "report.html").read_text("utf-8")


def test_best_is_said_only_of_a_method_that_is_surely_better_than_all_others(tmp_path: Path) -> None:
    for name, skills in (
        ("clear", {"finetune": 0.2, "cfner": 0.9}),
        ("even", {"cfner": 0.9, "own-other": 0.901}),
    ):
        write_runs(tmp_path / name, skills, [SMALL])
    clear, even = (tables_after(tmp_path / name, "Is the difference real?")[0] for name in ("clear", "even"))
    assert clear.head == ("method", "micro: difference to cfner", "p", "macro: difference to cfner", "p")
    assert [(row[1].text, row[1].bold) for row in clear.rows if row[2].text == "–"] == [("best", True)]
    highest = [(row[1].text, row[1].bold) for row in even.rows if row[2].text == "–"]
    assert highest == [("highest mean", False)]


def test_one_picture_comes_first_and_axes_begin_at_0(tmp_path: Path) -> None:
    write_runs(tmp_path, {"finetune": 0.2, "cfner": 0.9, "joint": 1.0}, [SMALL])
    made = document(read_runs(tmp_path))
    first = made.pictures[0]
    assert first.name == "summary" and made.blocks.index(first) < 3
    order = [first.svg.file().index(f">{method}<") for method in ("cfner", "finetune", "joint")]
    assert order == sorted(order)  # the best first, bounds last
    assert round_scale(81.0, 93.0)[0] == 0 and round_scale(-3.0, 7.0)[0] < 0
    assert "FG-2-PG-1: two types first, then one at a time" in said(tmp_path)


def test_the_tables_alone_for_a_paper(tmp_path: Path) -> None:
    write_runs(tmp_path, {"finetune": 0.2, "cfner": 0.9}, [SMALL])
    write_report(tmp_path)
    whole = (tmp_path / "report.tex").read_text("utf-8")
    alone = (tmp_path / "tables.tex").read_text("utf-8")
    assert alone.count(r"\begin{tabular}") == whole.count(r"\begin{tabular}") > 2
    assert "documentclass" not in alone and "% notes, FG-2-PG-1, greedy sampling: scores" in alone


def test_one_method_alone_is_not_compared_with_anything(tmp_path: Path) -> None:
    write_runs(tmp_path, {"cfner": 0.9}, [SMALL])
    assert not any(cell.bold for row in score_table(tmp_path).rows for cell in row)
    assert "Is the difference real?" not in said(tmp_path)
    assert write_report(tmp_path)


def test_runs_that_differ_in_more_than_method_and_seed_are_not_averaged(tmp_path: Path) -> None:
    made = [
        replace(SMALL, shared=(("epochs", epochs), ("text", text), ("head", "cosine")))
        for epochs, text in ((1, "abc"), (6, "abc"))
    ]
    write_runs(tmp_path, {"cfner": 0.9}, made)
    found = groups_of(read_runs(tmp_path))
    title = "notes, FG-2-PG-1, greedy sampling"
    assert [group.title for group in found] == [f"{title}, epochs 1", f"{title}, epochs 6"]
    assert [[run.seed for run in group.runs] for group in found] == [[0, 1, 2]] * 2
    assert write_report(tmp_path)


def test_other_text_of_the_same_name_is_told_apart_by_its_hash(tmp_path: Path) -> None:
    made = [replace(SMALL, shared=(("every", every), ("text", text))) for every, text in ((1, "a"), (1, "b"))]
    write_runs(tmp_path, {"cfner": 0.9}, made)
    titles = [group.title for group in groups_of(read_runs(tmp_path))]
    assert [title.rpartition(", ")[2] for title in titles] == ["text a", "text b"]


def test_two_runs_of_one_seed_are_told_loudly(tmp_path: Path) -> None:
    write_runs(tmp_path, {"cfner": 0.9}, [SMALL])
    assert "Several runs of the same seed" not in said(tmp_path)
    write_runs(tmp_path, {"cfner": 0.9}, [SMALL, SMALL], arrays=False)
    assert "Several runs of the same seed: cfner." in said(tmp_path)


def test_confusions_are_shown_only_where_types_become_old(tmp_path: Path) -> None:
    write_runs(tmp_path, {"cfner": 0.9}, [SMALL])
    assert "Confusions" in said(tmp_path)
    write_runs(tmp_path, {"cfner": 0.9}, [replace(SMALL, labels="none")], arrays=False)
    assert "Confusions" not in said(tmp_path)


def test_a_partly_finished_grid_says_what_is_missing(tmp_path: Path) -> None:
    left_out = {
        ("cfner", 2): ("failed", "TrainingError: the loss is not finite\nTraceback: ..."),
        ("lucir", 0): ("waiting", None),
        ("lucir", 1): ("waiting", None),
        ("lucir", 2): ("waiting", None),
    }
    write_runs(tmp_path, {"finetune": 0.2, "cfner": 0.9, "lucir": 0.5}, [SMALL], left_out=left_out)
    assert cells(score_table(tmp_path), "cfner")[1] == "2 of 3"
    assert "5 finished, 1 failed, 3 not run yet" in said(tmp_path)
    assert "Without a finished run, so not shown: lucir." in said(tmp_path)
    (table,) = tables_after(tmp_path, "What was not run")
    assert cells(table, "cfner")[2:] == ["2", "failed", "TrainingError: the loss is not finite"]
    assert cells(table, "lucir")[2:] == ["0, 1, 2", "waiting", "–"]
    for path in write_report(tmp_path):
        assert "Traceback" not in path.read_text(encoding="utf-8")


def test_a_grid_of_which_nothing_is_finished_is_reported_too(tmp_path: Path) -> None:
    write_runs(tmp_path, {"cfner": 0.9}, [SMALL], seeds=[0], left_out={("cfner", 0): ("waiting", None)})
    (tmp_path / "results.json").unlink()
    write_report(tmp_path)
    assert "No run of this setting is finished." in (tmp_path / "report.md").read_text(encoding="utf-8")


def test_a_folder_without_a_grid_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no grid\.json"):
        write_report(tmp_path)


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    write_runs(tmp_path, {"cfner": 0.9}, [SMALL])
    (tmp_path / "results.json").write_text('{"schema": 1, "runs": [{"key": "x"}]}')
    with pytest.raises(ConfigError, match=r"results\.json"):
        write_report(tmp_path)
    (tmp_path / "results.json").write_text('{"schema": 99, "runs": []}')
    with pytest.raises(ConfigError, match="schema 1"):
        write_report(tmp_path)


def test_the_same_runs_give_the_same_bytes(tmp_path: Path) -> None:
    write_runs(tmp_path, {"finetune": 0.2, "cfner": 0.9}, [SMALL], seeds=[0, 1])
    first = {path: path.read_bytes() for path in write_report(tmp_path)}
    second = {path: path.read_bytes() for path in write_report(tmp_path)}
    assert first == second


def test_pictures_of_an_earlier_report_go_and_no_others(tmp_path: Path) -> None:
    write_runs(tmp_path, {"finetune": 0.2, "cfner": 0.9}, [SMALL], seeds=[0])
    first, pictures = write_report(tmp_path), tmp_path / "pictures"
    (pictures / "mine.svg").write_text("<svg/>")
    (tmp_path / "mine.svg").write_text("<svg/>")
    with (pictures / ".written").open("a") as listed:
        listed.write("../mine\n")  # a list that came with somebody's folder leads nowhere else
    shutil.rmtree(tmp_path / "cells")
    write_runs(tmp_path, {"finetune": 0.2, "cfner": 0.9}, [Made(TYPES, 1, 1)], seeds=[0])
    second = write_report(tmp_path)
    assert not [path for path in first if path not in second and path.exists()]
    assert {path.name for path in pictures.glob("*.svg")} == {
        "mine.svg",
        *(path.name for path in second if path.suffix == ".svg"),
    }
    assert (tmp_path / "mine.svg").exists()


def test_a_report_that_cannot_be_written_leaves_the_earlier_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_runs(tmp_path, {"cfner": 0.9}, [SMALL], seeds=[0])
    before = {path: path.read_bytes() for path in write_report(tmp_path)}

    def full(path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("cfner.files.atomic.flush", full)  # of a file that is written and has no name yet
    with pytest.raises(ModelError, match="No space left"):
        write_report(tmp_path)
    assert {path: path.read_bytes() for path in before} == before
    assert not list(tmp_path.glob(".*"))


def test_scores_of_a_draw_are_those_computed_by_hand() -> None:
    # two sentences, two types; after step 0 type t0 is learned, after step 1 both
    table = counts(
        [
            (0, 0, 0, 1, 1, 1),  # step 0: t0 found in sentence 0 ...
            (0, 1, 0, 0, 1, 0),  # ... and missed in sentence 1
            (1, 0, 0, 0, 1, 1),  # step 1: t0 wrong in sentence 0
            (1, 1, 1, 1, 1, 1),  # and t1 found in sentence 1
        ],
        types=2,
        sentences=2,
        learned=[1, 2],
    )
    weights = np.array([[1, 1], [2, 0], [0, 2]], dtype=np.float32)
    found = resampled(table, weights)
    # as measured: step 0: 2*1/(2+1); step 1: micro 2*1/(2+2), macro (0 + 100)/2
    assert found["micro"][0] == pytest.approx((200 / 3 + 50) / 2)
    assert found["macro"][0] == pytest.approx((200 / 3 + 50) / 2)
    # sentence 0 twice: step 0 100, step 1 0; the absent t1 counts as 0 in macro
    assert found["micro"][1] == pytest.approx((100 + 0) / 2)
    assert found["macro"][1] == pytest.approx((100 + 0) / 2)
    # sentence 1 twice: step 0 0, step 1 micro 100, macro (0 + 100)/2
    assert found["micro"][2] == pytest.approx((0 + 100) / 2)
    assert found["macro"][2] == pytest.approx((0 + 50) / 2)


def test_what_is_measured_agrees_with_the_results(tmp_path: Path) -> None:
    write_runs(tmp_path, {"cfner": 0.9}, [SMALL])
    runs = read_runs(tmp_path)
    for run in runs.runs:
        held = runs.counts(run)
        assert held is not None
        scores = resampled(held, draws(int(held.sentences), resamples=1))
        assert scores["micro"][0] == pytest.approx(run.mean_micro_f1)
        assert scores["macro"][0] == pytest.approx(run.mean_macro_f1)


def test_an_interval_and_p_computed_by_hand() -> None:
    # as measured +1, then 10 draws: 9 above zero, 1 below
    apart = np.array([1.0, 1, 1, 1, 1, 1, 2, 2, 2, 2, -1])
    found = difference([apart + 50], [np.full(11, 50.0)])
    assert found.value == 1.0
    assert found.p == pytest.approx(2 * (1 + 1) / 11)
    assert (found.low, found.high) == pytest.approx(tuple(np.percentile(apart[1:], [2.5, 97.5])))
    assert not found.sure


def test_a_method_is_not_better_than_itself() -> None:
    random = np.random.default_rng(0)
    rows = [(0, s, 0, int(f), 1, 1) for s, f in enumerate(random.integers(0, 2, 200))]
    scores = resampled(counts(rows, 1, 200, [1]), draws(200))
    both = {"a": {0: scores, 1: scores}, "b": {0: scores, 1: scores}}
    found = compare(both, "a", "b", "micro")
    assert found is not None
    assert (found.value, found.p, found.sure) == (0.0, 1.0, False)


def test_a_clear_difference_is_significant_and_a_coin_flip_is_not() -> None:
    random = np.random.default_rng(1)
    weights = draws(300)

    def method(share: float) -> dict[int, object]:
        hits = random.random(300) < share
        rows = [(0, s, 0, int(h), 1, 1) for s, h in enumerate(hits)]
        return dict.fromkeys((0, 1), resampled(counts(rows, 1, 300, [1]), weights))

    scores = {"good": method(0.8), "bad": method(0.4), "as bad": method(0.4)}
    clear = compare(scores, "good", "bad", "macro")  # type: ignore[arg-type]
    even = compare(scores, "bad", "as bad", "macro")  # type: ignore[arg-type]
    assert clear is not None and clear.sure and clear.low > 0
    assert even is not None and not even.sure and even.low < 0 < even.high
    assert compare({**scores, "bad": {7: None}}, "good", "bad", "macro") is None  # type: ignore[dict-item]


def test_every_draw_has_as_many_sentences_and_the_first_is_the_data() -> None:
    weights = draws(50, resamples=20)
    assert (weights[0] == 1).all()
    assert (weights.sum(1) == 50).all()
    assert (weights == draws(50, resamples=20)).all()


def test_methods_without_counts_are_named_instead_of_compared(tmp_path: Path) -> None:
    write_runs(tmp_path, {"finetune": 0.2, "cfner": 0.9, "lucir": 0.5}, [SMALL], seeds=[0, 1])
    for run in read_runs(tmp_path).runs:
        if run.method == "lucir":
            (tmp_path / "cells" / run.key / "counts.npz").unlink()
    assert "saved no counts per test sentence: lucir" in said(tmp_path)
    best, *_ = tables_after(tmp_path, "Is the difference real?")
    assert [row[0].text for row in best.rows] == ["finetune", "cfner"]


def test_no_arrays_at_all_are_said_plainly(tmp_path: Path) -> None:
    write_runs(tmp_path, {"finetune": 0.2, "cfner": 0.9}, [SMALL], arrays=False)
    assert "saved no counts per test sentence: finetune, cfner" in said(tmp_path)
    assert "No run saved features" in said(tmp_path)
    assert write_report(tmp_path)


def test_parts_left_out_are_compared_seed_by_seed(tmp_path: Path) -> None:
    write_runs(tmp_path, {"cfner": 0.9, "cfner without effect_o": 0.6, "finetune": 0.1}, [SMALL])
    (table,) = tables_after(tmp_path, "Parts left out")
    runs = {(run.method, run.seed): run.mean_micro_f1 for run in read_runs(tmp_path).runs}
    apart = [runs["cfner without effect_o", seed] - runs["cfner", seed] for seed in range(3)]
    written = f"{statistics.fmean(apart):+.2f} ± {statistics.stdev(apart):.2f}".replace("-", "−")
    assert cells(table, "cfner without effect_o")[2] == written
    assert [row[0].text for row in table.rows] == ["cfner", "cfner without effect_o"]


def test_combinations_and_other_parameters_have_tables_of_their_own(tmp_path: Path) -> None:
    skills = {"lucir": 0.5, "lucir+cf": 0.7, "cfner": 0.9, "cfner with k=10": 0.8, "cfner with k=2": 0.6}
    write_runs(tmp_path, skills, [SMALL], seeds=[0])
    (combined,) = tables_after(tmp_path, "With causal effects plugged in")
    assert [row[0].text for row in combined.rows] == ["lucir", "lucir+cf"]
    (varied,) = tables_after(tmp_path, "Other parameters")
    assert [row[0].text for row in varied.rows] == ["cfner, defaults", "cfner with k=2", "cfner with k=10"]


def test_published_figures_stand_beside_runs_of_the_same_setting(tmp_path: Path) -> None:
    types = tuple(f"T{i}" for i in range(6))
    write_runs(
        tmp_path, {"lucir": 0.5, "cfner": 0.9, "joint": 1.0}, [Made(types, 2, 2, data="i2b2")], seeds=[0]
    )
    table = score_table(tmp_path)
    assert cells(table, "cfner")[-2:] == ["71.98 ± 0.50", "49.09 ± 1.38"]
    assert cells(table, "lucir")[-2:] == ["64.32 ± 0.76†", "43.53 ± 0.59†"]
    assert cells(table, "joint")[-2:] == ["–", "–"]
    assert "† The same micro and macro F1 are printed for I2B2 and for OntoNotes5" in said(tmp_path)


@pytest.mark.parametrize(("sampling", "labels"), [("random", "own"), ("greedy", "current")])
def test_published_figures_of_another_protocol_do_not(tmp_path: Path, sampling: str, labels: str) -> None:
    made = Made(tuple(f"T{i}" for i in range(6)), 2, 2, data="i2b2", sampling=sampling, labels=labels)
    write_runs(tmp_path, {"lucir": 0.5, "cfner": 0.9}, [made], seeds=[0])
    assert not any("published" in name for name in score_table(tmp_path).head)


def test_another_corpus_gets_published_figures_for_orientation_only(tmp_path: Path) -> None:
    write_runs(tmp_path, {"cfner": 0.9}, [SMALL], seeds=[0])
    assert not any("published" in name for name in score_table(tmp_path).head)
    table, *_ = tables_after(tmp_path, "I2B2")
    assert cells(table, "PODNet")[2] == "34.67 / 24.62†"


def test_slices_labels_and_samplings_are_drawn_side_by_side(tmp_path: Path) -> None:
    settings = [
        SMALL,
        Made(TYPES, 2, 1, sampling="random"),
        Made(TYPES, 2, 1, labels="none"),
        Made(TYPES, 2, 1, labels="current"),
    ]
    write_runs(tmp_path, {"finetune": 0.2}, settings, seeds=[0])
    pictures = {picture.name: picture.svg.inline() for picture in document(read_runs(tmp_path)).pictures}
    (slices,) = [drawn for name, drawn in pictures.items() if name.endswith("slices")]
    assert "greedy sampling" in slices and "random sampling" in slices
    (other,) = [drawn for name, drawn in pictures.items() if "other-class" in name]
    assert all(f">{labels}</text>" in other for labels in ("own", "none", "current"))
    assert len(groups_of(read_runs(tmp_path))) == 4


@given(st.text(max_size=40), st.floats(-20, 300), st.sampled_from([9, 12]))
def test_a_long_name_keeps_as_much_as_there_is_room_for(name: str, room: float, size: int) -> None:
    shown = svg.fitted(name, room, size)
    if svg.width_of(name, size) <= room:
        assert shown == name
    else:
        starts = [name[:length] + "…" for length in range(len(name) + 1)]
        assert shown == max((s for s in starts if svg.width_of(s, size) <= room), key=len, default="…")


def test_a_very_long_name_is_measured_about_once(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = []
    monkeypatch.setattr(svg, "width_of", lambda value, size=12: measured.append(len(value)) or len(value) * 9)
    assert svg.fitted("x" * 2000, 170) == "x" * 17 + "…"
    assert sum(measured) < 3000


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.shown: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.shown.append(data)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    made = Made((HOSTILE, "<b>A</b>", "]]>", "\\input{x}", "中文", "é\U0001f600"), 2, 2, data=f"../{HOSTILE}")
    left_out = {("cfner", 1): ("failed", f"{HOSTILE} went wrong")}
    skills = {HOSTILE: 0.3, "cfner": 0.8, f"{HOSTILE} without <i>x": 0.5, "\\input{x}": 0.4}
    write_runs(folder, skills, [made], seeds=[0, 1], left_out=left_out, name=HOSTILE)
    write_report(folder)
    return folder


def test_hostile_names_stay_text_in_html(hostile: Path) -> None:
    page = (hostile / "report.html").read_text(encoding="utf-8")
    reader = Reader()
    reader.feed(page)
    assert not reader.tags & {"script", "i", "img", "iframe", "link", "object"}
    assert not any(name.startswith("on") for name in reader.attributes)
    assert any("<script>alert(1)</script>" in text for text in reader.shown)
    assert "src=" not in page and "@import" not in page and "url(" not in page


def test_hostile_names_stay_text_in_pictures(hostile: Path) -> None:
    pictures = sorted((hostile / "pictures").glob("*.svg"))
    assert len(pictures) >= 6
    for path in pictures:
        assert re.fullmatch(r"[a-z0-9-]+\.svg", path.name)
        tags = {element.tag.rpartition("}")[2] for element in ElementTree.parse(path).iter()}
        allowed = {"svg", "title", "style", "rect", "text", "line", "polyline", "polygon", "circle"}
        assert tags <= allowed


def test_hostile_names_stay_text_in_markdown(hostile: Path) -> None:
    text = (hostile / "report.md").read_text(encoding="utf-8")
    assert "<script" not in text and "\x07" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\|" in text
    widths: set[int] = set()
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            widths.add(len(re.findall(r"(?<!\\)\|", line)))
        else:
            assert len(widths) <= 1  # no name adds a column
            widths = set()


def test_hostile_names_stay_text_in_latex(hostile: Path) -> None:
    text = (hostile / "report.tex").read_text(encoding="utf-8")
    assert r"\input{" not in text
    assert r"\textbackslash{}input\{x\}" in text
    body = text[text.index(r"\begin{document}") :]
    assert body.isascii() and "\x07" not in body
    assert tex("a_b & c % $ # { } ~ ^ \\") == (
        r"a\_b \& c \% \$ \# \{ \} \textasciitilde{} \textasciicircum{} \textbackslash{}"
    )
    assert tex("a--b ?` 'x'") == "a-{}-b ?{}` 'x'"
    assert tex("é±中") == r"{\'{e}}$\pm$\texttt{U+4E2D}"


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
def test_the_latex_compiles_by_itself(hostile: Path, tmp_path: Path) -> None:
    shutil.copy(hostile / "report.tex", tmp_path)
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "report.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "report.pdf").stat().st_size > 10_000


def test_markdown_links_to_every_picture_that_was_written(tmp_path: Path) -> None:
    write_runs(tmp_path, {"finetune": 0.2, "cfner": 0.9}, [SMALL], seeds=[0])
    written = {f"pictures/{path.name}" for path in write_report(tmp_path) if path.suffix == ".svg"}
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\]\((pictures/[^)]+)\)", text)) == written


def test_names_at_the_ends_of_curves_never_cover_one_another() -> None:
    wanted = [10, 10, 11, 12, 60, 61, 95, 99]
    places = spread(wanted, 0, 100 + 15 * 2)
    assert all(b - a >= 15 for a, b in pairwise(places))
    assert min(places) >= 0 and max(places) <= 130
    assert spread([10, 50], 0, 100) == [10, 50]
    assert spread([50, 50, 50], 0, 100) == [35, 50, 65]  # around what is wanted, not only below


def test_the_map_of_features_keeps_clusters_together_and_is_the_same_each_time() -> None:
    random = np.random.default_rng(0)
    kinds = np.repeat([0, 1, 2], 30)
    features = (random.normal(size=(3, 20)) * 10)[kinds] + random.normal(size=(90, 20))
    places = tsne(features)
    centres = np.stack([places[kinds == kind].mean(0) for kind in range(3)])
    nearest = np.linalg.norm(places[:, None] - centres[None], axis=2).argmin(1)
    assert (nearest == kinds).mean() > 0.95
    assert (tsne(features) == places).all()
    assert np.isfinite(tsne(np.zeros((10, 4)))).all()
