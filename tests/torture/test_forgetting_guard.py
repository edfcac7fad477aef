"""Steps that are made to ruin an old type are refused; ordinary ones are judged as a full test would."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cfner import learn
from cfner.corpus.corpus import Corpus
from cfner.corpus.sentence import Sentence, Span
from cfner.corpus.writers import write_sentences
from cfner.practice.history.history import rollback
from cfner.practice.learn.guard import guard
from cfner.practice.learn.learned import Learned
from cfner.stream.stream import TaskStream
from cfner.tagger import ContinualTagger
from counts import tell, times

Sentences = tuple[Sentence, ...]
OLD, NEW = ("animal", "city"), ("dish", "person")


# -- twenty ways to ruin a type ------------------------------------------------------------------------------


def _new_only(sentences: Sentences) -> Sentences:
    return tuple(s.only(NEW) for s in sentences)


def _old_called_new(*types: str) -> Callable[[Sentences], Sentences]:
    """Wrong types: mentions of old types labelled as a new one."""

    def change(sentences: Sentences) -> Sentences:
        return tuple(
            Sentence(s.words, tuple(Span(x.start, x.end, "dish") for x in s.spans if x.type in types))
            for s in sentences
        )

    return change


def _every_word(sentences: Sentences) -> Sentences:
    """Bad data: every word is a mention."""
    return tuple(Sentence(s.words, tuple(Span(i, i + 1, "dish") for i in range(len(s)))) for s in sentences)


def _whole_sentences(sentences: Sentences) -> Sentences:
    return tuple(Sentence(s.words, (Span(0, len(s), "dish"),)) for s in sentences)


def _swapped(sentences: Sentences) -> Sentences:
    """The old types' names exchanged, given as more data for both."""
    other = dict(zip(OLD, reversed(OLD), strict=True))
    return tuple(
        Sentence(s.words, tuple(Span(x.start, x.end, other[x.type]) for x in s.spans if x.type in other))
        for s in sentences
    )


def _at_random(type_: str) -> Callable[[Sentences], Sentences]:
    """More data for an old type, with mentions anywhere."""

    def change(sentences: Sentences) -> Sentences:
        draw = random.Random(0)
        places = [draw.randrange(len(s)) for s in sentences]
        return tuple(
            Sentence(s.words, (Span(i, i + 1, type_),)) for s, i in zip(sentences, places, strict=True)
        )

    return change


def _emptied(type_: str) -> Callable[[Sentences], Sentences]:
    """More data for an old type in which nearly every mention was left unlabelled."""

    def change(sentences: Sentences) -> Sentences:
        bare = tuple(Sentence(s.words) for s in sentences)
        return (next(s for s in sentences if type_ in s.types).only([type_]), *bare)

    return change


HIGH = {"lr_encoder": 0.05, "lr_head": 0.5}
FINE: dict[str, Any] = {"method": "finetune", "epochs": 6}

RUINS: dict[str, tuple[Callable[[Sentences], Sentences], dict[str, Any]]] = {
    "finetuned on new types": (_new_only, FINE),
    "finetuned, linear schedule off": (_new_only, {**FINE, "schedule": "constant"}),
    "finetuned with sgd": (_new_only, {**FINE, "optimiser": "sgd", "lr_encoder": 0.05, "lr_head": 0.05}),
    "finetuned, higher rate": (_new_only, {**FINE, "lr_encoder": 0.02}),
    "far too high a rate": (_new_only, {"epochs": 4, **HIGH}),
    "far too high a rate, no clipping": (_new_only, {"epochs": 4, "clip": None, **HIGH}),
    "far too high a rate, extendner": (_new_only, {"method": "extendner", "epochs": 4, **HIGH}),
    "far too high a rate, lucir": (_new_only, {"method": "lucir", "epochs": 4, **HIGH}),
    "far too high a rate, self-training": (_new_only, {"method": "self-training", "epochs": 4, **HIGH}),
    "far too high a rate, podnet": (_new_only, {"method": "podnet", "epochs": 4, **HIGH}),
    "animals called dishes": (_old_called_new("animal"), {"epochs": 8}),
    "cities called dishes": (_old_called_new("city"), {"epochs": 8}),
    "all old mentions called dishes": (_old_called_new(*OLD), {"epochs": 8}),
    "all old mentions called dishes, finetuned": (_old_called_new(*OLD), FINE),
    "every word a mention": (_every_word, {"epochs": 8}),
    "whole sentences a mention": (_whole_sentences, {"epochs": 8}),
    "old types exchanged": (_swapped, {"epochs": 10}),
    "animals anywhere": (_at_random("animal"), {"epochs": 10}),
    "cities anywhere": (_at_random("city"), {"epochs": 10}),
    "animals left unlabelled": (_emptied("animal"), {"epochs": 10}),
}
KINDS = times(len(RUINS), quick=len(RUINS), short=2)


