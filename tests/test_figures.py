"""The picture of step x type F1 shows every figure of the matrix, and is well-formed."""

from __future__ import annotations

from xml.etree import ElementTree

from hypothesis import given, settings
from hypothesis import strategies as st

from cfner.evaluation.forgetting import StepMatrix
from cfner.evaluation.scores import Counts, Scores
from cfner.files.safe_text import visible
from cfner.pages.heat_map import heat_maps

SVG = "{http://www.w3.org/2000/svg}"
signs = st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff")
names = st.text(signs, min_size=1, max_size=12)  # longer ones are shortened, see below


@st.composite
def matrices(draw: st.DrawFn) -> StepMatrix:
    types = draw(st.lists(names, min_size=1, max_size=5, unique=True))
    steps = []
    for known in range(1, len(types) + 1):
        found = draw(st.lists(st.integers(0, 9), min_size=known, max_size=known))
        counts = {type_: Counts(tp, 9, 9) for type_, tp in zip(types[:known], found, strict=True)}
        steps.append(Scores(tuple(types[:known]), counts))
    return StepMatrix(tuple(steps))


def texts(picture: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(picture).iter(f"{SVG}text")]


@settings(deadline=None, max_examples=50)
@given(matrices(), names)
def test_every_figure_and_every_name_is_in_the_picture(matrix: StepMatrix, title: str) -> None:
    shown = texts(heat_maps({"finetune": matrix, "a < b & c": matrix}, title))
    figures = [*matrix.micro, *matrix.macro]
    figures += [value for row in matrix.per_type for value in row.values() if value is not None]
    assert visible(title) in shown
    assert {"finetune", "a < b & c"} <= set(shown)
    for type_ in matrix.types:
        assert visible(type_) in shown
    for value in figures:
        assert shown.count(f"{value:.0f}") >= 2  # once per panel


@settings(deadline=None, max_examples=30)
@given(matrices())
def test_there_is_a_cell_for_every_step_and_row(matrix: StepMatrix) -> None:
    root = ElementTree.fromstring(heat_maps({"one": matrix}, "title"))
    rows, steps = len(matrix.types) + 2, len(matrix.steps)
    assert len(list(root.iter(f"{SVG}rect"))) == 1 + rows * steps  # 1: the ground


def test_no_two_cells_overlap_and_all_are_inside() -> None:
    types = ("A", "B", "C")
    scores = Scores(types, {type_: Counts(1, 2, 3) for type_ in types})
    root = ElementTree.fromstring(heat_maps({name: StepMatrix((scores,) * 3) for name in "xyz"}, "t"))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    ground, *cells = [
        tuple(float(rect.attrib.get(key, 0)) for key in ("x", "y", "width", "height"))
        for rect in root.iter(f"{SVG}rect")
    ]
    assert ground == (0, 0, width, height)
    for index, (x, y, w, h) in enumerate(cells):
        assert x >= 0 and y >= 0 and x + w <= width and y + h <= height
        for other_x, other_y, *_ in cells[:index]:
            assert abs(x - other_x) >= w or abs(y - other_y) >= h


def test_a_name_that_is_too_long_is_shortened_and_whole_in_the_tooltip() -> None:
    name = "A" * 60
    root = ElementTree.fromstring(
        heat_maps({"m": StepMatrix((Scores((name,), {name: Counts(1, 1, 1)}),))}, "t")
    )
    (label,) = [e for e in root.iter(f"{SVG}text") if (e.text or "").startswith("AAA")]
    assert (label.text or "").endswith("…") and len(label.text or "") < 40
    assert label.findtext(f"{SVG}title") == name


def test_many_panels_go_below_one_another_instead_of_growing_without_end() -> None:
    scores = Scores(("A",), {"A": Counts(1, 2, 3)})
    one = ElementTree.fromstring(heat_maps({"m": StepMatrix((scores,) * 4)}, "t"))
    many = ElementTree.fromstring(heat_maps({f"m{i}": StepMatrix((scores,) * 4) for i in range(9)}, "t"))
    assert float(many.attrib["width"]) <= 1100
    assert float(many.attrib["height"]) > 2 * float(one.attrib["height"])
