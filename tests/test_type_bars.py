"""Pictures in the terminal: right, within 80 columns, and readable without colour."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from typer.testing import CliRunner

from cfner.cli.main import app
from cfner.cli.type_bars import bar, tell_before_after
from cfner.evaluation.estimate import Estimate, TypeEstimate
from cfner.evaluation.intervals import Interval
from cfner.practice.learn.guard_report import GuardReport, Shift, TypeReport, Verdict


def old_type(name: str, before: float, after: float, verdict: Verdict) -> TypeReport:
    loss = Interval(before - after, before - after - 1, before - after + 1)
    shift = Shift(before, after, loss, False)
    ends = [Interval(value, value - 3, value + 3) for value in (before, after)]
    return TypeReport(name, 50, 40, *ends, loss, shift, shift, 0.5, verdict)


def guard_of(*types: TypeReport) -> GuardReport:
    return GuardReport(types, 300, 2.0, (), ())


def estimate_of(name: str, f1: float) -> Estimate:
    figure = Interval(f1, f1 - 5, f1 + 5)
    return Estimate("test", 90, (TypeEstimate(name, 60, 50, figure, figure, figure),))


def drawn(guard: GuardReport | None, estimate: Estimate | None, width: int = 80) -> list[str]:
    screen = Console(width=width, file=io.StringIO(), color_system=None)
    with screen.capture() as captured:
        tell_before_after(screen, guard, estimate)
    return captured.get().splitlines()


@given(st.floats(0, 1), st.integers(1, 60))
def test_a_bar_is_as_long_as_its_share(share: float, width: int) -> None:
    for full in "█░":
        assert abs(len(bar(share, width, full)) - share * width) <= 1
        assert bool(bar(share, width, full)) == (share > 0)


def test_learn_ends_with_bars_of_every_type() -> None:
    guard = guard_of(old_type("person", 80, 78, "kept"), old_type("a" * 40, 60, 20, "lost"))
    lines = drawn(guard, estimate_of("dish", 50))
    assert max(map(len, lines)) <= 80
    text = "\n".join(lines)
    before, after = (next(line for line in lines[-3:] if word in line) for word in ("before", "after"))
    assert (
        before.count("░") == round(0.8 * 34) and after.count("█") == int(0.78 * 34) and "78.0 kept" in after
    )
    assert "lost" in text and "new    █████████████████  " in text and "50.0" in text
    assert drawn(None, None) == []
    many = drawn(guard_of(*(old_type(f"t{i}", 80, 80 - i, "undecided") for i in range(30))), None)
    assert len(many) == 26 and "18 more are in the table above" in many[-1] and "t29" in many[1]


def test_history_ends_with_a_heat_map(two_steps: Path, tmp_path: Path) -> None:
    from cfner.practice.history.history import history

    model = Path(shutil.copytree(two_steps, tmp_path / "model"))
    shown = CliRunner().invoke(app, ["history", str(model)], env={"COLUMNS": "80"}).output
    map_ = shown[shown.index("F1 by type and step") :].splitlines()
    first, second = (step.figures for step in history(model))
    assert first is not None and second is not None
    rows = {line.split()[0]: line.split()[1:] for line in map_[2:-1]}
    assert rows.keys() == {"animal", "city", "dish", "person"} and rows["dish"][0] == "·"
    assert rows["city"][0][:-1] == f"{first.per_type['city']:.0f}"
    assert rows["city"][1][:-1] == f"{second.per_type['city']:.0f}"
    assert max(map(len, map_)) <= 80


def test_check_shows_how_often_each_type_is_mentioned(tiny_data: Path) -> None:
    shown = CliRunner().invoke(app, ["check", str(tiny_data), "--no-timing"], env={"COLUMNS": "80"}).output
    bars = {line.split()[1]: line.count("█") for line in shown.splitlines() if "█" in line}
    assert bars == {"animal": 18, "city": 24, "dish": 24, "person": 24}  # 30 and 40 mentions
    assert "mentions, train" in shown
