"""A grid of runs: what is asked for is done once, survives stops, and ends in results that repeat."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cfner.benchmark import worker
from cfner.benchmark.cells import RECIPE, Cell, MethodChoice, parse_methods
from cfner.benchmark.grid import GridFolder, Planned, cells_of, csv_text, plan
from cfner.benchmark.method_template import method_file
from cfner.benchmark.report.grouping import groups_of
from cfner.benchmark.report.reading import read_runs
from cfner.benchmark.runner import Standing, run_grid
from cfner.benchmark.streams import Division, Source
from cfner.corpus.corpus import Corpus
from cfner.errors import ConfigError, ModelError
from cfner.evaluation.metrics import score
from cfner.files.json_files import write_json_atomic
from cfner.methods import method_class, method_names
from cfner.methods.files import load_file
from cfner.runs.stream_run import run_stream
from cfner.store.model_folder import ModelFolder
from cfner.stream.manifest import settings_hash
from cfner.training.config import TrainingConfig

pytestmark = pytest.mark.usefixtures("methods_as_before")


@dataclass
class InThisProcess:
    """A backend without processes: a test need not import torch over and over."""

    slots: int = 1
    done: list[tuple[Path, int]] = field(default_factory=list)
    started: list[Path] = field(default_factory=list)

    def start(self, folder: Path) -> None:
        self.started.append(folder)
        self.done.append((folder, worker.main([str(folder)])))

    def ended(self) -> list[tuple[Path, int]]:
        done, self.done = self.done, []
        return done

    def stop(self) -> None: ...


class Unseen:
    def look(self, standing: Standing) -> None: ...

    def ended(self, job: Any, error: str | None) -> None: ...


@pytest.fixture(scope="module")
def source(tiny_data: Path) -> Source:
    return Source(str(tiny_data), min_mentions=1)


@pytest.fixture
def config(tiny_settings: dict[str, Any]) -> TrainingConfig:
    return TrainingConfig.build({**tiny_settings, "epochs": 1})


def planned(source: Source, config: TrainingConfig, methods: str, **more: Any) -> list[Planned]:
    division = Division(2, 1, **more)
    return plan(cells_of([source], [division], parse_methods(methods), [0], config))


def carried_out(
    folder: GridFolder, cells: list[Planned], **more: Any
) -> tuple[list[dict[str, Any]], InThisProcess]:
    backend = InThisProcess()
    run_grid(folder, folder.add(cells, None, **more), backend, Unseen())
    return json.loads((folder.path / "results.json").read_text())["runs"], backend


def without_measures(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in run.items() if key != "measured"} for run in runs]


@pytest.mark.parametrize(
    "text",
    [
        "cfner",
        "lucir+cf",
        "cfner with k=1 & lambda_base=0.5",
        "cfner without curriculum & effect_o",
        "self-training+cf with k=2 without effect_e",
    ],
)
def test_a_method_is_read_as_it_is_written_in_tables(text: str) -> None:
    assert str(MethodChoice.parse(text)) == text


@pytest.mark.parametrize(
    "text", ["cfnr", "cfner with k", "cfner with z=1", "cfner without magic", "", "cfner effect_o"]
)
def test_what_names_no_method_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_methods(text)


def test_keys_tell_what_matters(source: Source, config: TrainingConfig) -> None:
    key = planned(source, config, "cfner")[0].key
    assert planned(source, config, "cfner")[0].key == key
    watched = config.model_copy(update={"trackers": ("tensorboard",), "eval_batch_size": 7})
    assert planned(source, watched, "cfner")[0].key == key
    others = [
        planned(source, config, "cfner with k=2"),
        planned(source, config, "cfner without effect_o"),
        planned(source, config, "cfner", sampling="random"),
        planned(source, config, "cfner", labels="none"),
        planned(source, config.model_copy(update={"epochs": 2}), "cfner"),
        planned(replace(source, every=2), config, "cfner"),
    ]
    assert len({key, *(cells[0].key for cells in others)}) == len(others) + 1


def test_a_changed_sentence_makes_another_run(source: Source, config: TrainingConfig, tmp_path: Path) -> None:
    for file in Path(source.path).iterdir():
        (tmp_path / file.name).write_text(file.read_text())
    moved = replace(source, path=str(tmp_path))
    assert planned(moved, config, "cfner")[0].key == planned(source, config, "cfner")[0].key
    test = tmp_path / "test.txt"
    test.write_text(test.read_text().replace("lisbon", "porto"))
    assert planned(moved, config, "cfner")[0].key != planned(source, config, "cfner")[0].key


def test_an_encoder_in_a_folder_is_known_by_its_files(
    source: Source, config: TrainingConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(config.encoder, tmp_path / "here" / "enc")
    shutil.copytree(config.encoder, tmp_path / "there" / "enc")
    relative = config.model_copy(update={"encoder": "enc"})
    monkeypatch.chdir(tmp_path / "here")
    (before,) = planned(source, relative, "cfner")
    assert before.cell.config.encoder == str((tmp_path / "here" / "enc").resolve())
    monkeypatch.chdir(tmp_path / "there")
    (copied,) = planned(source, relative, "cfner")
    assert (copied.key, copied.first_key) == (before.key, before.first_key)
    weights = tmp_path / "there" / "enc" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4] + b"\0\0\0\1")
    (other,) = planned(source, relative, "cfner")
    assert other.key != before.key and other.first_key != before.first_key
    assert other.to_json()["shared"] != before.to_json()["shared"]


@pytest.mark.parametrize("encoder", ["minilm", "bert-base-cased"])
def test_an_encoder_that_is_known_by_its_name_is_its_name(
    source: Source, encoder: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """So that finished grids stay finished."""
    monkeypatch.chdir(tmp_path)
    (one,) = planned(source, TrainingConfig.build({"encoder": encoder}), "cfner")
    stream, config = one.cell.stream(source.read()), one.cell.config.what_matters()
    facts = {"recipe": RECIPE, "stream": stream.manifest()["hash"], "config": config, "code": None}
    assert one.key == settings_hash(facts)[:24] and config["encoder"] == encoder


def test_the_first_step_is_the_same_computation_for_every_method(
    source: Source, config: TrainingConfig, tmp_path: Path
) -> None:
    plain = [name for name in method_names() if method_class(name).plain_first_step]
    _same_first_step(planned(source, config, ",".join(plain)), source, tmp_path)


def test_the_first_step_is_the_same_computation_with_own_others(
    source: Source, config: TrainingConfig, tmp_path: Path
) -> None:
    methods = "own-other, own-other with lambda_keep=4, own-other+cf, joint-own, own-other without negatives"
    _same_first_step(planned(source, config, methods), source, tmp_path)


def _same_first_step(cells: Sequence[Planned], source: Source, tmp_path: Path) -> None:
    """One key, and the same weights, bit for bit."""
    assert len({cell.first_key for cell in cells}) == 1
    stream = cells[0].cell.stream(source.read())
    first = replace(stream, types_per_step=stream.types_per_step[:1], slices=stream.slices[:1])
    weights = set()
    for number, one in enumerate(cells):
        run_stream(first, one.cell.config, tmp_path / str(number))
        weights.add((tmp_path / str(number) / "steps" / "0001" / "model.safetensors").read_bytes())
    assert len(weights) == 1


def test_a_grid_gives_what_single_runs_give_and_does_nothing_twice(
    source: Source, config: TrainingConfig, tmp_path: Path
) -> None:
    cells = planned(source, config, "cfner, extendner")
    folder = GridFolder(tmp_path / "runs")
    runs, backend = carried_out(folder, cells)
    assert [path.parent.name for path in backend.started] == ["first", "cells", "cells"]
    for run, one in zip(runs, cells, strict=True):
        alone, _ = run_stream(one.cell.stream(source.read()), one.cell.config, None)
        expected = alone.to_json()
        assert {key: run[key] for key in expected if key != "measured"} == {
            key: value for key, value in expected.items() if key != "measured"
        }
        assert not (tmp_path / "runs" / "cells" / one.key / "run").exists()  # models are not kept
    again, idle = carried_out(folder, cells)
    assert idle.started == [] and again == runs
    more, backend = carried_out(folder, planned(source, config, "finetune"))
    assert [path.parent.name for path in backend.started] == ["cells"]  # the first step is there
    assert [run["method"] for run in more] == ["cfner", "extendner", "finetune"]
    with (tmp_path / "runs" / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3 * 3
    assert float(rows[0]["mean_micro_f1"]) == pytest.approx(more[0]["mean_micro_f1"])
    older = csv_text([{key: value for key, value in run.items() if "lost" not in key} for run in more])
    assert next(csv.DictReader(io.StringIO(older)))["mean_lost"] == ""  # of versions that did not count it


def test_experts_run_in_a_grid_and_are_reported(
    source: Source, config: TrainingConfig, tmp_path: Path
) -> None:
    """Their first step is their own, with parameters of their own; the report shows them like any other."""
    from typer.testing import CliRunner

    from cfner.cli.main import app

    folder = GridFolder(tmp_path / "runs")
    runs, backend = carried_out(folder, planned(source, config, "finetune, experts with top=1"))
    assert [path.parent.name for path in backend.started] == ["cells", "cells"]
    assert [run["method"] for run in runs] == ["finetune", "experts with top=1"]
    assert all(len(run["steps"]) == 3 for run in runs)
    done = CliRunner().invoke(app, ["bench", "report", str(tmp_path / "runs")], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "experts with top=1" in (tmp_path / "runs" / "report.md").read_text()


def test_counts_per_sentence_add_up_to_the_scores(
    source: Source, config: TrainingConfig, tmp_path: Path
) -> None:
    (one,) = planned(source, config, "finetune")
    (run,), _ = carried_out(GridFolder(tmp_path), [one], keep_models=True)
    counts = np.load(tmp_path / "cells" / one.key / "counts.npz")
    assert list(counts["learned"]) == [2, 3, 4]
    for number, step in enumerate(run["steps"]):
        here = counts["step"] == number
        found, gold, predicted = (counts[name][here].sum() for name in ("found", "gold", "predicted"))
        assert step["micro_f1"] == pytest.approx(200 * found / max(1, gold + predicted))
    assert len(ModelFolder(tmp_path / "cells" / one.key / "run").names()) == 3
    features = np.load(tmp_path / "cells" / one.key / "features.npz")
    assert len(features["features"]) == len(features["type"]) > 0
    assert set(features["types"]) <= {"animal", "city", "dish", "person"}


FAULTY = '''
from cfner.methods import Method, register

@register
class Faulty(Method):
    """Fails in every step but the first."""
    name, title, paper, good_for = "faulty", "Faulty", "none", "Nothing."

    def objective(self, facts):
        raise RuntimeError("no such thing")
'''


def test_a_failed_run_is_recorded_and_does_not_stop_the_others(
    source: Source, config: TrainingConfig, tmp_path: Path
) -> None:
    (tmp_path / "faulty.py").write_text(FAULTY)
    load_file(tmp_path / "faulty.py")
    cells = [
        replace(cell, uses=(str(tmp_path / "faulty.py"),))
        for cell in cells_of([source], [Division(2, 2)], parse_methods("faulty, finetune"), [0], config)
    ]
    folder = GridFolder(tmp_path / "runs")
    runs, _ = carried_out(folder, plan(cells))
    assert [run["method"] for run in runs] == ["finetune"]
    grid = json.loads((tmp_path / "runs" / "grid.json").read_text())["cells"]
    assert [cell["state"] for cell in grid] == ["failed", "finished"]
    assert "no such thing" in grid[0]["error"]
    key = plan(cells)[0].key
    (tmp_path / "faulty.py").write_text(FAULTY + "# another version\n")
    assert plan(cells)[0].key != key  # a method's own code is part of what a run depends on


def test_a_failed_first_step_fails_those_that_need_it(
    source: Source, config: TrainingConfig, tmp_path: Path
) -> None:
    cells = planned(source, config.model_copy(update={"encoder": str(tmp_path)}), "cfner, finetune")
    runs, backend = carried_out(GridFolder(tmp_path / "runs"), cells)
    assert runs == [] and len(backend.started) == 1
    grid = json.loads((tmp_path / "runs" / "grid.json").read_text())["cells"]
    assert all(cell["error"].startswith("The first step") for cell in grid)


def test_a_method_from_the_template_runs_in_a_grid(
    source: Source, config: TrainingConfig, tmp_path: Path
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(method_file("mine-1", file))
    load_file(file)
    cells = cells_of([source], [Division(2, 2)], parse_methods("mine-1 with k=1"), [0], config, [str(file)])
    (run,), _ = carried_out(GridFolder(tmp_path / "runs"), plan(cells))
    assert run["method"] == "mine-1 with k=1" and len(run["steps"]) == 2


@pytest.mark.parametrize("name", ["My Method", "cfner", "1st", "", "../x"])
def test_a_bad_name_for_a_method_is_refused(name: str) -> None:
    with pytest.raises(ConfigError):
        method_file(name, Path("x.py"))


def test_a_file_without_a_method_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("x = 1\n")
    (tmp_path / "broken.py").write_text("x = (\n")
    for name, words in (("empty", "registers no"), ("broken", "raised an error"), ("none", "not a Python")):
        with pytest.raises(ConfigError, match=words):
            load_file(tmp_path / f"{name}.py")


def test_a_folder_with_other_things_is_left_alone(
    source: Source, config: TrainingConfig, tmp_path: Path
) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ModelError, match="does not contain a grid"):
        GridFolder(tmp_path).add(planned(source, config, "cfner"), None)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.txt"]


def test_data_that_changes_while_a_grid_runs_is_noticed(
    source: Source, config: TrainingConfig, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for file in Path(source.path).iterdir():
        (data / file.name).write_text(file.read_text())
    (one,) = planned(replace(source, path=str(data)), config, "cfner")
    folder = GridFolder(tmp_path / "runs")
    jobs = folder.add([one], None)
    (data / "train.txt").write_text((data / "train.txt").read_text().replace("soup", "salad"))
    run_grid(folder, jobs, InThisProcess(), Unseen())
    grid = json.loads((tmp_path / "runs" / "grid.json").read_text())["cells"]
    assert "changed since this run was planned" in grid[0]["error"]


def test_old_slices_kept_with_and_without_all_labels_in_the_current_one(
    source: Source, tiny_corpus: Corpus
) -> None:
    """Figure 1 of the paper: the labels of the training data decide, not the data."""
    plain = Division(2, 1).stream(tiny_corpus, source, 0)
    none = Division(2, 1, labels="none").stream(tiny_corpus, source, 0)
    current = Division(2, 1, labels="current").stream(tiny_corpus, source, 0)
    for index in range(3):
        slices = [sentence for part in plain.slices[: index + 1] for sentence in part]
        own = [s for step in plain.steps[: index + 1] for s in step.train]
        assert list(none[index].train) == own
        so_far = plain[index].types_so_far
        earlier = len(slices) - len(plain.slices[index])
        assert list(current[index].train[:earlier]) == own[:earlier]
        assert [s.spans for s in current[index].train[earlier:]] == [
            s.only(so_far).spans for s in plain.slices[index]
        ]
        assert none[index].types == current[index].types == so_far
    assert len({plain.manifest()["hash"], none.manifest()["hash"], current.manifest()["hash"]}) == 3


def test_figure_one_runs(source: Source, config: TrainingConfig, tmp_path: Path) -> None:
    cells = [
        *planned(source, config, "finetune", labels="none"),
        *planned(source, config, "finetune", labels="current"),
    ]
    runs, _ = carried_out(GridFolder(tmp_path), cells)
    assert [run["labels"] for run in runs] == ["none", "current"]
    assert not any(one["confusion"] for run in runs for one in [run, *run["steps"]])
    assert [step["types"] for step in runs[0]["steps"]] == [["animal", "city"], ["dish"], ["person"]]


def finished(folder: GridFolder, cells: list[Planned]) -> list[tuple[str, list[str]]]:
    """After runs that cost nothing: the end of each section's title, and the methods in it."""
    folder.add(cells, None)
    steps = [{"types": ["city"], "micro_f1": 5.0, "macro_f1": 5.0, "per_type": {"city": 5.0}}]
    figures = ("mean_micro_f1", "mean_macro_f1", "last_micro_f1", "last_macro_f1", "mean_forgetting")
    for one in cells:
        made = {**one.to_json(), "steps": steps, "forgetting": {}, **dict.fromkeys(figures, 5.0)}
        write_json_atomic(folder.path / "cells" / one.key / "result.json", made)
    folder.write_results()
    groups = groups_of(read_runs(folder.path))
    return [(group.title.partition(" sampling")[2], group.methods) for group in groups]


