"""The seam of methods: what authors import, what hooks may do, and names that cannot collide."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch

import cfner.methods
from cfner.benchmark.cells import Cell, parse_methods
from cfner.benchmark.streams import Division, Source
from cfner.corpus.corpus import Corpus
from cfner.errors import ConfigError
from cfner.methods import (
    ClassifyAll,
    Distil,
    Method,
    Objective,
    StepContext,
    create,
    method_class,
    register,
)
from cfner.methods.context import ExampleContext
from cfner.methods.files import load_file
from cfner.stream.step import Slice
from cfner.stream.stream import TaskStream
from cfner.training.config import TrainingConfig
from check_method import Subject, check_method

OUTSIDE = Path(__file__).parent / "outside_method.py"


def test_a_method_from_outside_needs_one_import(
    tiny_encoder: Path, tiny_corpus: Corpus, methods_as_before: None
) -> None:
    imported = {
        node.module
        for node in ast.walk(ast.parse(OUTSIDE.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("cfner")
    }
    assert imported == {"cfner.methods"}
    assert load_file(OUTSIDE) == ["dld", "frozen-encoder"]
    check_method("dld", tiny_encoder, tiny_corpus)


_SHARED = {
    f"cfner.methods.{stem}"
    for stem in (
        "__init__",
        "method",
        "registry",
        "context",
        "causal",
        "old_mentions",
        "pseudo_labels",
        "consolidation",
        "files",
    )
}


def test_every_public_name_is_there_and_every_method_of_ours_uses_those_alone() -> None:
    assert all(hasattr(cfner.methods, name) for name in cfner.methods.__all__)
    folder = Path(cfner.methods.__path__[0])
    for file in folder.glob("*.py"):
        if f"cfner.methods.{file.stem}" in _SHARED:
            continue
        modules = {
            node.module
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("cfner")
        }
        # a method may be built on another one
        others = {f"cfner.methods.{other.stem}" for other in folder.glob("*.py")} - _SHARED
        assert "cfner.methods" in modules <= {"cfner.methods", *others}, file.name


def test_begin_decides_what_is_trained(
    tiny_encoder: Path, tiny_corpus: Corpus, methods_as_before: None
) -> None:
    load_file(OUTSIDE)
    stream = TaskStream.split(tiny_corpus, first=2, per_step=1, min_mentions=1)
    subject = Subject("frozen-encoder", tiny_encoder, stream)
    tagger = subject.tagger(epochs=1)
    tagger.learn(subject.step(0))
    before = {key: value.clone() for key, value in tagger.model.network.body.state_dict().items()}
    head = tagger.model.network.head.weight.detach().clone()
    tagger.learn(subject.step(1))
    assert all(torch.equal(value, before[k]) for k, value in tagger.model.network.body.state_dict().items())
    assert torch.equal(tagger.model.network.head.weight[1 : len(head)], head[1:])


def test_two_terms_of_one_name_are_an_error() -> None:
    """They would overwrite each other's loss, and be summed twice."""
    with pytest.raises(ConfigError, match="named 'distil'"):
        Objective((Distil(), Distil(weight=2.0)))
    both = Objective((Distil(), Distil(name="distil_hard", weight=2.0, hard=True)))
    total = both.total({"distil": torch.tensor(1.0), "distil_hard": torch.tensor(10.0)})
    assert float(total) == 21.0


def test_an_effect_is_named_only_where_there_is_one() -> None:
    def names(method: str, without: tuple[str, ...] = ()) -> list[str]:
        return [term.name for term in create(method, without=without).objective(ExampleContext(2, 1)).terms]

    assert names("extendner") == ["classify", "distil"]
    assert names("cfner") == ["effect_e", "effect_o"]
    assert names("cfner", ("effect_o",)) == ["effect_e", "distil"]


def test_an_objective_may_not_look_at_the_data(methods_as_before: None) -> None:
    @register
    class Peeking(Method):
        """Looks at the data too early."""

        name: ClassVar[str] = "peeking"

        def objective(self, ctx: StepContext) -> Objective:
            return Objective((ClassifyAll(weight=float(len(ctx.data.gold))),))

    with pytest.raises(ConfigError, match="targets"):
        create("peeking").objective(ExampleContext(1, 1))


