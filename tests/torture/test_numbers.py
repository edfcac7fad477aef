"""Steps at the edge of what can be computed, with every method: finite, or stopped before it is saved."""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from cfner.corpus.corpus import Corpus
from cfner.corpus.sentence import Sentence, Span
from cfner.errors import CfnerError, ModelError, TrainingError
from cfner.methods import method_names
from cfner.objective.terms import Objective
from cfner.store.model_folder import ModelFolder
from cfner.stream.step import Step
from cfner.stream.stream import TaskStream
from cfner.tagger import ContinualTagger
from cfner.training.progress import Silent
from cfner.training.unfinished_step import FILE
from check_method import prepared_step, speak_of_nothing
from counts import tell, times

METHODS = times(len(method_names()), quick=len(method_names()), short=2)
CHOSEN = ["cfner", "own-other+cf"] if METHODS == 2 else method_names()
PLACE = re.compile(r"is not finite in step \d+, epoch \d+, batch \d+, term \w+")

ADA = Sentence(("ada", "went", "today"), (Span(0, 1, "person"),))
BARE = Sentence(("the", "river", "went", "to", "the", "river"), ())


def _no_new_type_in_a_batch(step: Step, tagger: ContinualTagger) -> Step:
    """Most batches are of one sentence without a mention."""
    return _with(step, (ADA, *[BARE] * 6))


def _no_defined_other(step: Step, tagger: ContinualTagger) -> Step:
    """The teacher takes every word for O."""
    sentences = (ADA, BARE)
    if tagger.types and not tagger.method.from_scratch:
        speak_of_nothing(tagger, tuple(Sentence(sentence.words) for sentence in sentences))
    return _with(step, sentences)


def _fewer_than_k_neighbours(step: Step, tagger: ContinualTagger) -> Step:
    return _with(step, (ADA, replace(ADA, words=("emmy", "went", "today"))))


def _a_type_unseen_in_training(step: Step, tagger: ContinualTagger) -> Step:
    return _with(step, tuple(sentence.only(["dish"]) for sentence in step.train if "dish" in sentence.types))


def _one_sentence(step: Step, tagger: ContinualTagger) -> Step:
    return _with(step, (ADA,))


def _one_word(step: Step, tagger: ContinualTagger) -> Step:
    return _with(step, (Sentence(("ada",), (Span(0, 1, "person"),)),))


def _all_words_are_one_mention(step: Step, tagger: ContinualTagger) -> Step:
    """One label: no word is O."""
    return _with(step, tuple(Sentence(s.words, (Span(0, len(s), "person"),)) for s in step.train[:4]))


def _no_mention_at_all(step: Step, tagger: ContinualTagger) -> Step:
    return _with(step, (BARE, BARE))


EDGES: list[Callable[[Step, ContinualTagger], Step]] = [
    _no_new_type_in_a_batch,
    _no_defined_other,
    _fewer_than_k_neighbours,
    _a_type_unseen_in_training,
    _one_sentence,
    _one_word,
    _all_words_are_one_mention,
    _no_mention_at_all,
]


def _with(step: Step, train: tuple[Sentence, ...]) -> Step:
    return replace(step, train=train, dev=(), _slices=(*step._slices[:-1], train), _dev=())


@pytest.fixture(scope="module")
def stream(tiny_corpus: Corpus) -> TaskStream:
    small = Corpus("small", tiny_corpus.train[:24], tiny_corpus.dev[:6], tiny_corpus.test[:6])
    return TaskStream.split(small, first=2, per_step=2, min_mentions=1)


def _tagger(encoder: Path, method: str, **settings: Any) -> ContinualTagger:
    usual = {"epochs": 2, "batch_size": 1, "lr_encoder": 1e-3, "max_length": 32, "checkpoint_minutes": 0}
    return ContinualTagger.from_pretrained(str(encoder), method, **{**usual, **settings})


