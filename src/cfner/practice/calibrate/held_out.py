"""Held-out sentences with their logits: computed once, decoded again for every candidate calibration."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from cfner.corpus.sentence import Sentence, Span
from cfner.network.calibration import Calibration
from cfner.network.decoder import Decoder
from cfner.network.inference import outputs
from cfner.network.prediction import TaggingModel
from cfner.stream.labels import LabelSpace


@dataclass(frozen=True)
class Found:
    """A mention that was found: its sentence, its score, and whether its words and type are right."""

    sentence: int
    type: str
    score: float
    right: bool


class MentionWords(NamedTuple):
    """``columns`` [W, C] and labels [W] of words, the mention that each belongs to [W], which mentions are
    right [M].
    """

    columns: Tensor
    labels: Tensor
    mention_of: Tensor
    right: Tensor

    def scores(self, decoder: Decoder) -> Tensor:
        """[M] the mean over a mention's words."""
        scores = decoder.scores_of(self.columns, self.labels)
        total = torch.zeros(len(self.right)).index_add(0, self.mention_of, scores)
        return total / torch.bincount(self.mention_of, minlength=len(self.right))


@dataclass(frozen=True)
class HeldOut:
    """``columns`` [N, C] of all words, sentence after sentence; ``numbers`` of the sentences in the data;
    ``plain``: the decoder without calibration.
    """

    plain: Decoder
    columns: Tensor
    lengths: tuple[int, ...]
    gold: tuple[frozenset[Span], ...]
    numbers: tuple[int, ...]

    @classmethod
    def of(cls, model: TaggingModel, sentences: Sequence[Sentence], *, batch_size: int = 64) -> HeldOut:
        text = model.encode(sentences)
        columns = torch.zeros(text.words, len(model.labels))
        for batch, out in outputs(model.network, text, batch_size=batch_size):
            columns[batch.refs.cpu()] = out.logits.float().cpu()
        gold = tuple(frozenset(sentence.spans) for sentence in sentences)
        lengths = tuple(len(sentence) for sentence in sentences)
        decoder = Decoder(model.labels, ranks=model.network.ranks)
        return cls(decoder, columns, lengths, gold, tuple(range(len(sentences))))

    @property
    def labels(self) -> LabelSpace:
        return self.plain.labels

    def part(self, sentences: Sequence[int]) -> HeldOut:
        """Some of the sentences, by index."""
        pieces = torch.split(self.columns, list(self.lengths))
        return replace(
            self,
            columns=torch.cat([self.columns[:0], *(pieces[at] for at in sentences)]),
            lengths=tuple(self.lengths[at] for at in sentences),
            gold=tuple(self.gold[at] for at in sentences),
            numbers=tuple(self.numbers[at] for at in sentences),
        )

    def mentions_of(self, type_: str) -> int:
        return sum(span.type == type_ for spans in self.gold for span in spans)

    def found(self, calibration: Calibration | None) -> list[Found]:
        """All mentions that the model finds with this calibration."""
        decoder = self.decoder(calibration)
        ids = decoder.labels_of(self.columns, self.lengths)
        scores = decoder.scores_of(self.columns, ids)
        words, flat = ids.tolist(), scores.tolist()
        found = []
        for at, (first, end) in enumerate(itertools.pairwise(itertools.accumulate(self.lengths, initial=0))):
            for span in self.labels.decode(words[first:end]):
                of_words = flat[first + span.start : first + span.end]
                score = sum(of_words) / len(of_words)
                found.append(Found(self.numbers[at], span.type, score, span in self.gold[at]))
        return found

    def decoder(self, calibration: Calibration | None) -> Decoder:
        return self.plain if calibration is None else self.plain.calibrated(calibration)

    def words_of(self, type_: str, calibration: Calibration) -> MentionWords:
        """The words of all mentions of a type, for repeated scoring."""
        ids = self.decoder(calibration).labels_of(self.columns, self.lengths)
        words = ids.tolist()
        places: list[int] = []
        mention_of: list[int] = []
        right: list[bool] = []
        for at, (first, end) in enumerate(itertools.pairwise(itertools.accumulate(self.lengths, initial=0))):
            for span in self.labels.decode(words[first:end]):
                if span.type == type_:
                    places += range(first + span.start, first + span.end)
                    mention_of += [len(right)] * (span.end - span.start)
                    right.append(span in self.gold[at])
        return MentionWords(self.columns[places], ids[places], torch.tensor(mention_of), torch.tensor(right))

    def where_found(self, type_: str, calibration: Calibration | None) -> tuple[HeldOut, Tensor]:
        """(sentences with a word that is labelled as the type, the margin of each such word)."""
        decoder, wanted = self.decoder(calibration), torch.tensor(self.labels.ids_of([type_]))
        ids = decoder.labels_of(self.columns, self.lengths)
        decided = torch.isin(ids, wanted)
        columns = decoder.columns(self.columns)[decided]
        others = columns.index_fill(1, wanted, float("-inf"))
        margins = columns[:, wanted].amax(1) - others.amax(1)
        sentence_of = torch.arange(len(self.lengths)).repeat_interleave(torch.tensor(self.lengths))
        return self.part(torch.unique(sentence_of[decided]).tolist()), margins.clamp_min(0)
