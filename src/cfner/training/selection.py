"""Which epoch to keep.

The paper's rule is the new types' F1 on the step's dev data (``new``). It does not measure forgetting, and
even rewards it: a student that forgets the old types has the easier task. The other rule (``new+old``) also
measures how far the student still agrees with the old model on the old types of the same text.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from cfner.batches.step_data import StepData
from cfner.corpus.sentence import Span
from cfner.evaluation.metrics import score
from cfner.network.inference import predict_spans
from cfner.network.network import Network
from cfner.stream.labels import LabelSpace

Spans = Sequence[Sequence[Span]]


class EpochChoice:
    """Scores the network after each epoch. Made before the step: ``old`` is what the old model finds."""

    def __init__(
        self,
        dev: StepData,
        labels: LabelSpace,
        current: Collection[str],
        *,
        batch_size: int,
        old: Spans | None = None,
    ) -> None:
        self.dev, self.labels, self.current = dev, labels, current
        self.batch_size = batch_size
        self.gold = [sentence.spans for sentence in dev.sentences]
        self.old = None if old is None else self._of_old_types(old)

    def __call__(self, network: Network) -> dict[str, float]:
        """``dev_f1`` and, if the old model found anything, ``dev_agreement``; the largest ``dev_choice``
        wins.
        """
        predicted = predict_spans(network, self.dev.text, self.labels, batch_size=self.batch_size)
        f1 = new_types_f1(self.gold, predicted, self.current)
        if self.old is None or not any(self.old):
            return {"dev_f1": f1, "dev_choice": f1}
        agreement = score(self.old, self._of_old_types(predicted)).micro_f1
        return {"dev_f1": f1, "dev_agreement": agreement, "dev_choice": harmonic(f1, agreement)}

    def _of_old_types(self, spans: Spans) -> Spans:
        """Without types of this step and mentions that overlap them: there the new data takes precedence."""
        return [
            [s for s in found if s.type not in self.current and not any(s.overlaps(g) for g in gold)]
            for found, gold in zip(spans, self.gold, strict=True)
        ]


def new_types_f1(
    gold: Sequence[Collection[Span]], predicted: Sequence[Collection[Span]], current: Collection[str]
) -> float:
    """Micro-F1 of the types that the dev labels can contain.

    Old entities are not labelled in the dev data, so a prediction of any other type is neither right nor
    wrong and is ignored. For choosing an epoch only: test scores ignore nothing.
    """
    visible = [[span for span in spans if span.type in current] for spans in predicted]
    return score(gold, visible, current).micro_f1


def harmonic(a: float, b: float) -> float:
    """The harmonic mean: high only if both are."""
    return 2 * a * b / (a + b) if a + b else 0.0
