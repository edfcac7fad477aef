"""``cfner learn`` as somebody with a model in use would type it."""

from __future__ import annotations

import itertools
import json
import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cfner import learn as learn_and_estimate
from cfner.batches.loader import TokenBatch
from cfner.benchmark.method_template import method_file
from cfner.cli.main import app
from cfner.corpus.corpus import Corpus
from cfner.corpus.sentence import Sentence
from cfner.corpus.writers import write_sentences
from cfner.errors import CfnerError, ConfigError, CorpusError, ModelError
from cfner.files.lock import locked
from cfner.network.network import Network
from cfner.practice.history.history import history, rollback, verify
from cfner.practice.history.relabel import rename
from cfner.tagger import ContinualTagger
from strangers import ORDERS, make_checkpoint

NEW = ("dish", "person")
FAST: dict[str, Any] = {"epochs": 2}


@pytest.fixture
def files(tiny_corpus: Corpus, tmp_path: Path) -> dict[str, str]:
    """New data without a dev file, the same labelled with everything, and old sentences of two uses."""

    def write(name: str, sentences: tuple[Sentence, ...], types: tuple[str, ...] | None) -> str:
        path = tmp_path / name
        write_sentences([s if types is None else s.only(types) for s in sentences], path, format="conll")
        return str(path)

    old = ("animal", "city")
    return {
        "new": write("new.conll", tiny_corpus.train, NEW),
        "full": write("full.conll", tiny_corpus.train, None),
        "old": write("old.conll", tiny_corpus.test, old),
        "replay": write("replay.conll", tiny_corpus.dev, old),
        "more": write("more.conll", tiny_corpus.train, ("city",)),
    }


learn = partial(learn_and_estimate, folds=0)  # the estimate has tests of its own, and takes its time


def cfner(*arguments: object) -> Any:
    words = [str(a) for a in arguments]
    return CliRunner().invoke(app, [*words, "--folds", "0"] if words[0] == "learn" else words)


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_a_new_folder_holds_the_old_steps_and_the_new_one(
    one_step: Path, files: dict[str, str], tmp_path: Path
) -> None:
    before = bytes_of(one_step)
    chosen = ("--set", "select_on=new+old")
    done = cfner("learn", one_step, files["new"], "--out", tmp_path / "m2", "--epochs", 3, *chosen)
    assert done.exit_code == 0, done.output
    said = " ".join(done.stdout.split())
    assert "Learned: dish, person" in said
    assert "of 3 was kept" in said and "new types were not scored" in said
    assert "forgetting could not be measured as F1" in said
    assert bytes_of(one_step) == before
    steps = verify(tmp_path / "m2")
    assert [(s.number, s.parent, s.current) for s in steps] == [(1, None, False), (2, 1, True)]
    assert bytes_of(one_step / "steps/0001") == bytes_of(tmp_path / "m2/steps/0001")
    assert set(ContinualTagger.load(tmp_path / "m2").types) == {"animal", "city", *NEW}
    assert not (tmp_path / "m2.unfinished").exists()


