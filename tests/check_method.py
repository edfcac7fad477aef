"""What every registered method must pass, now and later: ``check_method(name, encoder, corpus)``.

A new method that passes these learns, stays finite, lets every term move the student, survives a step
without mentions, and does the same thing twice.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from cfner.batches.encoding import encode
from cfner.batches.loader import collate
from cfner.corpus.corpus import Corpus
from cfner.corpus.sentence import Sentence, Span
from cfner.methods import Method, Network, TermInputs
from cfner.network.inference import outputs
from cfner.stream.step import Step
from cfner.stream.stream import TaskStream
from cfner.tagger import ContinualTagger
from cfner.training import step as training_step
from cfner.training.loop import BatchLosses
from cfner.training.preparation import TrainingContext
from cfner.training.prepared_step import PreparedStep
from cfner.training.record import StepRecord


@dataclass(frozen=True)
class Subject:
    """A method with its settings, and something to learn."""

    name: str
    encoder: Path
    stream: TaskStream
    without: tuple[str, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def tagger(self, seed: int = 0, **settings: Any) -> ContinualTagger:
        quick = {"epochs": 4, "batch_size": 8, "lr_encoder": 2e-3, "lr_head": 1e-2}
        return ContinualTagger.from_pretrained(
            str(self.encoder),
            method=self.name,
            without=self.without,
            parameters=dict(self.parameters),
            seed=seed,
            **{**quick, **settings},
        )

    def step(self, number: int) -> Step:
        """A step without dev data, so that training ends with its last epoch."""
        return replace(self.stream[number], dev=())


def check_method(
    name: str,
    encoder: Path,
    corpus: Corpus,
    *,
    without: Collection[str] = (),
    parameters: Mapping[str, Any] | None = None,
    variant: bool = False,
) -> None:
    """Raise an AssertionError that says which promise the method breaks.

    ``variant``: of a method that is checked by itself, so that what its parts do not touch is left out.
    """
    stream = TaskStream.split(corpus, first=2, per_step=1, min_mentions=1)
    subject = Subject(name, encoder, stream, tuple(without), parameters or {})
    tagger = check_learns_two_steps(subject)
    check_every_term_moves_the_student(subject, tagger)
    if variant:
        return
    check_same_seed_same_weights(subject, weights_of(tagger))
    check_empty_and_tiny_pools(subject)
    check_unlabelled_text_says_nothing_about_new_types(subject)


def check_learns_two_steps(subject: Subject) -> ContinualTagger:
    tagger = subject.tagger()
    for number in range(2):
        record = tagger.learn(subject.step(number))
        assert tagger.types == subject.stream[number].types_so_far
        assert_finite(tagger, record)
        first, last = (_total(tagger, record.history[epoch]) for epoch in (0, -1))
        assert last < first, f"the loss of step {number + 1} rose from {first} to {last}"
    sentence = subject.stream.test[0]
    found = tagger.predict(sentence)
    assert all(0 <= span.start < span.end <= len(sentence) for span in found.spans)
    assert {span.type for span in found.spans} <= set(tagger.types)
    return tagger


def check_every_term_moves_the_student(subject: Subject, tagger: ContinualTagger) -> None:
    """Over the whole slice, in the last epoch (when the curriculum has opened): each term by itself."""
    prepared = prepared_step(tagger)
    network = tagger.model.network.train()
    trained = {name: weight for name, weight in network.named_parameters() if weight.requires_grad}
    encoder = any(name.startswith("body.") for name in trained)  # some methods train rows of the head alone
    step = BatchLosses(network, network, prepared, tagger.config)
    batch = collate(prepared.data.text, range(prepared.data.text.windows))
    with ExitStack() as eager:
        for one in filter(None, (network, prepared.old)):
            eager.enter_context(one.ready_for(step.probes))
        losses, _ = step.losses(batch, tagger.config.epochs)
    weights = {term.name: term.weight for term in prepared.objective.terms}
    # others ask the head alone, for something that is kept
    reads_text = {term.name: term.of_words or bool(term.probes) for term in prepared.objective.terms}
    assert set(losses) == set(weights)
    for term, loss in losses.items():
        assert loss.shape == (), f"{term} is not a scalar"
        assert weights[term] > 0, f"{term} weighs nothing"
        assert loss.requires_grad, f"{term} is computed without gradient"
        gradients = torch.autograd.grad(loss, list(trained.values()), retain_graph=True, allow_unused=True)
        moved = [
            n for n, g in zip(trained, gradients, strict=True) if g is not None and bool(g.abs().sum() > 0)
        ]
        assert moved, f"{term} moves nothing that is trained"
        if encoder and reads_text[term]:
            assert any("layer.0." in name for name in moved), f"{term} does not reach the first layer"
        assert all(g is None or bool(torch.isfinite(g).all()) for g in gradients), f"{term}: gradient"
    network.eval()


def check_same_seed_same_weights(subject: Subject, trained: dict[str, Tensor]) -> None:
    """To the last bit, whatever was drawn at random before; and another seed gives something else."""
    torch.rand(7)
    again = subject.tagger()
    again.learn(subject.step(0))
    first = {key: value.clone() for key, value in weights_of(again).items()}
    again.learn(subject.step(1))
    for key, value in weights_of(again).items():
        assert torch.equal(value, trained[key]), f"{key} differs between two runs of one seed"
    other = subject.tagger(seed=1)
    other.learn(subject.step(0))
    assert any(not torch.equal(value, first[key]) for key, value in weights_of(other).items())


def check_empty_and_tiny_pools(subject: Subject) -> None:
    """A step without any mention, where the teacher sees none either; then one with a single E token."""
    tagger = subject.tagger(epochs=2)
    tagger.learn(subject.step(0))
    bare = tuple(sentence for sentence in subject.stream[1].train if not sentence.spans)
    assert bare, "the corpus needs sentences without mentions"
    speak_of_nothing(tagger, bare)
    nothing = replace(subject.step(1), train=bare, _slices=(subject.stream.slices[0], bare), _dev=())
    assert_finite(tagger, tagger.learn(nothing))
    prepared = prepared_step(tagger)
    if prepared.teacher is not None:
        assert len(prepared.teacher.pool) == 0
        assert prepared.bank is None or len(prepared.bank.table.refs) == 0
    type_ = subject.stream[2].types[0]
    lonely = (Sentence(("ada", "went", "today"), (Span(0, 1, type_),)),)
    alone = replace(subject.step(2), train=lonely, _slices=(*subject.stream.slices[:2], lonely), _dev=())
    assert_finite(tagger, tagger.learn(alone))
    assert tagger.types == subject.stream[2].types_so_far
    prepared = prepared_step(tagger)
    if prepared.bank is not None:
        table = prepared.bank.table
        assert int(table.row_of_ref[0]) >= 0  # "ada"
        assert float(table.anchor_weights[table.row_of_ref[0]]) == 1.0


def check_unlabelled_text_says_nothing_about_new_types(subject: Subject) -> None:
    """With one Other class: whether an unlabelled word is O or of a new type changes no loss."""
    tagger = subject.tagger(epochs=1)
    if tagger.method.grouping is not None or not tagger.method.reads_unlabelled:
        return
    tagger.learn(subject.step(0))
    unlabelled = tuple(sentence.only(()) for sentence in subject.stream.test)
    tagger.learn(replace(subject.step(1), unlabelled=unlabelled))
    prepared, network = prepared_step(tagger), tagger.model.network
    windows = prepared.data.text.window_of_refs()[(~prepared.annotated).numpy()]
    assert len(windows), "no unlabelled sentence was read"
    batch = collate(prepared.data.text, sorted(set(windows.tolist())))
    objective = prepared.objective
    with ExitStack() as eager, torch.no_grad():
        for one in filter(None, (network, prepared.old)):
            eager.enter_context(one.ready_for(objective.probes))
        out = network(batch, objective.probes)
        inputs = prepared.inputs(network, batch, out, tagger.config.epochs or 1)
        plain, swapped = (objective.losses(one) for one in (inputs, _new_for_other(inputs)))
    assert any(float(loss) > 0 for loss in plain.values()), "no term reads unlabelled text"
    for term, loss in plain.items():
        torch.testing.assert_close(swapped[term], loss, msg=f"{term}: unlabelled words count as O")


def _new_for_other(inputs: TermInputs) -> TermInputs:
    """The same words, with the student's scores of O and of a new label exchanged."""
    other, new = inputs.roles.other, inputs.roles.new[0]

    def swapped(scores: Tensor | None) -> Tensor | None:
        if scores is None:
            return None
        found = scores.clone()
        found[:, other], found[:, new] = scores[:, new], scores[:, other]
        return found

    return replace(
        inputs,
        logits=swapped(inputs.logits),
        cosines=swapped(inputs.cosines),
        views={name: _new_for_other(view) for name, view in inputs.views.items()},
    )