def _first_step(encoder: Path, method: str, stream: TaskStream, folder: Path, **settings: Any) -> None:
    tagger = _tagger(encoder, method, **{"batch_size": 8, **settings})
    tagger.learn(replace(stream[0], dev=()))
    tagger.save(folder)


def _assert_all_finite(folder: Path) -> None:
    for file in folder.rglob("*.safetensors"):
        for name, value in load_file(file).items():
            assert torch.isfinite(value).all(), f"{file.name}: {name}"


@pytest.mark.parametrize("method", CHOSEN)
def test_a_step_at_the_edge_is_learned_and_finite(
    method: str, tiny_encoder: Path, stream: TaskStream, tmp_path: Path
) -> None:
    first = tmp_path / "first"
    _first_step(tiny_encoder, method, stream, first)
    for edge in EDGES:
        for number in (0, 1):
            folder = tmp_path / f"{edge.__name__}-{number}"
            if number:
                shutil.copytree(first, folder)
                tagger = ContinualTagger.load(folder, batch_size=1)
            else:
                tagger = _tagger(tiny_encoder, method)
            step = edge(stream[1] if number else _of_new_types(stream), tagger)
            state = tagger.learn(step, unfinished=folder)
            assert all(math.isfinite(value) for figures in state.history for value in figures.values()), edge
            if number and edge is _no_defined_other and (teacher := prepared_step(tagger).teacher):
                assert not teacher.defined_other.any()
            if not (number and edge is _no_defined_other):  # whose old model was changed by hand
                tagger.save(folder)
            assert set(step.types) <= set(tagger.types)
            assert tagger.predict("ada saw the heron in oslo") is not None
            _assert_all_finite(folder)


def _of_new_types(stream: TaskStream) -> Step:
    """The second step's types as the first step of a fresh model."""
    second = stream[1]
    return replace(second, known=(), index=0, name="step 1", _slices=(second.train,))


# -- made to be not finite ----------------------------------------------------------------------------------


class Spoils(Silent):
    """Puts something that is no number into a weight after a given batch of an epoch."""

    def __init__(self, epoch: int, batch: int, value: float) -> None:
        self.at, self.value = (epoch, batch), value
        self.now = [1, 0]
        self.weight: torch.Tensor | None = None

    def batch(self, loss: float, sentences: int) -> None:
        self.now[1] += 1
        if tuple(self.now) == self.at and self.weight is not None:
            with torch.no_grad():
                self.weight.view(-1)[0] = self.value

    def epoch(self, number: int, figures: dict[str, float]) -> None:
        self.now = [number + 1, 0]


def _batches(stream: TaskStream, number: int) -> int:
    return math.ceil(len([s for s in stream[number].train if len(s)]) / 8)


