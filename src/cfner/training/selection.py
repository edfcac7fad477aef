"""Which epoch to keep: the paper's rule, the new types' F1 on the step's dev data."""

from __future__ import annotations

from collections.abc import Collection

from cfner.evaluation.metrics import score
from cfner.model.inference import predict_spans
from cfner.model.network import Network
from cfner.stream.labels import LabelSpace
from cfner.training.preparation import StepData


def dev_f1(
    network: Network, dev: StepData, labels: LabelSpace, types: Collection[str], *, batch_size: int
) -> float:
    """Micro-F1 of the types that the dev labels can contain.

    The dev data hides its old entities, so a prediction of any other type is neither right nor wrong and
    is set aside. For choosing an epoch only: when testing, nothing is set aside.
    """
    predicted = predict_spans(network, dev.text, labels, batch_size=batch_size)
    visible = [[span for span in spans if span.type in types] for spans in predicted]
    return score([sentence.spans for sentence in dev.sentences], visible, types).micro_f1
