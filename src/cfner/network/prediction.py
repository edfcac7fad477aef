"""Predictions: entities with their words, character offsets and scores."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from cfner.batches.encoding import EncodedText, encode
from cfner.corpus.sentence import Sentence, Span
from cfner.files.html import notebook, notebook_mark, text
from cfner.network.calibration import Calibration
from cfner.network.decoder import Decoder
from cfner.network.inference import WordScorer, label_words
from cfner.stream.labels import LabelSpace

_SENTENCES_AT_A_TIME = 512
_WORDS_AT_A_TIME = 20_000
_SHOWN = 5_000  # characters of a text shown in a notebook
GIVEN_ENTITIES = "entities_given"  # entities that a JSON line had before prediction


@dataclass(frozen=True)
class TaggingModel:
    """Scores words, with its tokenizer and labels: a network in torch, or in ONNX."""

    network: WordScorer
    tokenizer: Any
    labels: LabelSpace
    max_length: int
    encoder: str
    overlap: int | None
    calibration: Calibration | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.encoder}; types: {', '.join(self.labels.types)})"

    def decoder(self, *, min_score: float | None = None) -> Decoder:
        """Turns its scores into labels. A ``min_score`` of the caller replaces the calibrated shifts."""
        calibration = self.calibration
        if calibration is not None and min_score is not None:
            calibration = calibration.unshifted()
        return Decoder(self.labels, calibration, self.network.ranks)

    def encode(self, sentences: Sequence[Sentence]) -> EncodedText:
        """Sentences as the encoder reads them: subwords in windows."""
        return encode(sentences, self.tokenizer, max_length=self.max_length, overlap=self.overlap)


@dataclass(frozen=True)
class Entity:
    """A predicted mention: words ``first`` to ``last``, characters ``start`` to ``end`` (ends excluded).

    ``score`` is the probability of its type, averaged over its words: for each word the probabilities of all
    labels of the type together, so that doubt between ``B-`` and ``I-`` does not look like doubt about the
    type. After ``calibrate`` it is the estimated share of mentions with this score that are right, measured
    on held-out data.
    """

    type: str
    text: str
    score: float
    first: int
    last: int
    start: int | None
    end: int | None


@dataclass(frozen=True)
class Prediction:
    """A sentence and the entities found in it."""

    sentence: Sentence
    entities: tuple[Entity, ...]

    def __repr__(self) -> str:
        found = ", ".join(f"{e.type} {e.text!r} {e.score:.2f}" for e in self.entities) or "no entities"
        return f"Prediction({self.text!r}: {found})"

    @property
    def text(self) -> str:
        """The text as given; for words without a text, the words joined by spaces."""
        return self.sentence.text if self.sentence.text is not None else " ".join(self.sentence.words)

    @property
    def spans(self) -> tuple[Span, ...]:
        return tuple(Span(entity.first, entity.last, entity.type) for entity in self.entities)

    def _repr_html_(self) -> str:
        """The view in a notebook: the text with its mentions marked."""
        sentence = self.sentence
        source = sentence.text if sentence.text is not None else " ".join(sentence.words)
        parts, at = [], 0
        for entity in self.entities:
            start, end = entity.start or 0, entity.end or 0
            if end > _SHOWN:
                break
            parts.append(text(source[at:start]))
            parts.append(notebook_mark(source[start:end], entity.type, f"{entity.score:.2f}"))
            at = end
        until = max(at, _SHOWN)
        parts.append(text(source[at:until]))
        if more := len(source) - min(until, len(source)):
            parts.append(f" … {more:,} more characters")
        return notebook(
            f'<div dir="auto" style="line-height:2.1;overflow-wrap:anywhere">{"".join(parts)}</div>'
        )

    def to_json(self) -> dict[str, Any]:
        """Text, words and entities. Fields of the JSON line that the text came from are copied."""
        found = {
            "text": self.text,
            "tokens": list(self.sentence.words),
            "entities": [asdict(entity) for entity in self.entities],
        }
        record = self.sentence.record or {}
        given = {name: value for name, value in record.items() if name not in found}
        if "entities" in record:
            given[GIVEN_ENTITIES] = record["entities"]
        return given | found


def tag(
    model: TaggingModel,
    sentences: Sequence[Sentence],
    *,
    min_score: float | None = None,
    batch_size: int = 64,
) -> list[Prediction]:
    """Tag sentences: one label per word, however long a sentence is.

    A word's label is that of its first subword. ``min_score``: mentions with a lower score are left out, and
    calibrated shifts are not used.
    """
    text = model.encode(sentences)
    decoder = model.decoder(min_score=min_score)
    ids, scores = label_words(model.network, text, decoder, batch_size=batch_size)
    spans_of = decoder.spans(ids, text.sentence_bounds.tolist())
    predictions = []
    for index, (sentence, spans) in enumerate(zip(sentences, spans_of, strict=True)):
        first = int(text.sentence_bounds[index])
        starts = _joined_starts(sentence) if spans and sentence.text is None else None
        entities = (
            entity_of(sentence, span, float(scores[first + span.start : first + span.end].mean()), starts)
            for span in spans
        )
        kept = tuple(entity for entity in entities if min_score is None or entity.score >= min_score)
        predictions.append(Prediction(sentence, kept))
    return predictions


def tag_stream(
    model: TaggingModel,
    sentences: Iterable[Sentence],
    *,
    min_score: float | None = None,
    batch_size: int = 64,
) -> Iterator[Prediction]:
    """Tag any number of sentences in order, holding a few hundred at a time."""
    held: list[Sentence] = []
    words = 0
    for sentence in sentences:
        held.append(sentence)
        words += len(sentence)
        if len(held) >= _SENTENCES_AT_A_TIME or words >= _WORDS_AT_A_TIME:
            yield from tag(model, held, min_score=min_score, batch_size=batch_size)
            held, words = [], 0
    if held:
        yield from tag(model, held, min_score=min_score, batch_size=batch_size)


def entity_of(sentence: Sentence, span: Span, score: float, starts: Sequence[int] | None = None) -> Entity:
    """A span of a sentence as an entity. ``starts``: those of its words, computed once for many spans."""
    if sentence.text is not None and sentence.offsets is not None:
        start, end = sentence.offsets[span.start][0], sentence.offsets[span.end - 1][1]
        return Entity(span.type, sentence.text[start:end], score, span.start, span.end, start, end)
    words = " ".join(sentence.words[span.start : span.end])
    start = (_joined_starts(sentence) if starts is None else starts)[span.start]
    return Entity(span.type, words, score, span.start, span.end, start, start + len(words))


def _joined_starts(sentence: Sentence) -> list[int]:
    """Where each word begins. Without the original text, offsets are in the words joined by spaces."""
    return [0, *itertools.accumulate(len(word) + 1 for word in sentence.words)]
