"""The picture of what each type lost: which methods are in it, and that its dots are where they should be."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfner.benchmark.report.dumbbells import Ends, dumbbells
from cfner.benchmark.report.grouping import groups_of
from cfner.benchmark.report.loss_chart import chosen, lost_types
from cfner.benchmark.report.reading import read_runs
from made_runs import Made, write_runs

NAMESPACE = "{http://www.w3.org/2000/svg}"
SMALL = Made(("AGE", "CITY", "DATE", "DOCTOR"), 2, 1)
F1 = st.floats(0, 100)


def dots(drawn: ElementTree.Element, kind: str) -> list[tuple[float, float]]:
    """(y, x) of the circles of a class, row by row, without that of the legend."""
    circles = [c for c in drawn.iter(f"{NAMESPACE}circle") if c.get("class") == kind]
    places = [(float(c.get("cy", "")), float(c.get("cx", ""))) for c in circles]
    return sorted(place for place in places if place[0] > 60)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.lists(st.tuples(F1, F1), min_size=4, max_size=4), min_size=1, max_size=4),
    st.sampled_from([(4,), (2, 2), (1, 1, 1, 1)]),
)
def test_every_type_has_its_two_dots_where_its_f1_is(
    values: list[list[tuple[float, float]]], sizes: tuple[int, ...]
) -> None:
    names = iter("ABCD")
    steps = [[next(names) for _ in range(size)] for size in sizes]
    panels = [Ends(f"m{i}", "", dict(zip("ABCD", rows, strict=True))) for i, rows in enumerate(values)]
    drawn = ElementTree.fromstring(dumbbells(panels, steps, (), "title").file())
    places = []
    for number, rows in enumerate(values):
        hollow, filled = dots(drawn, f"v-s{number}"), dots(drawn, f"v-f{number}")
        assert [y for y, _ in hollow] == [y for y, _ in filled]  # a type is one row, the same in all panels
        places.append([y for y, _ in hollow])
        f1 = np.array([when for when, _ in rows] + [end for _, end in rows])
        x = np.array([x for _, x in hollow] + [x for _, x in filled])
        ticks = axis(drawn, number, len(panels))
        assert np.interp(f1, *ticks) == pytest.approx(x, abs=0.2)
    assert all(rows == places[0] for rows in places) and len(set(places[0])) == 4


def axis(drawn: ElementTree.Element, number: int, panels: int) -> tuple[list[float], list[float]]:
    """The numbers below a panel, and where they stand."""
    texts = [t for t in drawn.iter(f"{NAMESPACE}text") if t.get("text-anchor") == "middle"]
    ticks = [(float(t.get("x", "")), float(t.text or "")) for t in texts]
    mine = ticks[number * len(ticks) // panels : (number + 1) * len(ticks) // panels]
    return [value for _, value in mine], [x for x, _ in mine]


def test_a_type_that_a_panel_does_not_know_has_no_dots_in_it() -> None:
    panels = [Ends("a", "", {"A": (50, 40), "B": (60, 60)}), Ends("b", "", {"B": (70, 20)})]
    drawn = ElementTree.fromstring(dumbbells(panels, [["A"], ["B"]], {"A"}, "title").file())
    assert (len(dots(drawn, "v-f0")), len(dots(drawn, "v-f1"))) == (2, 1)
    inks = {t.text: t.get("class") for t in drawn.iter(f"{NAMESPACE}text")}
    assert (inks["A"], inks["B"]) == ("v-soft", "v-ink")


@pytest.mark.parametrize(
    ("skills", "expected"),
    [
        (
            {"lucir": 0.5, "joint": 1.0, "cfner": 0.8, "extendner": 0.7, "joint-own": 0.9, "finetune": 0.1},
            ["finetune", "cfner", "extendner", "joint-own"],
        ),
        ({"joint": 1.0, "lucir": 0.3, "extendner": 0.9}, ["extendner", "joint", "lucir"]),
        (
            {"cfner with k=5": 0.9, "cfner with k=5 without effect_o": 0.7, "extendner": 0.8},
            ["cfner with k=5", "cfner with k=5 without effect_o", "extendner"],
        ),
        ({"cfner": 0.9}, ["cfner"]),
    ],
)
def test_a_handful_of_methods_is_shown(tmp_path: Path, skills: dict[str, float], expected: list[str]) -> None:
    write_runs(tmp_path, skills, [SMALL])
    (group,) = groups_of(read_runs(tmp_path))
    assert chosen(group) == expected
    _, picture, *_ = lost_types(group)
    shown = [t.text for t in ElementTree.fromstring(picture.svg.file()).iter(f"{NAMESPACE}text")]
    whole = [name for name in expected if "without" not in name]  # a long name is cut
    assert [name for name in shown if name in skills] == whole
    assert [name for name in shown if name in SMALL.types] == list(SMALL.types)


def test_dots_are_means_over_seeds(tmp_path: Path) -> None:
    write_runs(tmp_path, {"cfner": 0.6}, [SMALL])
    (group,) = groups_of(read_runs(tmp_path))
    _, picture, *_ = lost_types(group)
    drawn = ElementTree.fromstring(picture.svg.file())
    runs = json.loads((tmp_path / "results.json").read_text())["runs"]
    for kind, key in (("v-s0", "when_learned"), ("v-f0", "at_the_end")):
        means = [np.mean([run[key][type_] for run in runs]) for type_ in SMALL.types]
        found = [x for _, x in dots(drawn, kind)]
        assert np.interp(means, *axis(drawn, 0, 1)) == pytest.approx(found, abs=0.2)


def test_nothing_is_drawn_of_one_step_or_of_results_that_do_not_say_what_was_lost(tmp_path: Path) -> None:
    write_runs(tmp_path, {"cfner": 0.6}, [Made(("AGE", "CITY"), 2, 1)])
    (group,) = groups_of(read_runs(tmp_path))
    assert lost_types(group) == []
    write_runs(tmp_path, {"cfner": 0.6}, [SMALL], arrays=False)
    data = json.loads((tmp_path / "results.json").read_text())
    for run in data["runs"]:
        del run["lost"], run["when_learned"], run["at_the_end"]
    (tmp_path / "results.json").write_text(json.dumps(data))
    (group,) = groups_of(read_runs(tmp_path))
    assert lost_types(group) == []