def test_grids_with_other_settings_are_compared_apart(
    source: Source, config: TrainingConfig, tmp_path: Path
) -> None:
    folder = GridFolder(tmp_path)
    longer = config.model_copy(update={"epochs": 6})
    assert finished(folder, planned(source, config, "cfner, extendner")) == [("", ["cfner", "extendner"])]
    both = [(", epochs 1", ["cfner", "extendner"]), (", epochs 6", ["cfner"])]
    assert finished(folder, planned(source, longer, "cfner")) == both
    on_dev = finished(folder, planned(replace(source, score_on="dev"), config, "cfner"))
    assert on_dev[-1] == (", epochs 1, score_on dev", ["cfner"]) and len(on_dev) == 3


def test_a_run_is_in_every_comparison_that_it_was_asked_for(
    source: Source, config: TrainingConfig, tmp_path: Path
) -> None:
    """Equal keys: a parameter given to all methods is the same computation as one given to this method,
    and makes no difference to a method that does not have it."""
    folder = GridFolder(tmp_path)
    common = config.model_copy(update={"parameters": {"lambda_base": 2}})
    finished(folder, planned(source, common, "cfner, finetune"))
    both = finished(folder, planned(source, config, "cfner with lambda_base=2, finetune"))
    assert both == [
        (", parameters lambda_base=2", ["cfner", "finetune"]),
        (", parameters none", ["cfner with lambda_base=2", "finetune"]),
    ]