def test_a_first_step_that_is_not_plain_is_shared_with_nobody(
    tiny_data: Path, tiny_corpus: Corpus, methods_as_before: None
) -> None:
    @register
    class Own(Method):
        """Has a first step of its own."""

        name: ClassVar[str] = "own-first"
        plain_first_step: ClassVar[bool] = False

        def objective(self, ctx: StepContext) -> Objective:
            return Objective((ClassifyAll(),))

    def cell(name: str) -> Cell:
        (choice,) = parse_methods(name)
        config = choice.applied_to(TrainingConfig.build({"encoder": "minilm"}))
        return Cell(Source(str(tiny_data), min_mentions=1), Division(2, 2), name, config)

    cells: dict[str, Any] = {name: cell(name) for name in ("cfner", "extendner", "own-first")}
    keys = {name: one.first_step_key(one.stream(tiny_corpus)) for name, one in cells.items()}
    assert keys["cfner"] == keys["extendner"] != keys["own-first"]
    assert cells["cfner"].first_step().method == "finetune"
    assert cells["own-first"].first_step() is cells["own-first"]


def test_own_others_share_a_first_step_but_not_with_a_subclass(
    tiny_data: Path, tiny_corpus: Corpus, methods_as_before: None
) -> None:
    @register
    class Changed(method_class("own-other")):  # type: ignore[misc]
        """May change the first step."""

        name: ClassVar[str] = "changed"

    def first_key(name: str, **settings: Any) -> str:
        (choice,) = parse_methods(name)
        config = choice.applied_to(TrainingConfig.build({"encoder": "minilm", **settings}))
        cell = Cell(Source(str(tiny_data), min_mentions=1), Division(2, 2), name, config)
        return cell.first_step_key(cell.stream(tiny_corpus))

    usual = first_key("own-other")
    same = ("own-other+cf with k=1", "joint-own", "own-other with lambda_keep=4", "own-other without keep")
    assert {first_key(name) for name in same} == {usual} == {first_key("own-other", unlabelled_ratio=3.0)}
    others = ("changed", "experts", "cfner", "own-other with rare=0", "own-other with groups=step")
    assert usual not in {first_key(name) for name in others}
    assert first_key("own-other", select_on="new") != usual
    assert first_key("cfner", select_on="new") != first_key("cfner")


def test_hooks_are_called_in_a_first_step_that_is_not_plain(
    tiny_encoder: Path, tiny_corpus: Corpus, methods_as_before: None
) -> None:
    called = []

    @register
    class Hooked(Method):
        """Has a first step of its own."""

        name: ClassVar[str] = "hooked"
        plain_first_step: ClassVar[bool] = False

        def begin(self, network: Any, ctx: StepContext) -> None:
            called.append("begin")
            super().begin(network, ctx)

        def targets(self, ctx: StepContext, teachers: Any) -> Any:
            called.append(f"targets, teachers: {sorted(teachers)}")
            return super().targets(ctx, teachers)

        def objective(self, ctx: StepContext) -> Objective:
            return Objective((ClassifyAll(name="own"),))

        def finish(self, network: Any, ctx: StepContext) -> None:
            called.append("finish")

    stream = TaskStream.split(tiny_corpus, first=2, per_step=1, min_mentions=1)
    subject = Subject("hooked", tiny_encoder, stream)
    tagger = subject.tagger(epochs=1)
    first = tagger.learn(subject.step(0))
    assert sorted(called) == ["begin", "finish", "targets, teachers: []"]
    assert "own" in first.history[0]
    tagger.learn(subject.step(1))
    assert called[-1] == "finish" and "targets, teachers: ['old']" in called


def test_slices_say_what_they_are_annotated_with(tiny_corpus: Corpus, tiny_stream: TaskStream) -> None:
    from dataclasses import replace

    step = tiny_stream[1]
    old = tuple(sentence.only(step.known) for sentence in tiny_corpus.dev)
    with_replay = replace(step, replay=old)
    assert step.slices == (Slice(step.train, frozenset(step.types)),)
    assert with_replay.slices[1] == Slice(old, frozenset())
    assert step.joint_slices[0].annotated == frozenset(step.types_so_far)


@dataclass(frozen=True)
class Nameless(Distil):
    name: str = ""


def test_a_term_needs_a_name() -> None:
    with pytest.raises(ConfigError, match="no name"):
        Objective((Nameless(),))


def test_the_template_describes_a_term_as_it_is() -> None:
    """What it says of a term's parts is what a term has, and its names are public."""
    from cfner.benchmark.method_template import method_file

    text = method_file("mine", Path("mine.py"))
    assert "``__call__``" in text and callable(Distil.__call__)
    for part in ("name", "role"):
        assert f"``{part}``" in text and hasattr(Distil, part)
    for hook in ("begin", "teachers", "targets", "finish"):
        assert hook in text and callable(getattr(Method, hook))
    tree = ast.parse(text)
    imported = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names = {alias.name for node in imported if node.module == "cfner.methods" for alias in node.names}
    assert names <= set(cfner.methods.__all__)
    assert not [node.module for node in imported if node.module and node.module.startswith("cfner.objective")]
