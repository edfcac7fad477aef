"""Sentences divided into folds: each is scored by a model that was trained on the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from cfner.corpus.sentence import Sentence, mention_counts

FEWEST_DOCUMENTS: Final = 2  # per fold, for documents to be kept in one piece


def divided(sentences: Sequence[Sentence], number: int) -> list[list[int]]:
    """``number`` folds of the sentences' positions, each type spread evenly over them.

    Equal sentences and, where there are enough of them, sentences of one document are in the same fold:
    their copies and neighbours would give the answers away. The largest pieces are placed first, each where
    its rarest type is needed most. Nothing is drawn at random.
    """
    total, folds = mention_counts(sentences), [Counter[str]() for _ in range(number)]
    parts: list[list[int]] = [[] for _ in range(number)]
    counted = [(piece, mention_counts(sentences[i] for i in piece)) for piece in pieces(sentences, number)]
    # ties by the words, so that the order of the file decides nothing
    counted.sort(key=lambda item: (-item[1].total(), -len(item[0]), sentences[item[0][0]].key))
    for piece, mentions in counted:
        rarest = min(mentions, key=lambda type_: (total[type_], type_), default=None)
        emptiest = min(
            range(number),
            key=lambda fold: (
                0 if rarest is None else folds[fold][rarest],
                folds[fold].total() if rarest is not None else len(parts[fold]),
                len(parts[fold]),
                fold,
            ),
        )
        folds[emptiest].update(mentions)
        parts[emptiest].extend(piece)
    return [sorted(part) for part in parts]


def has_documents(sentences: Sequence[Sentence], number: int) -> bool:
    """Whether the data names enough documents to keep each in one fold."""
    return len({s.document for s in sentences if s.document is not None}) >= FEWEST_DOCUMENTS * number


def pieces(sentences: Sequence[Sentence], number: int) -> list[list[int]]:
    """Positions of sentences that must stay together: equal ones, and those of one document."""
    parent = list(range(len(sentences)))

    def root(position: int) -> int:
        while parent[position] != position:
            parent[position] = position = parent[parent[position]]
        return position

    first: dict[tuple[str, str], int] = {}
    by_document = has_documents(sentences, number)
    for position, sentence in enumerate(sentences):
        names = [("words", sentence.key)]
        if by_document and sentence.document is not None:
            names.append(("document", sentence.document))
        for name in names:
            parent[root(position)] = root(first.setdefault(name, position))
    together: dict[int, list[int]] = {}
    for position in range(len(sentences)):
        together.setdefault(root(position), []).append(position)
    return list(together.values())
