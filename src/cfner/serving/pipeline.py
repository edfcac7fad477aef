"""Text in, entities out, for many callers at once: nobody's answer depends on whose text came along.

Texts of several callers are computed in one batch. The last bits of a matrix product depend on the shape of
its batch, so scores would differ in their seventh digit from call to call, and a word on the edge between two
labels could fall to either side. Here the answer is by definition that of each window computed *alone*,
rounded to ``DIGITS``. A batch only predicts it: wherever its noise could matter (a label on the edge, a score
next to a rounding border) the window is computed again, alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from cfner.batches.encoding import EncodedText, IntArray
from cfner.corpus.sentence import Sentence, Span
from cfner.corpus.tokenise import sentence_from_characters
from cfner.errors import ModelError
from cfner.network.inference import Decoder, outputs
from cfner.network.prediction import Entity, entity_of
from cfner.store.model_files import LoadedModel

DIGITS: Final = 3
# Between a window alone and in a batch at most 1.3e-6 was measured; eight times that is still a rare case.
NOISE: Final = 1e-5
_WINDOWS_AT_A_TIME: Final = 16
Floats = npt.NDArray[np.float64]


class Pipeline:
    """A model that tags texts. ``tag`` must not run twice at the same moment.

    ``min_score``: mentions with a lower score, as rounded, are left out, and calibrated shifts do not count.
    """

    def __init__(self, model: LoadedModel, min_score: float | None = None) -> None:
        self.model = model
        self._min_score = 0.0 if min_score is None else min_score
        self._decoder = model.decoder(min_score=min_score)

    def tag(self, texts: Sequence[str]) -> list[tuple[Entity, ...]]:
        """The entities of each text: the same, to the last digit, in whatever company the text comes."""
        sentences = [sentence_from_characters(text, [])[0] for text in texts]
        encoded = self.model.encode(sentences)
        found = _Words(encoded)
        self._compute(found, np.arange(encoded.windows), _WINDOWS_AT_A_TIME)
        while True:  # each round makes at least one more window exact
            spans = self._decoder.spans(found.ids, encoded)
            doubtful = found.doubtful(spans)
            if not len(doubtful):
                break
            self._compute(found, doubtful, 1)
        return [
            _entities(sentence, marked, found.scores[first:], self._min_score)
            for sentence, marked, first in zip(
                sentences, spans, encoded.sentence_bounds.tolist(), strict=False
            )
        ]

    def _compute(self, found: _Words, windows: IntArray, batch_size: int) -> None:
        for batch, out in outputs(self.model.network, found.text, batch_size=batch_size, windows=windows):
            found.take(batch.windows.cpu().numpy(), batch.refs.cpu().numpy(), out.logits.cpu(), self._decoder)


class _Words:
    """What is known of each word of an encoded text, by TokenRef."""

    def __init__(self, text: EncodedText) -> None:
        self.text = text
        self.ids = torch.zeros(text.words, dtype=torch.long)
        self.scores: Floats = np.zeros(text.words)
        self.margins: Floats = np.zeros(text.words)  # how far from another label, as probability
        self.window_of = text.window_of_refs()
        self.alone = np.zeros(text.windows, dtype=bool)

    def take(self, windows: IntArray, refs: IntArray, logits: Tensor, decoder: Decoder) -> None:
        """Keep what a batch says: logits [W, C] of the words ``refs`` [W]."""
        if not torch.isfinite(logits).all():
            raise ModelError(
                "The model gives scores that are not numbers.",
                remedy="Its weights are damaged: load another.",
            )
        ids, scores = decoder.best(logits)
        self.ids[refs] = ids
        self.scores[refs] = scores.double().numpy()
        self.margins[refs] = decoder.margin(logits).numpy()
        if len(windows) == 1:
            self.alone[windows] = True

    def doubtful(self, spans: Sequence[tuple[Span, ...]]) -> IntArray:
        """Windows from a batch whose answer could be another one if they were computed alone."""
        unsure = self.margins <= 2 * NOISE
        first_words = self.text.sentence_bounds
        for sentence, marked in enumerate(spans):
            for span in marked:
                words = slice(first_words[sentence] + span.start, first_words[sentence] + span.end)
                if _near_border(float(self.scores[words].mean())):
                    unsure[words] = True
        windows: IntArray = np.unique(self.window_of[unsure])
        return windows[~self.alone[windows]]


def _near_border(score: float) -> bool:
    """Whether noise could round the score to another number."""
    scaled = score * 10**DIGITS + 0.5
    return abs(scaled - round(scaled)) <= NOISE * 10**DIGITS


def _entities(
    sentence: Sentence, spans: Iterable[Span], scores: Floats, min_score: float
) -> tuple[Entity, ...]:
    found = (
        entity_of(sentence, span, round(float(scores[span.start : span.end].mean()), DIGITS))
        for span in spans
    )
    return tuple(entity for entity in found if entity.score >= min_score)