def test_a_run_is_reported_under_the_name_that_it_was_asked_for_last(
    source: Source, config: TrainingConfig, tmp_path: Path
) -> None:
    folder = GridFolder(tmp_path)
    common = config.model_copy(update={"parameters": {"lambda_base": 2}})
    finished(folder, planned(source, common, "cfner"))
    (again,) = planned(source, common, "cfner with lambda_base=2")
    folder.add([again], None)  # nothing is left to do: the result has the other name
    folder.write_results()
    assert groups_of(read_runs(tmp_path))[0].methods == ["cfner with lambda_base=2"]


def test_one_run_under_two_names_is_refused(source: Source, config: TrainingConfig) -> None:
    common = config.model_copy(update={"parameters": {"lambda_base": 2}})
    with pytest.raises(ConfigError, match="'cfner' and 'cfner with lambda_base=2' are the same run"):
        planned(source, common, "cfner, cfner with lambda_base=2")


def test_a_grid_that_does_not_say_what_its_runs_share_is_refused(
    source: Source, config: TrainingConfig, tmp_path: Path
) -> None:
    folder, cells = GridFolder(tmp_path), planned(source, config, "cfner, finetune")
    finished(folder, cells)
    grid = json.loads((tmp_path / "grid.json").read_text())
    for row in grid["cells"]:
        del row["shared"]
    write_json_atomic(tmp_path / "grid.json", grid)
    with pytest.raises(ModelError, match="written by an earlier version"):
        folder.add(cells, None)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_runs(tmp_path)


