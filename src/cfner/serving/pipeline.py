"""Tag texts of many callers in shared batches, with answers that do not depend on the other texts.

The last bits of a matrix product depend on the shape of its batch. So scores could differ in the seventh
digit from call to call, and a word with two almost equal labels could get either. Here the answer is by
definition that of each window computed *alone*, rounded to ``DIGITS``. Wherever the noise of a batch could
change it (two labels almost equal, a score near a rounding boundary, labels of words that are chosen
together), the window is computed again, alone.

With 8-bit weights or bf16 the noise of a batch is too large for that, so every window is computed alone.
These runtimes are fast enough for it.
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
from cfner.network.decoder import Decoder
from cfner.network.inference import outputs
from cfner.network.network import Network
from cfner.network.prediction import Entity, TaggingModel, entity_of

DIGITS: Final = 3
# The largest measured difference between a window alone and in a batch is 1.3e-6; NOISE is eight times that.
NOISE: Final = 1e-5
_WINDOWS_AT_A_TIME: Final = 64
Floats = npt.NDArray[np.float64]


class Pipeline:
    """A model that tags texts. ``tag`` must not run twice at the same moment.

    ``min_score``: mentions with a lower score, as rounded, are left out, and calibrated shifts are ignored.
    """

    def __init__(self, model: TaggingModel, min_score: float | None = None) -> None:
        self.model = model
        self._windows_at_a_time = _WINDOWS_AT_A_TIME if isinstance(model.network, Network) else 1
        self._min_score = 0.0 if min_score is None else min_score
        self._decoder = model.decoder(min_score=min_score)

    def tag(self, texts: Sequence[str]) -> list[tuple[Entity, ...]]:
        """The entities of each text, identical to the last digit whatever other texts are in the batch."""
        sentences = [sentence_from_characters(text, [])[0] for text in texts]
        encoded = self.model.encode(sentences)
        found = _Words(encoded, self._decoder)
        self._compute(found, np.arange(encoded.windows), self._windows_at_a_time)
        while True:  # each round makes at least one more window exact
            found.decide()
            spans = self._decoder.spans(found.ids, encoded.sentence_bounds.tolist())
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
        network = self.model.network
        limit = network.subwords_per_batch
        for batch, out in outputs(
            network, found.text, batch_size=batch_size, windows=windows, subwords=limit
        ):
            found.take(batch.windows.cpu().numpy(), batch.refs.cpu().numpy(), out.logits.cpu())


class _Words:
    """The results for each word of an encoded text, by TokenRef."""

    def __init__(self, text: EncodedText, decoder: Decoder) -> None:
        self.text, self.decoder = text, decoder
        self.bounds = text.sentence_bounds
        self.sentence_of = np.repeat(np.arange(len(self.bounds) - 1), np.diff(self.bounds))
        self.ids = torch.zeros(text.words, dtype=torch.long)
        self.scores: Floats = np.zeros(text.words)
        self.together = np.zeros(text.words, dtype=bool)
        self.undecided = np.ones(len(self.bounds) - 1, dtype=bool)  # sentences
        self.logits = torch.zeros(text.words, len(decoder.labels))
        self.margins: Floats = np.zeros(text.words)  # distance to the next label, as probability
        self.window_of = text.window_of_refs()
        self.alone = np.zeros(text.windows, dtype=bool)

    def take(self, windows: IntArray, refs: IntArray, logits: Tensor) -> None:
        """Store the results of a batch: logits [W, C] of the words ``refs`` [W]."""
        if not torch.isfinite(logits).all():
            raise ModelError(
                "The model computes scores that are not numbers.",
                remedy="Its weights are damaged: use another step or model.",
            )
        self.logits[refs] = logits.float()
        self.margins[refs] = self.decoder.margin(logits).numpy()
        self.undecided[self.sentence_of[refs]] = True
        if len(windows) == 1:
            self.alone[windows] = True

    def decide(self) -> None:
        """The label and the score of every word whose sentence has new results."""
        words = np.flatnonzero(self.undecided[self.sentence_of])
        logits = self.logits[words]
        ids, together = self.decoder.decided(logits, np.diff(self.bounds)[self.undecided].tolist())
        self.ids[words] = ids
        self.scores[words] = self.decoder.scores_of(logits, ids).double().numpy()
        # labels that were chosen together may depend on the noise of each other's words
        self.together[words] = together.numpy()
        self.undecided[:] = False

    def doubtful(self, spans: Sequence[tuple[Span, ...]]) -> IntArray:
        """Windows whose answer could change if they were computed alone."""
        unsure = (self.margins <= 2 * NOISE) | self.together
        first_words = self.text.sentence_bounds
        for sentence, marked in enumerate(spans):
            for span in marked:
                words = slice(first_words[sentence] + span.start, first_words[sentence] + span.end)
                if _near_border(float(self.scores[words].mean())):
                    unsure[words] = True
        windows: IntArray = np.unique(self.window_of[unsure])
        return windows[~self.alone[windows]]


def _near_border(score: float) -> bool:
    """Whether noise could change the rounded score."""
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