def speak_of_nothing(tagger: ContinualTagger, sentences: tuple[Sentence, ...]) -> None:
    """Turn O's row towards every word of the sentences and all others away, so that the teacher says O."""
    network = tagger.model.network
    text = encode(sentences, tagger.model.tokenizer, max_length=tagger.model.max_length)
    features = torch.cat([out.features for _, out in outputs(network, text)])
    towards = torch.linalg.lstsq(features, torch.ones(len(features), 1), driver="gelsd").solution[:, 0]
    assert (features @ towards > 0).all(), "the words are too many or too different"
    with torch.no_grad():
        network.head.weight[0] = towards
        network.head.weight[1:] = -towards


_PREPARED: WeakKeyDictionary[Method, PreparedStep] = WeakKeyDictionary()
_prepare = training_step.prepare


def _recorded(network: Network, ctx: TrainingContext, method: Method) -> PreparedStep:
    _PREPARED[method] = _prepare(network, ctx, method)
    return _PREPARED[method]


training_step.prepare = _recorded  # to look into what training saw


def prepared_step(tagger: ContinualTagger) -> PreparedStep:
    """The step that the tagger learned last, as its training saw it."""
    return _PREPARED[tagger.method]


def weights_of(tagger: ContinualTagger) -> dict[str, Tensor]:
    return tagger.model.network.state_dict()


def assert_finite(tagger: ContinualTagger, record: StepRecord) -> None:
    for key, value in weights_of(tagger).items():
        assert torch.isfinite(value).all(), f"{key} is not finite"
    for figures in record.history:
        assert all(math.isfinite(value) for value in figures.values()), f"not finite: {figures}"


def _total(tagger: ContinualTagger, figures: Mapping[str, float]) -> float:
    return sum(term.weight * figures[term.name] for term in prepared_step(tagger).objective.terms)


def columns_of(tagger: ContinualTagger, sentences: Sequence[Sentence]) -> Tensor:
    """[N, C] what the tagger scores every word with, by TokenRef."""
    text = encode(sentences, tagger.model.tokenizer, max_length=tagger.model.max_length)
    columns = torch.empty(text.words, tagger.model.network.labels)
    for batch, out in outputs(tagger.model.network, text):
        columns[batch.refs] = out.logits
    return columns
