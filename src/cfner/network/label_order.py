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
        self._other = labels.other_id
        self._ranks = np.array(ranks or [0] * count)
        # the labels of a merged type choose together, and with them all types that came between them
        for own in (self._ranks[list(labels.ids_of([type_]))] for type_ in labels.merged):
            between = (self._ranks >= own.min()) & (self._ranks <= own.max())
            self._ranks[between] = own.min()
        self._ranks[self._other] = -1  # O has none
        self._one_rank = len(set(self._ranks.tolist())) <= 2

    def misfits(self, ids: Tensor, bounds: Tensor) -> Tensor:
        """The words whose label cannot follow the one before it, or cannot begin or end its sentence.
        ids [N] of sentences that begin at ``bounds`` [S + 1].
        """
        if self.free or not len(ids):
            return torch.zeros(0, dtype=torch.long)
        first, last = torch.zeros(2, len(ids), dtype=torch.bool)
        full = bounds.diff() > 0
        first[bounds[:-1][full]] = True
        last[bounds[1:][full] - 1] = True
        wrong = (first & ~self.starts[ids]) | (last & ~self.ends[ids])
        wrong[1:] |= ~first[1:] & ~self.follows[ids[:-1], ids[1:]]
        (words,) = torch.where(wrong)
        return words

    def mend(self, ids: Tensor, columns: Tensor, misfits: Tensor) -> list[slice]:
        """Give a sentence the valid labels with the largest sum of its columns [n, C]; with ranks, older
        types first. Changes ``ids`` [n], which are each word's largest; returns the stretches of words that
        had to be searched.
        """
        if not self._one_rank:
            ids[:] = self._best_by_rank(columns)
            return [slice(0, len(ids))]
        done: list[tuple[int, int]] = []
        waiting = [(max(0, at - 1), at + 1) for at in misfits.tolist()]
        while waiting:
            stretches, waiting, known = _joined(done + waiting), [], set(done)
            done = [one for one in stretches if one in known]
            for first, end in (one for one in stretches if one not in known):
                best = self._best(columns[first:end].double().numpy(), first == 0, end == len(ids))
                # inside and outside are now the best there is: if they fit together, so is the whole
                if (first == 0 or (self.starts[best[0]] and self.ends[ids[first - 1]])) and (
                    end == len(ids) or (self.ends[best[-1]] and self.starts[ids[end]])
                ):
                    ids[first:end] = torch.from_numpy(best)
                    done.append((first, end))
                else:
                    wider = end - first
                    waiting.append((max(0, first - wider), min(len(ids), end + wider)))
        return [slice(first, end) for first, end in done]

    def _best_by_rank(self, columns: Tensor) -> Tensor:
        """[n] the labels: older types choose their words first, newer ones among those that are left."""
        scores = columns.double().numpy()
        ids = np.full(len(scores), self._other)
        for rank in sorted(set(self._ranks.tolist()) - {-1}):
            allowed = np.where(np.isin(self._ranks, (rank, -1)), scores, -np.inf)
            claimed = (ids != self._other).nonzero()[0]  # by a lower rank: nothing changes that
            allowed[claimed] = -np.inf
            allowed[claimed, ids[claimed]] = 0.0
            ids = self._best(allowed, True, True)
        return torch.from_numpy(ids)

    def _best(self, scores: npt.NDArray[np.float64], is_start: bool, is_end: bool) -> npt.NDArray[np.int64]:
        """Viterbi's algorithm, over a sentence or a part that may begin and end anywhere in it."""
        follows, starts, ends = self._penalties
        before = np.zeros(scores.shape, dtype=np.int64)
        total = scores[0] + starts if is_start else scores[0]
        for word in range(1, len(scores)):
            paths = total[:, None] + follows
            before[word] = paths.argmax(0)
            total = paths[before[word], np.arange(len(total))] + scores[word]
        ids = np.empty(len(scores), dtype=np.int64)
        ids[-1] = (total + ends if is_end else total).argmax()
        for word in range(len(scores) - 1, 0, -1):
            ids[word - 1] = before[word, ids[word]]
        return ids


def _joined(stretches: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Stretches that overlap or touch become one."""
    joined: list[tuple[int, int]] = []
    for first, end in sorted(stretches):
        if joined and first <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((first, end))
    return joined
