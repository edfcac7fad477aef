"""Sentences divided into folds: each is scored by a model that was trained on the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from cfner.corpus.sentence import Sentence, mention_counts

MOST_SHARED: Final = 0.4  # of the sentences, that stand in several documents
FEWEST_DOCUMENTS: Final = 2  # per fold, for documents to be kept in one piece


def divided(sentences: Sequence[Sentence], number: int) -> list[list[int]]:
    """At most ``number`` folds of the sentences' positions, none empty, each type spread evenly over them.

    Equal sentences or, where the data names enough documents, sentences of one document are in the same fold:
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
    return [sorted(part) for part in parts if part]


def has_documents(sentences: Sequence[Sentence], number: int) -> bool:
    """Whether the data names enough documents to keep each in one fold.

    Copies of what a model is scored on are not trained on. So documents that are mostly copies of each other
    are not kept together: too little would be left.
    """
    holders: dict[str, set[str]] = {}
    for sentence in sentences:
        if sentence.document is not None:
            holders.setdefault(sentence.key, set()).add(sentence.document)
    shared = sum(len(holders.get(sentence.key, ())) > 1 for sentence in sentences)
    documents = set().union(*holders.values())
    return len(documents) >= FEWEST_DOCUMENTS * number and shared <= MOST_SHARED * len(sentences)


def pieces(sentences: Sequence[Sentence], number: int) -> list[list[int]]:
    """Positions of sentences that must stay together: those of one document, or else equal ones.

    Not both at once: a line that many documents share would chain them all together.
    """
    by_document = has_documents(sentences, number)
    together: dict[tuple[str, str], list[int]] = {}
    for position, sentence in enumerate(sentences):
        document = sentence.document if by_document else None
        name = ("words", sentence.key) if document is None else ("document", document)
        together.setdefault(name, []).append(position)
    return list(together.values())
