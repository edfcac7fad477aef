"""Predictions as people want them: entities with their words, characters and scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from cfner.batches.encoding import encode
from cfner.corpus.sentence import Sentence, Span
from cfner.model.inference import decode, label_ids
from cfner.model.saving import LoadedModel


@dataclass(frozen=True)
class Entity:
    """A predicted mention: words ``first`` to ``last``, characters ``start`` to ``end`` (ends excluded)."""

    type: str
    text: str
    score: float  # mean probability of its words' labels
    first: int
    last: int
    start: int | None
    end: int | None


@dataclass(frozen=True)
class Prediction:
    """A sentence and what was found in it."""

    sentence: Sentence
    entities: tuple[Entity, ...]

    @property
    def spans(self) -> tuple[Span, ...]:
        return tuple(Span(entity.first, entity.last, entity.type) for entity in self.entities)

    def to_json(self) -> dict[str, Any]:
        return {
            "text": self.sentence.text if self.sentence.text is not None else " ".join(self.sentence.words),
            "tokens": list(self.sentence.words),
            "entities": [asdict(entity) for entity in self.entities],
        }


def tag(model: LoadedModel, sentences: Sequence[Sentence], *, batch_size: int = 64) -> list[Prediction]:
    """Tag sentences: as many word predictions as there are words, however long a sentence is."""
    text = encode(sentences, model.tokenizer, max_length=model.max_length, overlap=model.overlap)
    ids, scores = label_ids(model.network, text, batch_size=batch_size)
    predictions = []
    for index, (sentence, spans) in enumerate(zip(sentences, decode(ids, text, model.labels), strict=True)):
        first = int(text.sentence_bounds[index])
        entities = tuple(
            entity_of(sentence, span, float(scores[first + span.start : first + span.end].mean()))
            for span in spans
        )
        predictions.append(Prediction(sentence, entities))
    return predictions


def entity_of(sentence: Sentence, span: Span, score: float) -> Entity:
    if sentence.text is not None and sentence.offsets is not None:
        start, end = sentence.offsets[span.start][0], sentence.offsets[span.end - 1][1]
        return Entity(span.type, sentence.text[start:end], score, span.start, span.end, start, end)
    words = " ".join(sentence.words[span.start : span.end])
    # without the original text, characters count in the words joined by single blanks
    start = sum(len(word) + 1 for word in sentence.words[: span.start])
    return Entity(span.type, words, score, span.start, span.end, start, start + len(words))
