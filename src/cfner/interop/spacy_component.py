"""A spaCy component: ``nlp.add_pipe("cfner", config={"model": "my-model"})`` sets ``doc.ents``.

It uses spaCy's own tokens. It tags sentence by sentence if the document has sentences, otherwise the complete
document, of any length. Scores are in ``doc.spans["cfner"].attrs["scores"]``, one per span of that group. The
model is loaded on first use. ``nlp.to_disk`` stores a copy of it, so that a saved pipeline works elsewhere.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc, SpanGroup
from spacy.tokens import Span as DocSpan
from spacy.util import minibatch

from cfner.corpus.sentence import Sentence
from cfner.errors import ModelError
from cfner.files.atomic import atomic_folder
from cfner.interop.export import open_for_prediction
from cfner.network.prediction import Entity, TaggingModel, tag
from cfner.store.model_files import LoadedModel, write_model
from cfner.store.model_folder import ModelFolder

_COPY = "model"


@dataclass(eq=False)
class CfnerComponent:
    """Finds entities in documents. Created by ``nlp.add_pipe("cfner", config=...)``."""

    name: str
    source: str | Path | None
    step: int | None = None
    batch_size: int = 32
    overwrite_ents: bool = False
    spans_key: str = "cfner"
    device: str = "auto"
    _model: TaggingModel | None = field(default=None, init=False, repr=False)

    def loaded(self) -> TaggingModel:
        """The model, loaded on first use. (Not a property, because spaCy reads all properties.)"""
        if self._model is None:
            if self.source is None:
                raise ModelError(
                    f"The component '{self.name}' has no model.",
                    remedy='Name one: nlp.add_pipe("cfner", config={"model": "my-model"}).',
                )
            self._model = open_for_prediction(self.source, self.step, device=self.device)
        return self._model

    @property
    def labels(self) -> tuple[str, ...]:
        """The entity types, under the name that spaCy's components use; empty before the model is loaded.

        spaCy reads them while it loads a pipeline, when the model may not be there yet.
        """
        return () if self._model is None else self._model.labels.types

    def __call__(self, doc: Doc) -> Doc:
        self._annotate([doc])
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Documents in order, ``batch_size`` tagged together."""
        for docs in minibatch(stream, size=batch_size):
            held = list(docs)
            self._annotate(
                list({id(doc): doc for doc in held}.values())
            )  # a document may occur several times
            yield from held

    def _annotate(self, docs: list[Doc]) -> None:
        """``docs`` are different objects."""
        pieces = [(doc, piece) for doc in docs for piece in _pieces(doc)]
        sentences = [_sentence(doc, tokens) for doc, tokens in pieces]
        found: dict[int, list[tuple[DocSpan, float]]] = {id(doc): [] for doc in docs}
        predictions = tag(self.loaded(), sentences, batch_size=self.batch_size)
        for (doc, tokens), prediction in zip(pieces, predictions, strict=True):
            found[id(doc)] += [(_span(doc, tokens, entity), entity.score) for entity in prediction.entities]
        for doc in docs:
            self._set(doc, found[id(doc)])

    def _set(self, doc: Doc, found: list[tuple[DocSpan, float]]) -> None:
        """Entities of this component and of earlier ones; where they overlap, ``overwrite_ents`` decides."""
        ours, theirs = [span for span, _ in found], list(doc.ents)
        scores = {"scores": [score for _, score in found]}
        doc.spans[self.spans_key] = SpanGroup(doc, name=self.spans_key, spans=ours, attrs=scores)
        winners, others = (ours, theirs) if self.overwrite_ents else (theirs, ours)
        taken = {token.i for span in winners for token in span}
        kept = [span for span in others if not any(token.i in taken for token in span)]
        doc.set_ents(sorted([*winners, *kept], key=lambda span: span.start), default="outside")

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Store a copy of the model: weights, tokenizer and labels of the one step in use."""
        model = self.loaded()  # before replacing anything: the model may be in that folder
        with atomic_folder(Path(path) / _COPY, refuse=lambda _: None) as fresh:
            if isinstance(model, LoadedModel):
                ModelFolder(fresh).add(lambda folder: write_model(folder, model))
            else:
                shutil.copytree(str(self.source), fresh, dirs_exist_ok=True)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> CfnerComponent:
        """Use the stored copy from now on, wherever the original was."""
        self.source, self.step, self._model = Path(path) / _COPY, None, None
        return self


def create_component(
    nlp: Language,
    name: str,
    model: str | None,
    step: int | None,
    batch_size: int,
    overwrite_ents: bool,
    spans_key: str,
    device: str,
) -> CfnerComponent:
    """The factory that spaCy calls. ``model``: any model that ``predict`` takes."""
    return CfnerComponent(name, model, step, batch_size, overwrite_ents, spans_key, device)


def _pieces(doc: Doc) -> list[list[Any]]:
    """The tokens of each sentence, without whitespace tokens."""
    spans = doc.sents if doc.has_annotation("SENT_START") else [doc]
    tokens = ([token for token in span if token.text.strip()] for span in spans)
    return [piece for piece in tokens if piece]


def _sentence(doc: Doc, tokens: list[Any]) -> Sentence:
    offsets = tuple((token.idx, token.idx + len(token.text)) for token in tokens)
    return Sentence(tuple(token.text for token in tokens), text=doc.text, offsets=offsets)


def _span(doc: Doc, tokens: list[Any], entity: Entity) -> DocSpan:
    return DocSpan(doc, tokens[entity.first].i, tokens[entity.last - 1].i + 1, label=entity.type)


Language.factory(
    "cfner",
    assigns=["doc.ents", "doc.spans", "token.ent_iob", "token.ent_type"],
    default_config={
        "model": None,
        "step": None,
        "batch_size": 32,
        "overwrite_ents": False,
        "spans_key": "cfner",
        "device": "auto",
    },
    func=create_component,
)
