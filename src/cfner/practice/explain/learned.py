"""Rebuild the training data of a step of ``learn`` from the same files, and verify it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cfner.corpus.corpus import Corpus, sentences_of
from cfner.corpus.in_memory import Data
from cfner.corpus.sentence import Sentence
from cfner.errors import StreamError
from cfner.practice.learn.new_data import NewData, replayed_sentences
from cfner.practice.learn.unlabelled import Given, UnlabelledText, read_unlabelled
from cfner.store.lineage import LineageStep
from cfner.stream.manifest import sentences_hash
from cfner.stream.step import Step

_ALSO = {"replay": "old sentences (`replay`)", "unlabelled": "unlabelled sentences (`unlabelled`)"}


@dataclass(frozen=True)
class GivenToLearn:
    """The inputs of ``learn`` besides the new data."""

    dev_share: float = 0.15
    replay: Data | None = None
    unlabelled: Sequence[Given] = ()
    guard: Data | None = None  # its sentences are excluded from training


def learned_step(learned: LineageStep, corpus: Corpus, given: GivenToLearn) -> Step:
    """The step as it was trained; an error if it was trained on different sentences."""
    new_data = _new_data(learned, corpus, given.dev_share)
    known = tuple(type_ for type_ in learned.record["known"] if type_ not in learned.types)
    step = Step(
        types=learned.types,
        train=new_data.train,
        known=known,
        index=learned.record.get("index", 1),
        name=learned.name,
        replay=_replayed(given.replay, known),
        unlabelled=_pool(learned, new_data, given),
    )
    for part, what in _ALSO.items():
        recorded, here = learned.record["data"].get(part), step.data.get(part)
        if recorded is None and here is not None:
            raise _other(learned, f"it was trained without {what}.", "Leave them out.")
        if recorded is not None and here is None:
            count = f"{recorded['sentences']:,}"
            raise _other(learned, f"it was trained on {count} {what} too.", "Give them as in training.")
        if recorded is not None and here is not None and recorded["hash"] != here["hash"]:
            remedy = "Give `replay`, `unlabelled`, `guard` and `dev_share` as in training."
            raise _other(learned, f"it was trained on {recorded['sentences']:,} different {what}.", remedy)
    return step


def _new_data(learned: LineageStep, corpus: Corpus, dev_share: float) -> NewData:
    """The new data, with a share held out or without; the record decides which."""
    recorded = learned.record["data"]["train"]
    for share in (dev_share, 0.0):
        new_data = NewData.of(corpus, share).only(learned.types)
        if sentences_hash(new_data.train) == recorded["hash"]:
            return new_data
    raise _other(
        learned,
        f"'{corpus.name}' does not contain the {recorded['sentences']:,} sentences that it was trained on.",
        "Give the same data, read with the same `every`, `format`, `tag_column` and `dev_share`.",
    )


def _replayed(given: Data | None, known: Sequence[str]) -> tuple[Sentence, ...]:
    return () if given is None else replayed_sentences(sentences_of(given, "train")[0], known, given)


def _pool(learned: LineageStep, new_data: NewData, given: GivenToLearn) -> tuple[Sentence, ...]:
    if not learned.record["config"].get("unlabelled_ratio", 1.0):  # it was only used for comparison
        return ()
    guarded = () if given.guard is None else sentences_of(given.guard, "test")[0]
    judging = (*new_data.dev, *new_data.test, *guarded)
    return UnlabelledText.divide(read_unlabelled(given.unlabelled), new_data.train, judging).pool


def _other(learned: LineageStep, why: str, remedy: str) -> StreamError:
    return StreamError(
        f"This is not the training data of step {learned.number} ('{learned.name}'): {why}",
        where=str(learned.stored.folder),
        remedy=remedy,
    )
