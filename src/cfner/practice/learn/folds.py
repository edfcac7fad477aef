"""Divide sentences into folds for cross-validation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from cfner.corpus.sentence import Sentence, mention_counts

MOST_SHARED: Final = 0.4  # of the sentences, that occur in several documents
FEWEST_DOCUMENTS: Final = 2  # per fold, for keeping documents together


def divided(sentences: Sequence[Sentence], number: int) -> list[list[int]]:
    """At most ``number`` non-empty folds of sentence indices, with each type spread evenly over them.

    Equal sentences or, if the data names enough documents, sentences of one document are in the same fold, to
    avoid leakage. The largest groups are placed first, each in the fold that has fewest of its rarest type.
    Nothing is random.
    """
    total, folds = mention_counts(sentences), [Counter[str]() for _ in range(number)]
    parts: list[list[int]] = [[] for _ in range(number)]
    counted = [(piece, mention_counts(sentences[i] for i in piece)) for piece in pieces(sentences, number)]
    # ties are broken by the words, so that the order of the file does not matter
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
    return [sorted(part) for part in parts if part]


def has_documents(sentences: Sequence[Sentence], number: int) -> bool:
    """Whether the data names enough documents to keep each in one fold.

    A model is not trained on copies of sentences that score it. If documents are mostly copies of each other,
    too little training data would be left, so they are not kept together.
    """
    holders: dict[str, set[str]] = {}
    for sentence in sentences:
        if sentence.document is not None:
            holders.setdefault(sentence.key, set()).add(sentence.document)
    shared = sum(len(holders.get(sentence.key, ())) > 1 for sentence in sentences)
    documents = set().union(*holders.values())
    return len(documents) >= FEWEST_DOCUMENTS * number and shared <= MOST_SHARED * len(sentences)


def pieces(sentences: Sequence[Sentence], number: int) -> list[list[int]]:
    """Groups of sentence indices that must stay together: one document each, or else equal sentences.

    Not both: a line that many documents share would join them all.
    """
    by_document = has_documents(sentences, number)
    together: dict[tuple[str, str], list[int]] = {}
    for position, sentence in enumerate(sentences):
        document = sentence.document if by_document else None
        name = ("words", sentence.key) if document is None else ("document", document)
        together.setdefault(name, []).append(position)
    return list(together.values())
