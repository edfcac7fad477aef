"""Features of words of a few types: the points of a t-SNE picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from cfner.corpus.sentence import Sentence, mention_counts
from cfner.network.inference import outputs
from cfner.tagger import ContinualTagger

TYPES: Final = 6  # as in the paper's picture
WORDS_PER_TYPE: Final = 100


def word_features(tagger: ContinualTagger, sentences: Sequence[Sentence]) -> dict[str, Any]:
    """Features of the first words of each of the most frequent types (ties: by name), up to a number each.

    The same words for every model on the same sentences.
    """
    kept = [sentence for sentence in sentences if len(sentence)]
    mentions = mention_counts(kept)
    types = sorted(sorted(mentions), key=lambda type_: -mentions[type_])[:TYPES]
    room = dict.fromkeys(types, WORDS_PER_TYPE)
    chosen: dict[int, int] = {}  # index of a word -> number of its type
    start = 0
    for sentence in kept:
        for span in sentence.spans:
            for word in range(span.start, span.end):
                if room.get(span.type, 0) > 0:
                    room[span.type] -= 1
                    chosen[start + word] = types.index(span.type)
        start += len(sentence)
    model = tagger.model
    text = model.encode(kept)
    features: dict[int, Any] = {}
    for batch, out in outputs(model.network, text, batch_size=tagger.config.eval_batch_size):
        for place, ref in enumerate(batch.refs.tolist()):
            if ref in chosen:
                features[ref] = out.features[place].float().cpu().numpy()
    refs = sorted(features)
    width = model.network.head.hidden
    table = np.stack([features[ref] for ref in refs]) if refs else np.zeros((0, width))
    return {
        "features": table.astype(np.float32),
        "type": np.array([chosen[ref] for ref in refs], dtype=np.int32),
        "types": np.array(types),
    }
