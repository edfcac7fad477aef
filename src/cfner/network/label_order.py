"""Which labels may follow each other in a sentence, and the best sequence of labels that is allowed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from cfner.stream.labels import LabelSpace

_INSIDE = "IEL"  # prefixes that continue a mention ...
_OPEN = "BI"  # ... which these leave open
_CLOSING = ("BIOES", "BILOU")  # schemes in which a mention must be closed


class LabelOrder:
    """The rules of a scheme, for all labels that are not free: in BIO, ``I-X`` only after ``B-X`` or ``I-X``.

    In IO and IOB1 every order is valid. ``ranks``: see ``network.experts``; the types of a lower rank choose
    their words first.
    """

    def __init__(self, labels: LabelSpace, ranks: Sequence[int] = ()) -> None:
        count = len(labels)
        types = [labels.type_of(number) for number in range(count)]
        number_of = {type_: number for number, type_ in enumerate(dict.fromkeys(types))}
        type_of = torch.tensor([number_of[type_] for type_ in types])
        same = type_of[:, None] == type_of
        inside = torch.tensor([tag[0] in _INSIDE for tag in labels.tags])
        is_open = torch.tensor([tag[0] in _OPEN for tag in labels.tags])
        ordered = (torch.arange(count) >= labels.free) & labels.ordered
        must_continue = ordered & inside
        must_be_closed = ordered & is_open & (labels.scheme in _CLOSING)
        # [C, C]: the second may follow the first
        self.follows = ~(must_continue & ~(same & is_open[:, None]))
        self.follows &= ~(must_be_closed[:, None] & ~(same & inside))
        self.starts, self.ends = ~must_continue, ~must_be_closed  # [C]
        self.free = bool(self.follows.all())  # every sequence is valid
        self._penalties = tuple(
            np.where(rule.numpy(), 0.0, -np.inf) for rule in (self.follows, self.starts, self.ends)
        )
        self._other, self._silent = labels.other_id, labels.silent
        self._ranks = np.array(ranks or [0] * count)
        self._ranks[self._other] = -1  # O has none

    def broken(self, ids: Tensor, bounds: Tensor) -> list[int]:
        """The numbers of the sentences whose labels are not a valid sequence. ids [N] of sentences that begin
        at ``bounds`` [S + 1].
        """
        if self.free or not len(ids):
            return []
        sentence_of = torch.arange(len(bounds) - 1).repeat_interleave(bounds.diff())
        first = torch.ones(len(ids), dtype=torch.bool)
        first[1:] = sentence_of[1:] != sentence_of[:-1]
        last = first.roll(-1)
        wrong = (first & ~self.starts[ids]) | (last & ~self.ends[ids])
        wrong[1:] |= ~first[1:] & ~self.follows[ids[:-1], ids[1:]]
        found: list[int] = sorted(set(sentence_of[wrong].tolist()))
        return found

    def best(self, columns: Tensor) -> Tensor:
        """[n] the valid labels of a sentence with the largest sum of its columns [n, C]; O where that label
        means nothing.
        """
        scores = columns.double().numpy()
        ids = np.full(len(scores), self._other)
        for rank in sorted(set(self._ranks.tolist()) - {-1}):
            allowed = np.where(np.isin(self._ranks, (rank, -1)), scores, -np.inf)
            claimed = (ids != self._other).nonzero()[0]  # by a lower rank: nothing changes that
            allowed[claimed] = -np.inf
            allowed[claimed, ids[claimed]] = 0.0
            ids = self._best(allowed)
            ids[np.isin(ids, self._silent)] = self._other
        return torch.from_numpy(ids)

    def _best(self, scores: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """Viterbi's algorithm."""
        follows, starts, ends = self._penalties
        before = np.zeros(scores.shape, dtype=np.int64)
        total = scores[0] + starts
        for word in range(1, len(scores)):
            paths = total[:, None] + follows
            before[word] = paths.argmax(0)
            total = paths[before[word], np.arange(len(total))] + scores[word]
        ids = np.empty(len(scores), dtype=np.int64)
        ids[-1] = (total + ends).argmax()
        for word in range(len(scores) - 1, 0, -1):
            ids[word - 1] = before[word, ids[word]]
        return ids
