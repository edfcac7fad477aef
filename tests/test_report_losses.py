"""What the report says about lost types and bounds: every figure is computed again from the runs."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from pathlib import Path

import pytest

from cfner.benchmark.report import write_report
from cfner.benchmark.report.contents import document
from cfner.benchmark.report.document import Heading, Paragraph, Table
from cfner.benchmark.report.reading import read_runs
from made_runs import Made, write_runs

TYPES = ("AGE", "CITY", "DATE", "DOCTOR", "HOSPITAL")
MADE = Made(TYPES, 2, 1, sentences=300)  # about a hundred mentions of each type: some have more, some fewer
SKILLS = {"finetune": 0.2, "cfner": 0.8, "extendner": 0.6, "joint-own": 0.93, "joint": 1.0}
NEW_KEYS = (
    *("last_macro_f1_30", "when_learned", "at_the_end", "lost"),
    *("mean_when_learned", "mean_at_the_end", "mean_lost"),
)


def blocks_after(folder: Path, heading: str) -> list[Table | Paragraph]:
    """The tables and paragraphs of one section."""
    found: list[Table | Paragraph] = []
    here = False
    for block in document(read_runs(folder)).blocks:
        if isinstance(block, Heading):
            here = block.text == heading
        elif here and isinstance(block, Table | Paragraph):
            found.append(block)
    return found


def score_rows(folder: Path) -> dict[str, dict[str, str]]:
    table = next(block for block in document(read_runs(folder)).blocks if isinstance(block, Table))
    return rows_of(table)


def rows_of(table: Table) -> dict[str, dict[str, str]]:
    return {
        row[0].text: dict(zip(table.head, (cell.text for cell in row), strict=True)) for row in table.rows
    }


def results(folder: Path) -> list[dict]:
    return json.loads((folder / "results.json").read_text())["runs"]


def written(values: Sequence[float], digits: int = 2, sign: str = "") -> str:
    mean = f"{statistics.fmean(values):{sign}.{digits}f}"
    deviation = f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""
    return (mean + deviation).replace("-", "−")


def of_method(folder: Path, method: str) -> list[dict]:
    return [run for run in results(folder) if run["method"] == method]


def as_earlier_versions(folder: Path) -> None:
    """Take out what earlier versions did not write."""
    runs = results(folder)
    for run in runs:
        for key in NEW_KEYS:
            del run[key]
        for step in run["steps"]:
            del step["mentions"]
    (folder / "results.json").write_text(json.dumps({"schema": 1, "runs": runs}))


def test_the_score_table_shows_what_was_lost(tmp_path: Path) -> None:
    write_runs(tmp_path, SKILLS, [MADE])
    for method, row in score_rows(tmp_path).items():
        runs = of_method(tmp_path, method)
        when, end = [], []
        for run in runs:
            old = [t for step in run["steps"][:-1] for t in step["types"]]
            kept = [t for t in old if run["steps"][-1]["mentions"][t] >= 30]
            first = {t: step["per_type"][t] for step in run["steps"] for t in step["types"]}
            when.append(statistics.fmean(first[t] for t in kept))
            end.append(statistics.fmean(run["steps"][-1]["per_type"][t] for t in kept))
        assert row["when learned"] == written(when)
        assert row["at the end"] == written(end)
        assert row["lost"] == written([a - b for a, b in zip(when, end, strict=True)])


@pytest.mark.parametrize("least", [30, 100])
def test_the_worst_type_has_the_largest_mean_loss_of_those_with_enough_mentions(
    tmp_path: Path, least: int
) -> None:
    write_runs(tmp_path, SKILLS, [MADE])
    mentions = results(tmp_path)[0]["steps"][-1]["mentions"]
    assert any(count < 100 for count in mentions.values()) and any(c >= 100 for c in mentions.values())
    if least == 100:
        shown = {method: row["worst type (100+)"] for method, row in score_rows(tmp_path).items()}
    else:
        (table,) = [b for b in blocks_after(tmp_path, "Learned and lost") if isinstance(b, Table)]
        rows = [[cell.text for cell in row] for row in table.rows]
        assert all(int(count) == mentions[type_] for _, type_, count, _ in rows)
        shown = {method: f"{type_} {lost}" for method, type_, _, lost in rows}
    assert list(shown) == list(SKILLS)
    for method in SKILLS:
        lost = {
            type_: [run["lost"][type_] for run in of_method(tmp_path, method)]
            for type_ in TYPES[:-1]
            if mentions[type_] >= least
        }
        worst = max(lost, key=lambda type_: statistics.fmean(lost[type_]))
        assert shown[method] == f"{worst} {written(lost[worst])}"


def test_without_types_of_enough_mentions_there_is_a_dash(tmp_path: Path) -> None:
    write_runs(tmp_path, SKILLS, [Made(TYPES, 2, 1, sentences=40)])  # about 14 mentions of each type
    assert list(score_rows(tmp_path)["cfner"].values())[-4:] == ["–"] * 4
    table, _ = blocks_after(tmp_path, "How far from the bounds")
    assert "last macro" in table.head  # over all types, since all are rare


def test_results_of_earlier_versions_are_read_and_have_dashes(tmp_path: Path) -> None:
    write_runs(tmp_path, SKILLS, [MADE])
    before = score_rows(tmp_path)
    as_earlier_versions(tmp_path)
    for method, row in score_rows(tmp_path).items():
        same = ("seeds", "mean micro", "mean macro", "last micro", "last macro", "forgetting")
        assert [row[name] for name in same] == [before[method][name] for name in same]
        assert [text for name, text in row.items() if name not in ("method", *same)] == ["–"] * 4
    table, _ = blocks_after(tmp_path, "How far from the bounds")
    assert rows_of(table)["cfner"]["last macro"] == before["cfner"]["last macro"]
    assert write_report(tmp_path)


def test_shares_of_the_way_are_computed_by_seed_then_averaged(tmp_path: Path) -> None:
    write_runs(tmp_path, SKILLS, [MADE], left_out={("cfner", 1): ("failed", None)})
    table, _ = blocks_after(tmp_path, "How far from the bounds")
    of_a_figure = ["above finetune", "% of the way to joint-own", "% of the way to joint"]
    assert list(table.head) == ["method", "last micro", *of_a_figure, "last macro (30+)", *of_a_figure]
    cells = {row[0].text: [cell.text for cell in row] for row in table.rows}
    for start, key in ((1, "last_micro_f1"), (5, "last_macro_f1_30")):
        by_seed = {m: {run["seed"]: run[key] for run in of_method(tmp_path, m)} for m in SKILLS}
        floor = by_seed["finetune"]
        for method in ("cfner", "extendner"):
            mine = by_seed[method]
            above = [mine[seed] - floor[seed] for seed in mine]
            expected = [written(list(mine.values())), written(above, sign="+")]
            for bound in ("joint-own", "joint"):
                way = [by_seed[bound][seed] - floor[seed] for seed in mine]
                expected.append(written([100 * a / b for a, b in zip(above, way, strict=True)], digits=1))
            assert cells[method][start : start + 4] == expected
        assert cells["finetune"][start + 1 : start + 4] == ["–"] * 3
        assert (cells["joint-own"][start + 2], cells["joint"][start + 3]) == ("–", "–")
        assert float(cells["joint"][start + 2].split(" ± ")[0]) > 100
    assert not any(cell.bold for row in table.rows for cell in row)


@pytest.mark.parametrize("missing", ["joint-own", "joint"])
def test_a_missing_bound_has_no_column_and_is_named(tmp_path: Path, missing: str) -> None:
    write_runs(tmp_path, {m: skill for m, skill in SKILLS.items() if m != missing}, [MADE], seeds=[0])
    table, note = blocks_after(tmp_path, "How far from the bounds")
    (there,) = {"joint-own", "joint"} - {missing}
    assert [name.rpartition(" ")[2] for name in table.head if "%" in name] == [there, there]
    assert f"No run of '{missing}' is finished" in note.text


def test_without_any_bound_the_points_above_finetune_stay(tmp_path: Path) -> None:
    write_runs(tmp_path, {"finetune": 0.2, "cfner": 0.8}, [MADE], seeds=[0])
    table, note = blocks_after(tmp_path, "How far from the bounds")
    assert len(table.head) == 1 + 2 * 2
    assert "No run of 'joint-own' or of 'joint' is finished" in note.text


def test_without_finetune_there_is_nothing_to_measure_from(tmp_path: Path) -> None:
    write_runs(tmp_path, {"joint": 1.0, "cfner": 0.8}, [MADE], seeds=[0])
    (note,) = blocks_after(tmp_path, "How far from the bounds")
    assert isinstance(note, Paragraph) and "no finished run of 'finetune'" in note.text
    write_runs(tmp_path, {"extendner": 0.5, "cfner": 0.8}, [MADE], seeds=[0], arrays=False)
    assert blocks_after(tmp_path, "How far from the bounds") == []


def test_a_bound_below_finetune_gives_no_share(tmp_path: Path) -> None:
    write_runs(tmp_path, {"finetune": 0.9, "cfner": 0.8, "joint-own": 0.2}, [MADE], seeds=[0])
    table, _ = blocks_after(tmp_path, "How far from the bounds")
    assert rows_of(table)["cfner"]["% of the way to joint-own"] == "–"
