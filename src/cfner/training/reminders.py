"""Chooses unlabelled sentences to mix into a step, so that every old type is mentioned often enough."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from cfner.corpus.sentence import Sentence
from cfner.network.inference import predict_spans
from cfner.store.model_files import LoadedModel
from cfner.stream.manifest import sentences_hash
from cfner.stream.step import Step
from cfner.training.config import TrainingConfig

ENOUGH: Final = 30  # mentions of each old type to mix in, where the text has them
CANDIDATES: Final = 3  # sentences that the old model reads for each chosen one


@dataclass(frozen=True)
class Reminders:
    """The chosen sentences, and how often the old model finds each of its types in them."""

    sentences: tuple[Sentence, ...] = ()
    mentions: Mapping[str, int] = field(default_factory=dict)  # of each old type, also if 0

    def facts(self) -> dict[str, Any]:
        """The record, like that of other data, except that mentions are predictions, not labels."""
        return {
            "sentences": len(self.sentences),
            "hash": sentences_hash(self.sentences),
            "mentions": dict(self.mentions),
        }

    def in_words(self) -> str:
        found = [f"{type_} {count:,}" for type_, count in self.mentions.items() if count]
        absent = [type_ for type_, count in self.mentions.items() if not count]
        said = (
            f"{len(self.sentences):,} unlabelled sentences remind the model of old types. It finds in them: "
        )
        said += f"{', '.join(found) or 'nothing'}."
        return f"{said} Not mentioned: {', '.join(absent)}." if absent else said


def reminder_count(step: Step, config: TrainingConfig) -> int:
    """How many sentences to choose; all of them for a step that reads nothing else."""
    there = sum(1 for sentence in step.unlabelled if len(sentence))
    return there if not step.train else min(round(config.unlabelled_ratio * len(step.train)), there)


def reminders(model: LoadedModel, step: Step, config: TrainingConfig) -> Reminders:
    """The old model reads some of the unlabelled text and chooses: first sentences with its rarest types,
    until each is mentioned often enough, then any. The same seed chooses the same sentences.
    """
    text = tuple(sentence for sentence in step.unlabelled if len(sentence))
    size = reminder_count(step, config)
    if not size or not model.labels.types:  # a first step has no old types to rehearse
        return Reminders()
    candidates = text
    if len(text) > size:
        random = np.random.default_rng((config.seed, step.index))
        candidates = tuple(text[i] for i in random.permutation(len(text))[: CANDIDATES * size])
    found = predict_spans(
        model.network, model.encode(candidates), model.labels, batch_size=config.eval_batch_size
    )
    mentions = [Counter(span.type for span in spans) for spans in found]
    numbers = chosen(mentions, size)
    total = sum((mentions[i] for i in numbers), Counter[str]())
    old = [type_ for type_ in model.labels.types if type_ not in step.types]
    return Reminders(tuple(candidates[i] for i in numbers), {type_: total[type_] for type_ in old})


def chosen(mentions: list[Counter[str]], wanted: int, enough: int = ENOUGH) -> list[int]:
    """Indexes of the chosen candidates, in order, from the mentions of each candidate."""
    total = sum(mentions, Counter[str]())
    taken: set[int] = set()
    have: Counter[str] = Counter()
    for type_ in sorted(total, key=lambda name: (total[name], name)):
        for number, found in enumerate(mentions):
            if have[type_] >= enough or len(taken) >= wanted:
                break
            if found[type_] and number not in taken:
                taken.add(number)
                have += found
    rest = (number for number in range(len(mentions)) if number not in taken)
    while len(taken) < wanted:
        taken.add(next(rest))
    return sorted(taken)