def test_cells_survive_a_journey_through_json(source: Source, config: TrainingConfig) -> None:
    config = config.model_copy(update={"parameters": {"lambda_base": 2, "k": 1}})
    for one in planned(source, config, "cfner with k=2 without effect_e, self-training"):
        again = Cell.from_json(json.loads(json.dumps(one.cell.to_json())))
        assert again == one.cell


def test_mention_rows_count_as_the_scorer_does(tiny_corpus: Corpus) -> None:
    from cfner.runs.mentions import mention_rows

    sentences = tiny_corpus.test
    predicted = [tuple(s.spans[1:]) for s in sentences]
    rows = mention_rows(sentences, predicted)
    scores = score([s.spans for s in sentences], predicted)
    assert sum(row[2] for row in rows) == scores.micro.tp
    assert sum(row[3] for row in rows) == scores.micro.n_gold
    assert sum(row[4] for row in rows) == scores.micro.n_predicted


def test_the_command_that_writes_a_method_overwrites_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from typer.testing import CliRunner

    from cfner.cli.main import app

    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["bench", "add-method", "from-template"])
    assert done.exit_code == 0, done.output
    assert "--use from_template.py" in done.stdout and done.stdout.count("\n") == 3
    assert load_file(tmp_path / "from_template.py") == ["from-template"]
    (tmp_path / "from_template.py").write_text("mine")
    again = CliRunner().invoke(app, ["bench", "add-method", "other", "--out", "from_template.py"])
    assert isinstance(again.exception, ConfigError)
    assert (tmp_path / "from_template.py").read_text() == "mine"


def test_a_method_that_cannot_be_written_whole_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from typer.testing import CliRunner

    from cfner.cli.main import app

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    failed = CliRunner().invoke(app, ["bench", "add-method", "mine", "--out", str(tmp_path / "mine.py")])
    assert "No space left" in str(failed.exception) and "mine.py" in str(failed.exception)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("left", [b"", b"\0\0\0", b'{"sec'])
def test_a_job_goes_on_if_what_it_said_of_itself_was_lost(left: bytes, tmp_path: Path) -> None:
    """The file is written often and not flushed, so a power cut may leave anything in it."""
    (tmp_path / worker.PROGRESS).write_bytes(left)
    assert worker.FileProgress(tmp_path, steps=2).seconds < 60
