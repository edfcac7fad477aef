"""Which sentences of unlabelled text a step is mixed with: such that every old type is mentioned enough."""

from __future__ import annotations

from collections import Counter
from typing import Final

import numpy as np

from cfner.corpus.sentence import Sentence
from cfner.network.inference import predict_spans
from cfner.store.model_files import LoadedModel
from cfner.stream.stream import Step
from cfner.training.config import TrainingConfig

ENOUGH: Final = 30  # mentions of an old type that a step is reminded of, where the text has them
_CANDIDATES: Final = 3  # sentences that the old model reads for each one that is taken


def reminders(model: LoadedModel, step: Step, config: TrainingConfig) -> tuple[Sentence, ...]:
    """The old model reads some of the unlabelled text and chooses: first sentences with the types that it
    finds least often, until each is mentioned enough, then any. The same seed chooses the same sentences.
    """
    text = tuple(sentence for sentence in step.unlabelled if len(sentence))
    wanted = round(config.unlabelled_ratio * len(step.train))
    if not wanted or len(text) <= wanted:
        return text[:wanted]
    random = np.random.default_rng((config.seed, step.index))
    order = random.permutation(len(text))[: _CANDIDATES * wanted]
    candidates = [text[i] for i in order]
    found = predict_spans(
        model.network, model.encode(candidates), model.labels, batch_size=config.eval_batch_size
    )
    mentions = [Counter(span.type for span in spans) for spans in found]
    return tuple(candidates[i] for i in chosen(mentions, wanted))


def chosen(mentions: list[Counter[str]], wanted: int, enough: int = ENOUGH) -> list[int]:
    """Which of the candidates, by what is mentioned in each, in their order."""
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