@pytest.mark.parametrize("method", CHOSEN)
@pytest.mark.parametrize("value", [math.nan, math.inf], ids=["nan", "inf"])
def test_a_weight_that_is_no_number_stops_the_step_before_it_is_saved(
    method: str, value: float, tiny_encoder: Path, stream: TaskStream, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    _first_step(tiny_encoder, method, stream, folder)
    before = {path: path.read_bytes() for path in (folder / "steps").rglob("*") if path.is_file()}
    last = _batches(stream, 1) + (_batches(stream, 0) if method == "joint" else 0)
    for epoch, batch in [(1, 1), (1, last), (2, 1), (2, last)]:
        tagger = ContinualTagger.load(folder, batch_size=8)
        spoils = Spoils(epoch, batch, value)
        if not tagger.method.from_scratch:
            spoils.weight = tagger.model.network.body.get_parameter(_a_weight(tagger))
        else:
            continue  # its network is made inside learn; the loss below covers it
        with pytest.raises(TrainingError, match=PLACE):
            tagger.learn(replace(stream[1], dev=()), spoils, unfinished=folder)
        with pytest.raises(ModelError, match="interrupted"):
            tagger.save(folder)
        _assert_all_finite(folder)
        (folder / FILE).unlink(missing_ok=True)
    assert {path: path.read_bytes() for path in (folder / "steps").rglob("*") if path.is_file()} == before


def _a_weight(tagger: ContinualTagger) -> str:
    names = [name for name, _ in tagger.model.network.body.named_parameters() if "layer.0." in name]
    return next(name for name in names if name.endswith("weight"))


@pytest.mark.parametrize("method", CHOSEN)
def test_a_loss_that_is_no_number_is_named_with_its_term(
    method: str, tiny_encoder: Path, stream: TaskStream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every term of the method in turn, in the last batch of the last epoch: the latest possible moment."""
    folder = tmp_path / "model"
    _first_step(tiny_encoder, method, stream, folder)
    honest = Objective.losses
    probe = ContinualTagger.load(folder, batch_size=8, epochs=1)
    probe.learn(replace(stream[1], dev=()))
    prepared = prepared_step(probe)
    terms = [term.name for term in prepared.objective.terms]
    total = math.ceil(prepared.data.text.windows / 8) * 2
    for term in terms:
        calls = 0

        def losses(self: Objective, inputs: Any, spoilt: str = term) -> dict[str, torch.Tensor]:
            nonlocal calls
            calls += 1
            found = honest(self, inputs)
            return {**found, spoilt: found[spoilt] * math.nan} if calls == total else found

        monkeypatch.setattr(Objective, "losses", losses)
        tagger = ContinualTagger.load(folder, batch_size=8, epochs=2)
        with pytest.raises(TrainingError) as caught:
            tagger.learn(replace(stream[1], dev=()), unfinished=folder)
        assert f"in step 2, epoch 2, batch {total // 2}, term {term}." in str(caught.value)
        assert len(ModelFolder(folder).names()) == 1
        _assert_all_finite(folder)
        (folder / FILE).unlink(missing_ok=True)
        monkeypatch.undo()


@pytest.mark.parametrize("clip", [1.0, None])
@pytest.mark.parametrize("optimiser", ["adamw", "sgd"])
def test_a_gradient_that_is_no_number_is_named(
    clip: float | None, optimiser: str, tiny_encoder: Path, stream: TaskStream
) -> None:
    """The loss is finite, its gradient is not: as where a norm of zero is divided by."""
    tagger = _tagger(tiny_encoder, "cfner", batch_size=8, clip=clip, optimiser=optimiser)
    weight = tagger.model.network.body.get_parameter(_a_weight(tagger))
    weight.register_hook(lambda gradient: gradient * math.inf)
    with pytest.raises(TrainingError, match=r"gradient is not finite in step 1, epoch 1, batch 1, term \w+"):
        tagger.learn(replace(stream[0], dev=()))


@pytest.mark.parametrize("optimiser", ["adamw", "sgd"])
@pytest.mark.parametrize("rate", [1e2, 1e10, 1e30])
def test_a_rate_that_is_far_too_high_ends_in_an_error_or_in_finite_weights(
    optimiser: str, rate: float, tiny_encoder: Path, stream: TaskStream, tmp_path: Path
) -> None:
    tagger = _tagger(tiny_encoder, "cfner", optimiser=optimiser, lr_encoder=rate, lr_head=rate, clip=None)
    try:
        tagger.learn(stream[0], unfinished=tmp_path)
        tagger.save(tmp_path)
    except CfnerError as error:
        assert isinstance(error, TrainingError) and PLACE.search(str(error).replace("weight ", ""))
    _assert_all_finite(tmp_path)


def test_weights_that_are_no_numbers_are_neither_saved_nor_loaded(two_steps: Path, tmp_path: Path) -> None:
    tagger = ContinualTagger.load(two_steps)
    with torch.no_grad():
        tagger.model.network.head.weight[0, 0] = math.nan
    tagger._saved = None
    with pytest.raises(ModelError, match=r"head\.weight is not finite"):
        tagger.save(tmp_path / "model")
    assert not ModelFolder(tmp_path / "model").names()
    tell(f"{len(CHOSEN)} methods x {len(EDGES)} edges, in the first step and in a later one")
