"""The tables of the results page say what the published runs say."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import pytest

from cfner.benchmark.league_file import Searched, Tried, write_league
from cfner.benchmark.report.reading import read_runs
from made_runs import Made, write_runs
from results_tables import replaced, tables

DOCS = Path(__file__).parents[1] / "docs"


def test_the_pages_have_the_tables_of_the_published_runs() -> None:
    # to mend it: python benchmarks/results_tables.py --write docs/results.md docs/questions/which-method.md
    pages = [
        (DOCS / name).read_text(encoding="utf-8") for name in ("results.md", "questions/which-method.md")
    ]
    found = tables(read_runs(DOCS / "results" / "yardstick"))
    assert found and all(any(f"<!-- table {name} -->" in page for page in pages) for name in found)
    assert [replaced(page, found) for page in pages] == pages


@pytest.fixture
def grid(tmp_path: Path) -> Path:
    skills = {"finetune": 0.1, "rdp": 0.4, "rdp with lambda_kd=4.0": 0.8, "joint-own": 0.97}
    shared = (("score_on", "test"), ("unlabelled", "none"), ("unlabelled_ratio", "1.0"))
    write_runs(
        tmp_path, skills, [Made(("a", "b", "c", "d"), 2, 1, sentences=300, shared=shared)], seeds=[3, 5]
    )
    return tmp_path


def rows(folder: Path) -> dict[str, list[str]]:
    text = next(iter(tables(read_runs(folder)).values()))
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()]
    return {row[0]: row[1:] for row in cells[2:]}


def test_figures_are_means_over_the_seeds(grid: Path) -> None:
    runs = {(run.method, run.seed): run for run in read_runs(grid).runs}
    found = rows(grid)
    assert list(found) == ["`finetune`", "`rdp`", "`joint-own` (the fair ceiling)"]
    row = found["`rdp`"]
    last = [runs["rdp", seed].last_micro_f1 for seed in (3, 5)]
    deviation = abs(last[0] - last[1]) / 2**0.5
    assert row[1] == "3, 5" and row[3].startswith(f"{sum(last) / 2:.1f} ± {deviation:.1f} / ")
    shares = [
        100
        * (runs["rdp", seed].last_micro_f1 - runs["finetune", seed].last_micro_f1)
        / (runs["joint-own", seed].last_micro_f1 - runs["finetune", seed].last_micro_f1)
        for seed in (3, 5)
    ]
    assert row[-1].startswith(f"{sum(shares) / 2:.0f} / ")


def test_a_method_is_shown_with_the_setting_that_the_league_chose(grid: Path) -> None:
    usual = rows(grid)["`rdp`"]
    write_league(grid, {"rdp": Searched("lambda_kd", "rdp with lambda_kd=4.0", (), "notes", 9)})
    found = rows(grid)
    assert "`rdp`" not in found
    chosen = found["`rdp with lambda_kd=4.0`"]
    runs = [run.last_micro_f1 for run in read_runs(grid).runs if run.method == "rdp with lambda_kd=4.0"]
    assert chosen != usual and chosen[3].startswith(f"{sum(runs) / 2:.1f} ± ")


def test_the_short_table_has_the_methods_that_every_stream_has(tmp_path: Path) -> None:
    shared = (("score_on", "test"), ("unlabelled", "none"), ("unlabelled_ratio", "1.0"))
    made = [Made(("a", "b", "c", "d"), 2, 1, sentences=300, data=d, shared=shared) for d in ("one", "other")]
    write_runs(tmp_path, {"finetune": 0.1, "cfner": 0.5}, made, seeds=[3, 5])
    found = tables(read_runs(tmp_path))
    assert list(found) == ["one", "other", "short"]
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in found["short"].splitlines()]
    assert [line[0] for line in lines[2:]] == ["`finetune`", "`cfner`"]
    means = [
        fmean(
            run.last_micro_f1
            for run in read_runs(tmp_path).runs
            if (run.method, run.setting.data) == ("cfner", d)
        )
        for d in ("one", "other")
    ]
    assert [lines[3][2], lines[3][4]] == [f"{mean:.1f}" for mean in means]


def test_the_search_shows_all_settings_and_the_chosen_one(grid: Path) -> None:
    tried = (Tried("× 1", "rdp", 50.0, "k"), Tried("× 2", "rdp with lambda_kd=4.0", 51.234, "l"))
    write_league(grid, {"rdp": Searched("lambda_kd", "rdp with lambda_kd=4.0", tried, "notes", 9)})
    *_, row = tables(read_runs(grid))["search"].splitlines()
    assert row == "| `rdp` | `lambda_kd` | 50.00 | **51.23** |"
