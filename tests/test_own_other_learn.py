"""``learn`` with own Others: third-party checkpoints, more data, old labels, replayed sentences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from cfner import learn
from cfner.batches.loader import inference_batches
from cfner.batches.step_data import IGNORE
from cfner.corpus.corpus import Corpus
from cfner.corpus.sentence import Sentence
from cfner.corpus.writers import write_sentences
from cfner.errors import ConfigError
from cfner.interop.export import export_model
from cfner.methods import KEEP, REST
from cfner.practice.history.history import history
from cfner.stream.step import Step
from cfner.stream.stream import TaskStream
from cfner.tagger import ContinualTagger
from cfner.training.preparation import prepare
from cfner.training.prepared_step import PreparedStep
from cfner.training.step import prepared_step, step_context
from strangers import ORDERS, make_checkpoint

OLD, NEW = ("animal", "city"), ("dish", "person")
# the tiny encoder is not pretrained: with the usual rates it learns nothing in a few epochs
SETTINGS: dict[str, Any] = {"method": "own-other", "epochs": 4, "lr_encoder": 5e-3, "train_embeddings": True}


@pytest.fixture(scope="module")
def models(
    tiny_settings: dict[str, Any], tiny_stream: TaskStream, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """Two models that know animal and city: a stock checkpoint with a linear head, in which they share O, and
    a folder in which each has an Other of its own.
    """
    folder = tmp_path_factory.mktemp("models")
    stock = ContinualTagger.from_pretrained(
        **{**tiny_settings, "head": "linear", "epochs": 30, "lr_head": 1e-2}
    )
    stock.learn(tiny_stream[0])
    stock.save(folder / "linear")
    export_model(folder / "linear", folder / "stock", "hf")
    own = ContinualTagger.from_pretrained(**{**tiny_settings, "method": "own-other", "epochs": 30})
    own.learn(tiny_stream[0])
    own.save(folder / "own")
    return {"stock": folder / "stock", "own": folder / "own"}


def written(path: Path, sentences: tuple[Sentence, ...], *types: str) -> str:
    write_sentences([s.only(types) for s in sentences], path, format="conll")
    return str(path)


def f1(model: Path, corpus: Corpus, *types: str) -> dict[str, float]:
    tagger = ContinualTagger.open(model)
    scores = tagger.evaluate([s.only(tagger.types) for s in corpus.test])
    return {type_: scores.f1_of[type_] for type_ in types}


# -- before training ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "order"), [("bert", "BIO"), ("bert", "odd"), ("roberta", "BIOES"), ("distilbert", "IOB1")]
)
@pytest.mark.parametrize("types", [("dish", "person"), ("city", "dish")])
def test_a_grown_checkpoint_says_of_old_labels_what_it_said(
    types: tuple[str, ...], family: str, order: str, tmp_path: Path, tiny_corpus: Corpus
) -> None:
    """Bit for bit, with its own Others and all that the method does before the first batch."""
    from transformers import AutoModelForTokenClassification

    folder = make_checkpoint(tmp_path / "theirs", family, ORDERS[order])
    stock = AutoModelForTokenClassification.from_pretrained(folder).eval()
    tagger = ContinualTagger.open(folder, method="own-other")
    known = tuple(t for t in tagger.types if t not in types)
    step = Step(
        types=types,
        train=tuple(s.only(types) for s in tiny_corpus.train),
        known=known,
        index=1,
        unlabelled=tuple(s.only(()) for s in tiny_corpus.dev),
    )
    labels = tagger.model.labels.grown(types, tagger.method.grouping)
    ctx = step_context(tagger.model, step, labels, tagger.method, tagger.config)
    network = tagger.model.network
    prepare(network, ctx, tagger.method)
    theirs = len(ORDERS[order])
    assert network.head.labels == len(labels) > theirs
    assert set(labels.group_of[:theirs]) == {0} and set(labels.group_of[theirs:]) != {0}
    with torch.no_grad():
        for batch in inference_batches(ctx.data.text, batch_size=16):
            said = stock(input_ids=batch.input_ids, attention_mask=batch.attention_mask).logits
            assert torch.equal(network(batch).logits[:, :theirs], said[batch.rows, batch.positions])


# -- what replayed and partly annotated words teach --------------------------------------------------------


def prepared(model: Path, step: Step, **parameters: Any) -> tuple[PreparedStep, ContinualTagger]:
    tagger = ContinualTagger.open(model, method="own-other", parameters=parameters)
    labels = tagger.model.labels.grown(step.types, tagger.method.grouping)
    return prepared_step(tagger.model, step, labels, tagger.method, tagger.config), tagger


def taught(step: PreparedStep) -> tuple[Tensor, Tensor, Tensor]:
    assert step.targets.groups is not None and step.groups is not None
    return step.targets.groups, step.data.slice_of, step.data.gold


def test_what_replayed_words_teach(models: dict[str, Path], tiny_corpus: Corpus) -> None:
    """A labelled word teaches its group, other old groups keep, new groups learn sure negatives alone."""
    step = Step(
        types=("dish",),
        train=tuple(s.only(["dish"]) for s in tiny_corpus.train),
        known=OLD,
        index=1,
        replay=tuple(s.only(["city"]) for s in tiny_corpus.dev),
    )
    ready, tagger = prepared(models["own"], step, sure=0.8, refines=1.0)
    targets, slice_of, gold = taught(ready)
    labels = tagger.model.labels.grown(("dish",), "type")
    column = {labels.types_of_groups[number]: at for at, number in enumerate(ready.groups.numbers)}  # type: ignore[union-attr]
    animal, city, dish = (column[frozenset([type_])] for type_ in ("animal", "city", "dish"))
    replayed = slice_of == 1
    is_city = replayed & torch.isin(gold, torch.tensor(labels.ids_of(["city"])))
    assert is_city.any() and bool((targets[is_city, city] > 0).all())
    assert bool((targets[replayed & ~is_city, city] == KEEP).all())
    assert bool((targets[replayed, animal] == KEEP).all())
    assert set(targets[replayed, dish].tolist()) <= {IGNORE, 0}
    assert bool((targets[slice_of == 0, dish] >= 0).all())
    unsure, _ = prepared(models["own"], step, sure=1.0)
    assert set(taught(unsure)[0][replayed, dish].tolist()) == {IGNORE}


def test_more_data_for_one_type_of_a_checkpoint_is_partial_annotation(
    models: dict[str, Path], tiny_corpus: Corpus
) -> None:
    step = Step(
        types=("city",), train=tuple(s.only(["city"]) for s in tiny_corpus.train), known=("animal",), index=1
    )
    targets, _, gold = taught(prepared(models["stock"], step)[0])
    assert targets.shape[1] == 1  # one group, with the O that it came with
    labelled = gold != 0
    assert bool((targets[labelled] > 0).all()) and bool((targets[~labelled] == REST).all())


# -- end to end --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["stock", "own"])
def test_more_data_for_a_known_type(
    model: str, models: dict[str, Path], tiny_corpus: Corpus, tmp_path: Path
) -> None:
    before = f1(models[model], tiny_corpus, *OLD)
    done = learn(
        models[model],
        written(tmp_path / "more.conll", tiny_corpus.train, "city"),
        out=tmp_path / "m2",
        folds=0,
        **(SETTINGS | {"lr_encoder": 1e-3}),
    )
    assert (done.plan.new, done.plan.more) == ((), ("city",))
    old, new = ContinualTagger.open(models[model]), ContinualTagger.load(tmp_path / "m2")
    assert new.model.labels == old.model.labels
    after = f1(tmp_path / "m2", tiny_corpus, *OLD)
    assert all(after[type_] >= before[type_] - 10 for type_ in OLD), (before, after)


@pytest.mark.parametrize("model", ["stock", "own"])
def test_new_types_beside_replayed_old_sentences_and_unlabelled_text(
    model: str, models: dict[str, Path], tiny_corpus: Corpus, tmp_path: Path
) -> None:
    before = f1(models[model], tiny_corpus, *OLD)
    done = learn(
        models[model],
        written(tmp_path / "new.conll", tiny_corpus.train, *NEW),
        out=tmp_path / "m2",
        folds=0,
        replay=written(tmp_path / "replay.conll", tiny_corpus.dev, "city"),
        guard=written(tmp_path / "old.conll", tiny_corpus.test, *OLD),
        max_forgetting=100,
        unlabelled=[" ".join((*s.words, "today")) for s in tiny_corpus.dev],
        **(SETTINGS | {"epochs": 16, "lr_head": 1e-2}),
    )
    assert done.guard is not None and done.reminders is not None and "measured" in done.promise
    labels = ContinualTagger.load(tmp_path / "m2").model.labels
    assert len({labels.group_of_type(type_) for type_ in NEW} | {0}) == 3
    after = f1(tmp_path / "m2", tiny_corpus, *OLD, *NEW)
    assert all(after[type_] >= before[type_] - 20 for type_ in OLD)
    assert all(after[type_] > 20 for type_ in NEW), (before, after)
    assert history(tmp_path / "m2")[-1].method == "own-other"


@pytest.mark.parametrize("model", ["stock", "own"])
@pytest.mark.parametrize("old_labels", ["use", "ignore"])
def test_old_labels_beside_new_ones(
    old_labels: str, model: str, models: dict[str, Path], tiny_corpus: Corpus, tmp_path: Path
) -> None:
    data = written(tmp_path / "both.conll", tiny_corpus.train, "city", "dish")
    before = f1(models[model], tiny_corpus, *OLD)
    done = learn(models[model], data, out=tmp_path / "m2", old_labels=old_labels, folds=0, **SETTINGS)
    assert done.plan.more == (("city",) if old_labels == "use" else ())
    after = f1(tmp_path / "m2", tiny_corpus, *OLD)
    assert all(after[type_] >= before[type_] - 20 for type_ in OLD)


def test_one_softmax_cannot_go_on_from_many(
    models: dict[str, Path], tiny_corpus: Corpus, tmp_path: Path
) -> None:
    data = written(tmp_path / "new.conll", tiny_corpus.train, "dish")
    with pytest.raises(ConfigError, match="own-other"):
        learn(models["own"], data, out=tmp_path / "m2", method="cfner", epochs=1)
    assert not list(tmp_path.glob("m2*"))


def test_old_rows_do_not_move_when_one_type_of_a_checkpoint_gets_more_data(
    models: dict[str, Path], tiny_corpus: Corpus
) -> None:
    """Nor does O's, which it shares with a type that is not annotated."""
    tagger = ContinualTagger.open(models["stock"], **SETTINGS)
    before = tagger.model.network.head.weight.detach().clone()
    labels = tagger.model.labels
    city = tuple(s.only(["city"]) for s in tiny_corpus.train)
    tagger.learn(Step(types=("city",), train=city, known=("animal",), index=1))
    after = tagger.model.network.head.weight.detach()
    fixed = [labels.other_id, *labels.ids_of(["animal"])]
    assert torch.equal(before[fixed], after[fixed])
    assert not torch.equal(before[labels.ids_of(["city"])], after[labels.ids_of(["city"])])