@pytest.fixture(scope="module")
def one_step(two_steps: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that knows the old types."""
    model = Path(shutil.copytree(two_steps, tmp_path_factory.mktemp("old") / "model"))
    rollback(model, 1)
    shutil.rmtree(model / "steps/0002")
    return model


def _write(sentences: Sentences, path: Path) -> str:
    write_sentences(sentences, path, format="conll")
    return str(path)


def test_there_are_twenty_ways() -> None:
    assert len(RUINS) == 20


@pytest.mark.parametrize("kind", list(RUINS)[:: len(RUINS) // KINDS])
def test_a_step_that_ruins_an_old_type_is_refused(
    kind: str, one_step: Path, tiny_corpus: Corpus, tmp_path: Path
) -> None:
    change, settings = RUINS[kind]
    guarded = tuple(s.only(OLD) for s in (*tiny_corpus.dev, *tiny_corpus.test))
    learned = learn(
        one_step,
        _write(change(tiny_corpus.train), tmp_path / "new.conll"),
        out=tmp_path / "out",
        guard=_write(guarded, tmp_path / "guard.conll"),
        **{**settings, "batch_size": 8, "train_embeddings": True},
    )
    assert learned.guard is not None
    assert max(row.before.value for row in learned.guard.types) > 50, "there must be something to lose"
    assert not learned.accepted and learned.guard.lost
    assert learned.folder.name == "out.refused" and not (tmp_path / "out").exists()


# -- ordinary steps on real corpora --------------------------------------------------------------------------

ORDINARY = times(20, quick=1, short=0)
CORPORA = ("wnut17", "presidio-synth", "snips-slots", "multiconer2en")


def _verdicts(learned: Learned) -> dict[str, str]:
    assert learned.guard is not None
    return {row.type: row.verdict for row in learned.guard.types}


@pytest.mark.skipif(not os.environ.get("CFNER_DATA") or not ORDINARY, reason="needs real corpora, and time")
def test_ordinary_steps_are_judged_as_the_full_labels_would(tmp_path: Path) -> None:
    """The guard sees some labelled sentences. All the test sentences, fully labelled, must not contradict it.

    A contradiction is a type that one of the two is sure is lost and the other is sure is kept.
    """
    steps, judged, contradicted = 0, 0, []
    for number in range(ORDINARY):
        name, seed = CORPORA[number % len(CORPORA)], number // len(CORPORA)
        corpus = Corpus.read(Path(os.environ["CFNER_DATA"]) / name)
        stream = TaskStream.split(_small(corpus, seed), first=2, per_step=1, min_mentions=20, seed=seed)
        folder = tmp_path / f"{number}"
        tagger = ContinualTagger.from_pretrained(
            "minilm", epochs=4, freeze_layers=4, max_length=64, batch_size=16, seed=seed
        )
        tagger.learn(stream[0])
        tagger.save(folder / "model")
        old = stream[0].types
        test = [sentence.only(old) for sentence in corpus.test if len(sentence)]
        before = [found.spans for found in tagger.predict(test)]
        guarded = _write(tuple(test[seed::3]), folder / "guard.conll")
        method = ("cfner", "finetune")[(number + seed) % 2]  # both with each corpus
        learned = learn(
            folder / "model",
            _write(stream[1].train, folder / "new.conll"),
            out=folder / "out",
            guard=guarded,
            method=method,
            epochs=2,
        )
        after = [found.spans for found in ContinualTagger.load(learned.folder).predict(test)]
        full = {row.type: row.verdict for row in guard(test, before, after, old).types}
        for type_, verdict in _verdicts(learned).items():
            judged += 1
            if {verdict, full[type_]} == {"kept", "lost"}:
                contradicted.append((name, type_, verdict, full[type_]))
        steps += 1
        shutil.rmtree(folder)
    tell(f"{steps} ordinary steps, {judged} types judged, contradicted by the full labels: {contradicted}")
    assert not contradicted


def _small(corpus: Corpus, seed: int) -> Corpus:
    """Some 600 sentences to learn from, so that a step takes seconds."""
    every = max(1, len(corpus.train) // 600)
    test = corpus.test[:: max(1, len(corpus.test) // 300)]
    return Corpus(corpus.name, corpus.train[seed::every], corpus.dev[: len(test)], test)
