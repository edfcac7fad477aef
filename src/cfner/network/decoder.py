"""From a network's scores to the labels of words, and to mentions."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from cfner.corpus.sentence import Span
from cfner.network.calibration import Calibration
from cfner.network.label_order import LabelOrder
from cfner.stream.labels import LabelSpace


class _Figures(NamedTuple):
    """The calibration of each label's type [C]."""

    shift: Tensor
    bias: Tensor
    temperature: Tensor

    @classmethod
    def of(cls, calibration: Calibration, type_of: Sequence[str | None]) -> _Figures:
        each = [calibration.of(type_) for type_ in type_of]
        return cls(*(torch.tensor([getattr(one, name) for one in each]) for name in cls._fields))


class Decoder:
    """From scores to labels to mentions. Evaluation, prediction, the server and ONNX all use it.

    A word gets the label with the largest column, which is O where no label's log-odds are above 0. If that
    gives a sentence labels that cannot follow each other, such as ``B-person I-city``, it gets the valid
    labels with the largest sum of columns instead (``LabelOrder``).

    The score of a word is the probability of the label's type in the label's own group, so that adding types
    does not change it. The parts of a merged type may be in several groups: the largest probability counts.

    A ``calibration`` has three figures per type. The shift is added to the log-odds of the type's labels
    before the largest is chosen. Scores are computed without the shift, with the type's bias and temperature:
    the score of a mention does not depend on the threshold of its type. No figure changes the log-odds or the
    scores of another type.
    """

    def __init__(
        self, labels: LabelSpace, calibration: Calibration | None = None, ranks: Sequence[int] = ()
    ) -> None:
        self.labels = labels
        self.order = LabelOrder(labels, ranks)
        self._type_of = type_of = [labels.type_of(number) for number in range(len(labels))]
        # [C, C]: 1 where two labels are of the same type
        self._mates = torch.tensor([[float(one == other) for one in type_of] for other in type_of])
        groups = torch.tensor(labels.group_of)
        with_other = (groups[:, None] == groups) | (torch.arange(len(labels)) == labels.other_id)
        # [C, C]: 0 for O and the labels of a label's group, -inf for those that it does not compete with
        self._rivals = torch.zeros(with_other.shape).masked_fill(~with_other, float("-inf"))
        # labels that mean nothing act for their whole group: [S, C] which labels it has, [S] their own ids
        self._silent = torch.tensor(labels.silent, dtype=torch.long)
        self._silenced = (groups[self._silent][:, None] == groups) & (
            torch.arange(len(labels)) != labels.other_id
        )
        # merged types with labels in several groups: their labels, and one label of each group
        self._merged = []
        for ids in (labels.ids_of([type_]) for type_ in labels.merged):
            one_of_group = {labels.group_of[label]: label for label in ids}
            if len(one_of_group) > 1:
                self._merged.append((torch.tensor(ids), list(one_of_group.values())))
        self._in_merged = torch.tensor([label for ids, _ in self._merged for label in ids.tolist()])
        # [C] each, of the label's type; None without a calibration
        self._figures: _Figures | None = None
        if calibration is not None:
            self._figures = _Figures.of(calibration, type_of)

    def calibrated(self, calibration: Calibration) -> Decoder:
        """The same decoder with a different calibration; cheap."""
        decoder = copy.copy(self)
        decoder._figures = _Figures.of(calibration, self._type_of)
        return decoder

    def columns(self, logits: Tensor) -> Tensor:
        """[W, C] the scores that decide: with the shift of each label's type added."""
        logits = logits.float()
        return logits if self._figures is None else logits + self._figures.shift

    def labels_of(self, logits: Tensor, lengths: Sequence[int]) -> Tensor:
        """[N] the labels of all words, from columns [N, C] of sentences of these lengths."""
        return self.decided(logits, lengths)[0]

    def decided(self, logits: Tensor, lengths: Sequence[int]) -> tuple[Tensor, Tensor]:
        """([N] the labels of all words, [N] whether a word's label was chosen together with its
        neighbours'), from columns [N, C] of sentences of these lengths.
        """
        ids, bounds = self.words_alone(logits), _bounds(lengths)
        together = torch.zeros(len(ids), dtype=torch.bool)
        misfits = self.order.misfits(ids, bounds)
        sentence_of = _sentence_of(misfits, bounds)
        for sentence in sorted(set(sentence_of.tolist())):
            first, end = int(bounds[sentence]), int(bounds[sentence + 1])
            columns = self._without_silent(self.columns(logits[first:end]))
            for part in self.order.mend(ids[first:end], columns, misfits[sentence_of == sentence] - first):
                together[first + part.start : first + part.stop] = True
        return ids, together

    def broken_alone(self, logits: Tensor, lengths: Sequence[int]) -> list[int]:
        """The sentences in which the labels that words would get alone cannot follow each other."""
        bounds = _bounds(lengths)
        misfits = self.order.misfits(self.words_alone(logits), bounds)
        return sorted(set(_sentence_of(misfits, bounds).tolist()))

    def words_alone(self, logits: Tensor) -> Tensor:
        """[W] the label that each word would get if it were alone, from columns [W, C]."""
        return self._heard(self.columns(logits)).argmax(1)

    def scores_of(self, logits: Tensor, best: Tensor) -> Tensor:
        """[W] the probability of the type of each word's label [W], from columns [W, C]."""
        logits = logits.float()
        columns = self._heard(self.columns(logits))
        in_group = best
        if self.labels.has_own_others:  # O's probability depends on the group that comes closest to the word
            other = self.labels.other_id
            runner_up = columns.index_fill(1, torch.tensor([other]), float("-inf")).argmax(1)
            in_group = torch.where(best == other, runner_up, best)
        probabilities = self._in_group(logits, in_group)
        scores = (probabilities * self._mates[best]).sum(1)
        heard = logits.masked_fill(columns.isneginf(), float("-inf"))
        for ids, one_of_group in self._merged:
            words = torch.isin(best, ids).nonzero()[:, 0]
            for label in one_of_group:
                probabilities = self._in_group(heard[words], torch.tensor(label))
                scores[words] = torch.maximum(scores[words], (probabilities * self._mates[label]).sum(1))
        return scores.clamp(max=1.0)

    def _in_group(self, logits: Tensor, labels: Tensor) -> Tensor:
        """[W, C] calibrated probabilities in the groups of labels [W] (or of one)."""
        if (figures := self._figures) is not None:
            logits = logits + figures.bias[labels][..., None] * self._mates[labels]
            logits = logits / figures.temperature[labels][..., None]
        return (logits + self._rivals[labels]).softmax(1)

    def margin(self, logits: Tensor) -> Tensor:
        """[W] the change of probabilities that would change a word's label, from columns [W, C]."""
        if logits.shape[1] < 2:
            return logits.new_ones(len(logits))
        logits = self.columns(logits)
        probabilities, columns = logits.softmax(1), self._heard(logits)
        first, second = probabilities.gather(1, columns.topk(2, dim=1).indices).T
        # where only one label is possible, no small change gives another
        margin = torch.where(columns.isfinite().sum(1) > 1, first - second, 1.0)
        for label, group in zip(self._silent.tolist(), self._silenced, strict=True):
            mates = group.clone()
            mates[self._silent] = False
            if bool(mates.any()):  # its group may be silenced or come back, and must then also be the largest
                loudest = probabilities[:, mates].amax(1)
                change = (probabilities[:, label] - loudest).abs()
                if not bool(torch.isin(mates.nonzero(), self._in_merged).any()):
                    change = torch.maximum(change, first - loudest)
                margin = torch.minimum(margin, change)  # the score of a merged type reads all its groups
        return margin

    def _heard(self, columns: Tensor) -> Tensor:
        """Where a label that means nothing is the largest of its group, the group claims nothing."""
        for label, group in zip(self._silent.tolist(), self._silenced, strict=True):
            largest = columns[:, label] >= columns[:, group].amax(1)
            columns = columns.masked_fill(largest[:, None] & group, float("-inf"))
        return columns

    def _without_silent(self, columns: Tensor) -> Tensor:
        """Columns without labels that mean nothing, for a search among labels. Where such a label is the
        largest of its group, it stands for O: the others of the group lose its lead over O.
        """
        for label, group in zip(self._silent.tolist(), self._silenced, strict=True):
            lead = (columns[:, label] - columns[:, self.labels.other_id]).clamp_min(0)
            largest = columns[:, label] >= columns[:, group].amax(1)
            columns = torch.where(largest[:, None] & group, columns - lead[:, None], columns)
        return columns.index_fill(1, self._silent, float("-inf"))

    def spans(self, ids: Tensor, bounds: Sequence[int]) -> list[tuple[Span, ...]]:
        """Mentions per sentence from label ids [N]; what is still invalid is repaired as in ``corpus.tags``.
        ``bounds``: where sentences begin, and N.
        """
        flat = ids.tolist()
        return [self.labels.decode(flat[a:b]) for a, b in itertools.pairwise(bounds)]


def _sentence_of(words: Tensor, bounds: Tensor) -> Tensor:
    """The number of the sentence that each word is in."""
    return torch.bucketize(words, bounds, right=True) - 1


def _bounds(lengths: Sequence[int]) -> Tensor:
    """Where sentences of these lengths begin, and the number of words."""
    return torch.tensor([0, *itertools.accumulate(lengths)])