@pytest.mark.parametrize(("limit", "folder"), [(100, "m2"), (0, "m2.refused")])
def test_the_new_folder_is_named_as_it_was_given(
    limit: float,
    folder: str,
    one_step: Path,
    files: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    forgets = {"epochs": 3, "method": "finetune"}
    learned = learn(one_step, files["new"], out="m2", guard=files["old"], max_forgetting=limit, **forgets)
    assert learned.folder == Path(folder) and learned.folder.is_dir()


@pytest.mark.usefixtures("methods_as_before")
def test_a_method_of_your_own_comes_in_a_file(one_step: Path, files: dict[str, str], tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(method_file("taught-in-a-file", mine))
    words = ("learn", one_step, files["new"], "--epochs", 1, "--method", "taught-in-a-file")
    unknown = cfner(*words, "--out", tmp_path / "m2")
    assert "There is no method 'taught-in-a-file'" in str(unknown.exception)
    done = cfner(*words, "--out", tmp_path / "m2", "--use", mine)
    assert done.exit_code == 0, done.output
    assert ContinualTagger.load(tmp_path / "m2").config.method == "taught-in-a-file"


def test_in_place_adds_a_step_that_can_be_undone(one_step: Path, files: dict[str, str]) -> None:
    text = "alan turing saw the heron in oslo"
    before = ContinualTagger.load(one_step).predict(text)
    done = cfner("learn", one_step, files["new"], "--in-place", "--epochs", 2, "--json")
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert (report["step"], report["new_types"], report["accepted"]) == (2, list(NEW), True)
    assert report["guard"] is None
    assert report["agreement"][0]["kind"] == "agreement"
    rollback(one_step, 1)
    assert ContinualTagger.load(one_step).predict(text) == before
    assert not list(one_step.parent.glob("*.unfinished"))


@pytest.mark.parametrize(("family", "order"), [("bert", "IOB1"), ("roberta", "BIOES"), ("electra", "odd")])
def test_a_strangers_checkpoint_learns_in_one_command(
    family: str, order: str, files: dict[str, str], tmp_path: Path
) -> None:
    checkpoint = make_checkpoint(tmp_path / "theirs", family, ORDERS[order])
    before = bytes_of(checkpoint)
    done = cfner(
        "learn", checkpoint, files["new"], "--out", tmp_path / "m2", "--epochs", 1, "--guard", files["old"],
        "--max-forgetting", 100,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert bytes_of(checkpoint) == before
    first, second = history(tmp_path / "m2")
    assert (first.kind, second.kind) == ("import", "learn")
    assert first.figures is not None and second.figures is not None
    assert first.figures.on == second.figures.on  # one series, on the guard's sentences
    assert first.micro_f1 is not None and second.micro_f1 is None  # which do not label the new types
    assert set(second.all_types) == {"animal", "city", *NEW}


def test_the_guard_refuses_a_model_that_forgot_and_keeps_it_aside(
    one_step: Path, files: dict[str, str], tmp_path: Path
) -> None:
    arguments = ["learn", one_step, files["new"], "--out", tmp_path / "m2", "--guard", files["old"],
                 "--method", "finetune", "--epochs", 6]  # fmt: skip
    done = cfner(*arguments)
    assert done.exit_code == 3, done.output
    said = " ".join(done.stdout.split())
    assert re.search("REFUSED: (animal|city|animal, city) lost[.]", said)
    assert "What to try" in said and "--accept-forgetting" in said and "earlier attempt" not in said
    assert not (tmp_path / "m2").exists()
    aside = tmp_path / "m2.refused"
    assert len(verify(aside)) == 2
    told = json.loads((aside / "steps/0002/report.json").read_text())
    assert told["accepted"] is False and told["guard"]["refused"] is True
    lost = [row["type"] for row in told["guard"]["types"] if row["verdict"] == "lost"]
    accepting = ["--accept-forgetting", ",".join([*lost, "animal"])]
    done = cfner(*arguments, *accepting)
    assert done.exit_code == 0, done.output
    assert "accepted" in done.stdout and (tmp_path / "m2").exists()
    assert "At least 1 earlier attempt is recorded" in " ".join(done.stdout.split())


def test_strict_refuses_what_the_guard_cannot_show(
    one_step: Path, files: dict[str, str], tmp_path: Path, tiny_corpus: Corpus
) -> None:
    """The model learns on as it should; but of one type there are few mentions, and of the other none."""
    few = tmp_path / "few.conll"
    write_sentences([s.only(["city"]) for s in tiny_corpus.test], few, format="conll")
    arguments = ["learn", one_step, files["new"], "--out", tmp_path / "m2", "--guard", few, "--epochs", 1,
                 "--max-forgetting", 99]  # fmt: skip
    done = cfner(*arguments, "--strict")
    assert done.exit_code == 3, done.output
    said = " ".join(done.stdout.split())
    assert "REFUSED: --strict, and not shown to be kept: animal (not mentioned)." in said
    assert "What to try" in said
    done = cfner(*arguments, "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)["guard"]
    assert (told["strict"], told["absent"], told["earlier_attempts"]) == (False, ["animal"], 1)


def test_strict_needs_a_guard(one_step: Path, files: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"\(`guard`\)"):
        learn(one_step, files["new"], out=tmp_path / "m2", strict=True)
    assert not list(tmp_path.glob("m2*"))


def test_a_refused_step_is_not_added_in_place(one_step: Path, files: dict[str, str]) -> None:
    before = bytes_of(one_step)
    learned = learn(
        one_step, files["new"], in_place=True, guard=files["old"],
        method="finetune", epochs=6,
    )  # fmt: skip
    assert not learned.accepted and bytes_of(one_step) == before
    assert learned.folder == one_step.with_name("model.refused") and len(verify(learned.folder)) == 2


def test_what_is_kept_is_accepted_with_a_table(one_step: Path, files: dict[str, str], tmp_path: Path) -> None:
    learned = learn(
        one_step, files["new"], out=tmp_path / "m2", guard=files["old"], replay=files["replay"],
        epochs=6,
    )  # fmt: skip
    assert learned.guard is not None and learned.accepted
    assert {row.type for row in learned.guard.types} == {"animal", "city"}
    assert set(learned.scores.types) == {"animal", "city"}  # on the guard's sentences alone


def test_old_types_labelled_beside_new_ones_need_a_decision(
    one_step: Path, files: dict[str, str], tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="`old_labels='ignore'`"):
        learn(one_step, files["full"], out=tmp_path / "m2", **FAST)
    ignored = learn(one_step, files["full"], out=tmp_path / "m2", old_labels="ignore", **FAST)
    assert (ignored.plan.new, ignored.plan.ignored) == (NEW, ("animal", "city"))
    used = learn(one_step, files["full"], out=tmp_path / "m3", old_labels="use", **FAST)
    assert (used.plan.new, used.plan.more) == (NEW, ("animal", "city"))


def test_more_data_for_a_known_type(one_step: Path, files: dict[str, str], tmp_path: Path) -> None:
    learned = learn(one_step, files["more"], out=tmp_path / "m2", **FAST)
    assert (learned.plan.new, learned.plan.more) == ((), ("city",))
    assert ContinualTagger.load(tmp_path / "m2").types == ContinualTagger.load(one_step).types


def test_more_data_for_all_types_is_plain_learning(
    one_step: Path, tiny_corpus: Corpus, tmp_path: Path
) -> None:
    """Nothing is hidden in O then, so O words must be learned as O."""
    path = tmp_path / "all.conll"
    write_sentences([s.only(("animal", "city")) for s in tiny_corpus.train], path, format="conll")
    learned = learn(one_step, str(path), out=tmp_path / "m2", epochs=5)
    assert learned.plan.more == ("animal", "city")
    assert set(learned.epochs[0]) >= {"cross_entropy"}
    counts = ContinualTagger.load(tmp_path / "m2").evaluate(
        [s.only(("animal", "city")) for s in tiny_corpus.test]
    )
    assert counts.micro.precision > 50


def test_types_narrow_what_is_learned(one_step: Path, files: dict[str, str], tmp_path: Path) -> None:
    learned = learn(one_step, files["new"], out=tmp_path / "m2", types=["dish"], **FAST)
    assert learned.plan.current == ("dish",) and learned.plan.ignored == ("person",)
    assert "person" not in ContinualTagger.load(tmp_path / "m2").types


def test_agreement_on_any_text(one_step: Path, files: dict[str, str], tmp_path: Path) -> None:
    text = tmp_path / "any.txt"
    text.write_text("the heron of oslo\n\nnew york saw the otter\n")
    learned = learn(one_step, files["new"], out=tmp_path / "m2", unlabelled=[text], **FAST)
    new_text, given = learned.agreement
    assert (
        "training" in new_text.where
        and new_text.trained_on
        and (given.where, given.sentences) == (str(text), 2)
    )


def test_the_papers_rule_looks_at_new_types_alone(
    one_step: Path, files: dict[str, str], tmp_path: Path
) -> None:
    learned = learn(one_step, files["new"], out=tmp_path / "m2", preset="paper", **FAST)
    assert all("dev_agreement" not in figures for figures in learned.epochs)
    assert ContinualTagger.load(tmp_path / "m2").config.optimiser == "sgd"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "No folder for the new model was given"),
        ({"out": "taken"}, "already"),
        ({"out": "m2", "types": ["disch"]}, "Did you mean 'dish'"),
        ({"out": "m2", "accept_forgetting": ["dish"]}, "does not know"),
        ({"out": "m2", "method": "joint"}, "needs all old data"),
        ({"out": "m2", "preset": "papre"}, "no preset"),
        ({"out": "m2", "replay": "new"}, "none of the old types"),
        ({"out": "m2", "epochs": 0}, "epochs"),
        ({"out": "m2", "max_length": 32}, "belongs to the model"),
        ({"out": "m2", "guard": "new"}, "none of the model's types"),
        ({"out": "m2", "max_forgetting": float("nan")}, "got nan"),
    ],
)
def test_mistakes_are_told_before_training(
    one_step: Path, files: dict[str, str], tmp_path: Path, arguments: dict[str, Any], message: str
) -> None:
    (tmp_path / "taken").mkdir()
    given = dict(arguments)
    if "out" in given:
        given["out"] = tmp_path / given["out"]
    for name in {"replay", "guard"} & given.keys():
        given[name] = files[given[name]]
    before = bytes_of(one_step)
    with pytest.raises(CfnerError, match=message):
        learn(one_step, files["new"], **given)
    assert bytes_of(one_step) == before and not list(tmp_path.glob("m2*"))


def test_types_that_no_data_mentions_have_no_score(
    one_step: Path, tiny_corpus: Corpus, files: dict[str, str], tmp_path: Path
) -> None:
    only_city = tmp_path / "city.conll"
    write_sentences([s.only(["city"]) for s in tiny_corpus.test], only_city, format="conll")
    learned = learn(one_step, files["new"], out=tmp_path / "m2", guard=only_city, max_forgetting=100, **FAST)
    assert set(learned.scores.types) == {"city"}
    assert learned.guard is not None and learned.guard.absent == ("animal",)
    assert history(tmp_path / "m2")[-1].micro_f1 is None  # a mean over some of the types would mislead


def test_a_model_that_changed_meanwhile_does_not_lose_the_step(
    one_step: Path, files: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Renames(Interrupts):
        def end(self) -> None:
            rename(one_step, "city", "place")

    with pytest.raises(ModelError, match=r"saved separately in .*refused"):
        learn(one_step, files["new"], in_place=True, **FAST, progress=Renames(99))
    assert [step.name for step in history(one_step)][-1] == "rename city -> place"
    assert set(verify(one_step.with_name("model.refused"))[-1].all_types) == {"animal", "city", *NEW}


def test_the_folder_one_is_in_is_a_model_too(
    one_step: Path, files: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(one_step)
    assert learn(".", files["new"], in_place=True, **FAST).step == 2


@pytest.mark.parametrize("links", [True, False])
def test_a_new_folder_shares_the_files_of_old_steps_where_it_can(
    links: bool, one_step: Path, files: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not links:

        def refuses(*_: object) -> None:
            raise OSError("Operation not supported")

        monkeypatch.setattr("os.link", refuses)
    learn(one_step, files["new"], out=tmp_path / "m2", **FAST)
    one, other = (folder / "steps/0001/model.safetensors" for folder in (one_step, tmp_path / "m2"))
    assert one.samefile(other) == links and one.read_bytes() == other.read_bytes()
    shutil.rmtree(one_step)
    assert len(verify(tmp_path / "m2")) == 2


def test_each_text_is_tagged_once_by_each_model(
    one_step: Path,
    files: dict[str, str],
    tiny_corpus: Corpus,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Counted in words that the networks are asked about before and after the training."""
    text = tmp_path / "any.txt"
    text.write_text("the heron of oslo\nnew york saw the otter\n")
    asked = [0, 0]  # before, after
    counted: list[int] | None = asked
    learned_yet = 0
    forward, train = Network.forward, ContinualTagger.learn

    def counting(self: Network, batch: TokenBatch, *rest: Any) -> Any:
        if counted is not None:
            counted[learned_yet] += len(batch.refs)
        return forward(self, batch, *rest)

    def uncounted(self: ContinualTagger, *rest: Any, **more: Any) -> Any:
        nonlocal counted, learned_yet
        counted = None
        record = train(self, *rest, **more)
        counted, learned_yet = asked, 1
        return record

    monkeypatch.setattr(Network, "forward", counting)
    monkeypatch.setattr(ContinualTagger, "learn", uncounted)
    learn(
        one_step, files["new"], out=tmp_path / "m2", guard=files["old"], max_forgetting=100,
        unlabelled=[text], **FAST,
    )  # fmt: skip
    new, guarded = (sum(map(len, s)) for s in (Corpus.read(files["new"]).train, tiny_corpus.test))
    assert asked == [guarded + new + 9] * 2


@pytest.mark.parametrize("what", ["step", "file"])
def test_nothing_is_copied_from_where_a_link_leads_to(
    what: str, two_steps: Path, files: dict[str, str], tmp_path: Path
) -> None:
    """Also in a step that is not the current one, and is not loaded."""
    model = Path(shutil.copytree(two_steps, tmp_path / "model"))
    place = model / "steps/0001" if what == "step" else model / "steps/0001/scores.json"
    place.rename(tmp_path / "theirs")
    place.symlink_to(tmp_path / "theirs")
    with pytest.raises(ModelError, match=r"0001.* is not a plain"):
        learn(model, files["more"], out=tmp_path / "m2", **FAST)
    assert not (tmp_path / "m2.unfinished/steps/0001/scores.json").exists()


def test_what_an_interrupted_learn_from_another_model_left_does_not_matter(
    one_step: Path, files: dict[str, str], tmp_path: Path
) -> None:
    other = make_checkpoint(tmp_path / "theirs", "bert", ORDERS["BIO"])
    settings = {"epochs": 2, "checkpoint_minutes": 0}
    learn(one_step, files["new"], out=tmp_path / "whole", **settings)
    with pytest.raises(KeyboardInterrupt):
        learn(other, files["new"], out=tmp_path / "m2", **settings, progress=Interrupts(1))
    learn(one_step, files["new"], out=tmp_path / "m2", **settings)
    assert len(verify(tmp_path / "m2")) == 2
    one, two = (tmp_path / name / "steps/0002/model.safetensors" for name in ("whole", "m2"))
    assert one.read_bytes() == two.read_bytes()


@pytest.mark.parametrize("in_place", [True, False])
@pytest.mark.parametrize(
    "file", ["thesis.txt", "notes/thesis.txt", "steps/thesis.txt", "scores/thesis.txt", ".git/config"]
)
def test_a_folder_of_the_users_that_is_in_the_way_is_left_alone(
    file: str, in_place: bool, one_step: Path, files: dict[str, str]
) -> None:
    target = one_step if in_place else one_step.with_name("m2")
    mine = target.with_name(f"{target.name}.unfinished") / file
    mine.parent.mkdir(parents=True)
    mine.write_text("years of work")
    with pytest.raises(ModelError, match="contains something else"):
        learn(one_step, files["new"], out=None if in_place else target, in_place=in_place, **FAST)
    assert bytes_of(target.with_name(f"{target.name}.unfinished")) == {file: b"years of work"}
    assert len(history(one_step)) == 1


@pytest.mark.parametrize("way", ["out", "in place"])
@pytest.mark.parametrize("killed", [False, True])
def test_a_finished_model_whose_name_is_in_the_way_is_left_alone(
    way: str, killed: bool, one_step: Path, files: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looks as if a call had been killed in its last moment; so it does if its own call really was."""
    model = one_step if way == "in place" else one_step.with_name("m2")
    mine = model.with_name(f"{model.name}.unfinished")
    with monkeypatch.context() as patch, pytest.raises(Killed) if killed else nullcontext():
        if killed:  # it has its name, and nothing after that was done
            patch.setattr("cfner.runs.unfinished.flush", die)
        learn(one_step, files["new"], out=mine, **FAST)
    before = bytes_of(mine)
    assert len(verify(mine)) == 2
    with pytest.raises(ModelError, match=r"\.unfinished: .* contains something else"):
        learn(
            one_step, files["more"], out=None if way == "in place" else model, in_place=way == "in place",
            **FAST,
        )  # fmt: skip
    assert bytes_of(mine) == before


@pytest.mark.parametrize("finished", [True, False])
def test_a_model_does_not_become_the_place_where_it_is_learned_from(
    finished: bool, one_step: Path, files: dict[str, str], tmp_path: Path
) -> None:
    source = tmp_path / "m2.unfinished"
    if finished:
        one_step.rename(source)
    else:
        with pytest.raises(KeyboardInterrupt):
            learn(one_step, files["new"], out=tmp_path / "m2", **FAST, progress=Interrupts(0))
    before = bytes_of(source)
    with pytest.raises(ModelError, match="the model that it is learned from"):
        learn(source, files["new"], out=tmp_path / "m2", **FAST)
    assert bytes_of(source) == before


def test_a_model_that_another_call_made_meanwhile_is_told_before_training(
    one_step: Path, files: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def waits_for_another(folder: Path) -> Iterator[None]:
        (tmp_path / "m2").mkdir()
        with locked(folder):
            yield

    monkeypatch.setattr("cfner.runs.unfinished.locked", waits_for_another)
    with pytest.raises(ModelError, match="already"):
        learn(one_step, files["new"], out=tmp_path / "m2", **FAST, progress=Interrupts(0))


def die(*_: object, **__: object) -> None:
    raise Killed


@pytest.mark.parametrize("moment", ["UnfinishedModel._remove", "flush"])
@pytest.mark.parametrize("since", ["nothing", "renamed", "rolled back"])
def test_a_step_that_was_saved_in_place_before_the_kill_is_not_learned_twice(
    moment: str, since: str, one_step: Path, files: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def call() -> None:  # now that all types are known, another plan would be made for it
        learn(one_step, files["full"], in_place=True, old_labels="ignore", **FAST)

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(f"cfner.runs.unfinished.{moment}", die)
        call()
    if since == "renamed":
        rename(one_step, "city", "place")
    elif since == "rolled back":
        rollback(one_step, 1)
    steps = history(one_step)
    with pytest.raises(ModelError, match=r"already learned: .* step 2"):
        call()
    assert history(one_step) == steps
    assert not one_step.with_name("model.unfinished").exists()


@pytest.mark.parametrize("saved", [True, False])
def test_what_was_not_learned_is_not_said_to_be(
    saved: bool, one_step: Path, files: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call was stopped after, or before, its step was saved; what came then is not that step."""
    with monkeypatch.context() as patch, pytest.raises(Killed):
        removing = "cfner.runs.unfinished.UnfinishedModel._remove"
        patch.setattr(removing if saved else "cfner.tagger.ContinualTagger.save", die)
        learn(one_step, files["more"], in_place=True, **FAST)
    if saved:
        learned = learn(one_step, files["new"], in_place=True, **FAST)
    else:
        rename(one_step, "animal", "beast")
        learned = learn(one_step, files["more"], in_place=True, **FAST)
    assert learned.step == 3 and history(one_step)[-1].types == (NEW if saved else ("city",))
    assert not one_step.with_name("model.unfinished").exists()


@pytest.mark.parametrize("method", ["lucir", "podnet", "lucir+cf"])
def test_methods_of_directions_need_the_cosine_head(
    method: str, files: dict[str, str], tmp_path: Path
) -> None:
    checkpoint = make_checkpoint(tmp_path / "theirs", "bert", ORDERS["BIO"])
    with pytest.raises(ConfigError, match="cosine head"):
        learn(checkpoint, files["new"], out=tmp_path / "m2", method=method)


def test_in_place_on_a_checkpoint_is_refused(files: dict[str, str], tmp_path: Path) -> None:
    checkpoint = make_checkpoint(tmp_path / "theirs", "bert", ORDERS["BIO"])
    with pytest.raises(ConfigError, match="only a model folder has steps"):
        learn(checkpoint, files["new"], in_place=True)


class Interrupts:
    """Progress that stops the training after some epochs, as Ctrl-C does."""

    def __init__(self, after: int) -> None:
        self.after = after

    def start(self, name: str, epochs: int, batches: int) -> None:
        self.epochs = epochs

    def batch(self, loss: float, sentences: int) -> None: ...

    def epoch(self, number: int, figures: dict[str, float]) -> None:
        if number > self.after:
            raise KeyboardInterrupt

    def end(self) -> None: ...


@pytest.mark.parametrize("source", ["folder", "checkpoint"])
def test_an_interrupted_learn_goes_on_where_it_was(
    source: str, one_step: Path, files: dict[str, str], tmp_path: Path
) -> None:
    model = one_step if source == "folder" else make_checkpoint(tmp_path / "theirs", "bert", ORDERS["BIO"])
    settings = {"epochs": 4, "checkpoint_minutes": 0}
    whole = learn(model, files["new"], out=tmp_path / "whole", **settings)
    with pytest.raises(KeyboardInterrupt):
        learn(model, files["new"], out=tmp_path / "m2", **settings, progress=Interrupts(2))
    assert not (tmp_path / "m2").exists() and (tmp_path / "m2.unfinished").exists()
    watch = Interrupts(99)
    again = learn(model, files["new"], out=tmp_path / "m2", **settings, progress=watch)
    assert watch.epochs == 2 and again.epochs == whole.epochs
    one, other = (tmp_path / name / "steps/0002/model.safetensors" for name in ("whole", "m2"))
    assert one.read_bytes() == other.read_bytes()
    with pytest.raises(ModelError, match="already"):
        learn(model, files["new"], out=tmp_path / "m2", **settings)


class Killed(BaseException):
    """As kill -9: nobody catches it."""


@pytest.mark.parametrize("source", ["folder", "checkpoint"])
@pytest.mark.parametrize("moment", ["copying", "pointing", "moving"])
def test_a_learn_that_was_killed_at_a_bad_moment_goes_on(
    source: str,
    moment: str,
    one_step: Path,
    files: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = one_step if source == "folder" else make_checkpoint(tmp_path / "theirs", "bert", ORDERS["BIO"])
    settings = {"epochs": 1, "checkpoint_minutes": 0}
    whole = learn(model, files["new"], out=tmp_path / "whole", **settings)
    if moment == "copying":  # half of the steps so far are there
        name = "cfner.store.link_steps.flush" if source == "folder" else "cfner.store.model_folder.flush"
    elif moment == "pointing":  # the steps so far are there, the pointer to them is not
        name = "cfner.store.model_folder.write_text_atomic"
    else:  # the new step is saved, and not yet in its place
        name = "pathlib.Path.rename"
        honest = Path.rename

        def rename(self: Path, target: Path) -> Path:
            return die() if self.name.endswith(".unfinished") else honest(self, target)  # type: ignore[func-returns-value, return-value]

        monkeypatch.setattr(name, rename)
    if moment != "moving":
        monkeypatch.setattr(name, die)
    with pytest.raises(Killed):
        learn(model, files["new"], out=tmp_path / "m2", **settings)
    monkeypatch.undo()
    assert not (tmp_path / "m2").exists()
    again = learn(model, files["new"], out=tmp_path / "m2", **settings)
    assert again.epochs == whole.epochs and again.step == whole.step
    assert [step.number for step in verify(tmp_path / "m2")] == [1, 2]
    one, other = (tmp_path / name / "steps/0002/model.safetensors" for name in ("whole", "m2"))
    assert one.read_bytes() == other.read_bytes()
    assert sorted(p.name for p in (tmp_path / "m2").iterdir()) == [".lock", "CURRENT", "steps"]


def test_with_a_guard_all_steps_are_scored_on_its_sentences(
    one_step: Path, files: dict[str, str], tmp_path: Path
) -> None:
    rename(one_step, "animal", "beast")
    rename(one_step, "beast", "animal")  # three steps: only the current one is asked by the guard itself
    learned = learn(
        one_step,
        files["new"],
        out=tmp_path / "m2",
        guard=files["old"],
        max_forgetting=100,
        **FAST,
    )
    assert learned.scored_on is not None and learned.scored_on.name == "old.conll"
    *_, third, fourth = past = verify(tmp_path / "m2")
    assert [step.figures.on if step.figures else None for step in past] == [learned.scored_on] * 4
    assert third.figures is not None and fourth.figures is not None and learned.guard is not None
    for row in learned.guard.types:
        assert third.figures.per_type[row.type] == pytest.approx(row.before.value)
        assert fourth.figures.per_type[row.type] == pytest.approx(row.after.value)
    assert fourth.figures.types == ("animal", "city")  # nothing measured on other sentences is in it
    assert [len(step.elsewhere) for step in past] == [1, 1, 1, 0]  # the stream's test data
    assert not (one_step / "scores").exists()  # the model that it was learned from is as it was


def test_an_interrupted_learn_does_not_score_the_steps_again(
    one_step: Path, files: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename(one_step, "animal", "beast")
    rename(one_step, "beast", "animal")
    given: dict[str, Any] = {"guard": files["old"], "max_forgetting": 100, **FAST}
    with pytest.raises(KeyboardInterrupt):
        learn(one_step, files["new"], out=tmp_path / "m2", progress=Interrupts(1), **given)
    monkeypatch.setattr("cfner.practice.evaluate.steps._scored", None)
    learn(one_step, files["new"], out=tmp_path / "m2", **given)
    assert all(step.figures is not None for step in verify(tmp_path / "m2"))


def test_a_step_that_cannot_be_scored_is_said_and_left_out(
    one_step: Path, files: dict[str, str], tmp_path: Path
) -> None:
    rename(one_step, "animal", "beast")
    rename(one_step, "beast", "animal")
    weights = one_step / "steps/0001/model.safetensors"
    raw = weights.read_bytes()
    weights.unlink()  # a file of its own: those of later steps are linked to it
    weights.write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))
    done = cfner(
        "learn", one_step, files["new"], "--out", tmp_path / "m2", "--epochs", 1, "--guard", files["old"],
        "--max-forgetting", 100,
    )  # fmt: skip
    assert done.exit_code == 0 and "step 1 is not scored" in done.output
    first, *later = history(tmp_path / "m2")
    assert first.figures is None and all(step.figures is not None for step in later)


def test_in_place_the_series_is_kept_and_carried_on(
    one_step: Path, files: dict[str, str], tmp_path: Path
) -> None:
    given: dict[str, Any] = {"guard": files["old"], "max_forgetting": 100, **FAST}
    learn(one_step, files["new"], in_place=True, **given)
    assert [step.figures is not None for step in verify(one_step)] == [True, True]
    learn(one_step, files["more"], out=tmp_path / "m2", old_labels="use", **FAST)  # without a guard
    assert [step.figures is not None for step in verify(tmp_path / "m2")] == [True, True, False]


def test_an_earlier_step_can_be_learned_from(one_step: Path, files: dict[str, str], tmp_path: Path) -> None:
    rename(one_step, "animal", "beast")
    refused = cfner("learn", f"{one_step}@1", files["new"], "--in-place")
    assert isinstance(refused.exception, ConfigError) and "step 1 was requested" in str(refused.exception)
    done = cfner("learn", f"{one_step}@1", files["new"], "--out", tmp_path / "m2", "--epochs", 1)
    assert done.exit_code == 0, done.output
    last = verify(tmp_path / "m2")[-1]
    assert (last.number, last.parent) == (3, 1) and set(last.all_types) == {"animal", "city", *NEW}


# -- nothing silent ----------------------------------------------------------------------------------------


@pytest.fixture
def spelled(tiny_corpus: Corpus, tmp_path: Path) -> Path:
    """Persons, in five spellings of one label."""
    names, count = ("person", "Person", "PERSON", "Persons", "PER"), itertools.count()
    path = tmp_path / "five.conll"
    write_sentences(
        [
            s.with_spans([replace(span, type=names[next(count) % 5]) for span in s.only(["person"]).spans])
            for s in tiny_corpus.train
        ],
        path,
    )
    return path


def test_five_spellings_of_a_label_are_refused_before_a_model_is_loaded(
    one_step: Path, spelled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("cfner.tagger.read_model", die)
        done = cfner("learn", one_step, spelled, "--out", tmp_path / "m2")
    said = str(done.exception)
    assert isinstance(done.exception, CorpusError) and "one type under 5 names" in said
    assert "cfner data rename-type" in said and "--unchecked" in said
    assert not (tmp_path / "m2").exists() and not (tmp_path / "m2.unfinished").exists()
    words = shlex.split(said[said.index("cfner data") : said.index(" . ")])
    assert cfner(*words[1:]).exit_code == 0
    mended = cfner("learn", one_step, words[-1], "--out", tmp_path / "m2", "--epochs", 1)
    assert mended.exit_code == 0 and "Learned: PER" in mended.output


def test_unchecked_learns_what_would_be_refused_and_says_so(
    one_step: Path, spelled: Path, tmp_path: Path
) -> None:
    options = ("--out", tmp_path / "m2", "--epochs", 1, "--unchecked", "--json")
    done = cfner("learn", one_step, spelled, *options)
    assert done.exit_code == 0 and "error: 'PER'" in done.stderr
    learned = json.loads(done.stdout)
    assert len(learned["new_types"]) == 5
    assert "similar types" in {finding["kind"] for finding in learned["findings"]}


@pytest.mark.parametrize("source", ["folder", "checkpoint"])
def test_a_new_name_of_a_known_type_is_refused(
    source: str, one_step: Path, tiny_corpus: Corpus, tmp_path: Path
) -> None:
    """The types of a checkpoint come with its weights, those of a folder are known before."""
    model = one_step if source == "folder" else make_checkpoint(tmp_path / "theirs", "bert", ORDERS["BIO"])
    write_sentences(Corpus("c", tiny_corpus.train).renamed({"city": "Cities"}).train, tmp_path / "new.conll")
    with pytest.raises(CorpusError, match=r"knows as 'city'.*rename-type"):
        learn(model, str(tmp_path / "new.conll"), out=tmp_path / "m2", types=["Cities"])


def test_warnings_of_the_check_are_logged_and_do_not_stop(
    one_step: Path, files: dict[str, str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    learned = learn(one_step, files["new"], out=tmp_path / "m2", **FAST)
    assert "few mentions" in {finding.kind for finding in learned.findings}
    assert any(line.startswith("warning: 2 types have fewer than 50") for line in caplog.messages)


def test_labels_and_sentences_that_are_dropped_are_logged_and_returned(
    one_step: Path,
    files: dict[str, str],
    tiny_corpus: Corpus,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    text = tmp_path / "text.txt"
    same = [" ".join(s.words) for s in tiny_corpus.train]
    other = [f"the heron number {number} went to oslo" for number in range(150)]
    text.write_text("\n".join([*same, *other]))
    replay = tmp_path / "mixed.conll"
    write_sentences(tiny_corpus.dev, replay)
    learned = learn(
        one_step, files["full"], out=tmp_path / "m2", types=["dish"], epochs=1,
        replay=replay, unlabelled=[text], every=2,
    )  # fmt: skip
    said = "\n".join(learned.left_out)
    assert "dropped labels of types that this step does not learn: animal (" in said
    assert "sentence left out by every=2: 30, first at" in said
    assert "Old sentences: dropped labels of types that are not old: dish (" in said
    assert "unlabelled sentences left out: the new data contains them too" in said
    assert set(learned.left_out) <= set(caplog.messages)
    assert learned.to_json()["left_out"] == list(learned.left_out)


@pytest.mark.parametrize("setting", [{"max_length": 100000}, {"lr_encoder": 1e30}])
def test_a_learn_that_fails_leaves_nothing(
    setting: dict[str, Any], one_step: Path, files: dict[str, str], tmp_path: Path
) -> None:
    with pytest.raises(CfnerError):
        learn(one_step, files["new"], out=tmp_path / "m2", **{**FAST, **setting})
    assert not (tmp_path / "m2").exists() and not (tmp_path / "m2.unfinished").exists()
    assert learn(one_step, files["new"], out=tmp_path / "m2", **FAST).accepted
