"""Spans in, numbers out: entity-level scores and the two confusions. No torch here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from cfner.corpus.sentence import Sentence, Span
from cfner.errors import ConfigError, nearest
from cfner.evaluation.scores import Confusions, Counts, Scores

SpansPerSentence = Sequence[Collection[Span]]


def score(gold: SpansPerSentence, predicted: SpansPerSentence, types: Iterable[str] | None = None) -> Scores:
    """Entity-level counts, sentence by sentence: a mention is correct if its words and its type are right.

    On valid sequences this is seqeval's default mode. ``types`` are all types that the model has learned so
    far; the macro F1 is their mean. Without ``types``, the mean is over the types that occur in ``gold`` or
    ``predicted``, as in seqeval. A gold mention of a type outside ``types`` raises an error, since no model
    could find it. Predicted mentions of such a type count as false positives of the micro scores.
    """
    _same_number(gold, predicted)
    found: Counter[str] = Counter()
    in_gold: Counter[str] = Counter()
    in_predicted: Counter[str] = Counter()
    for gold_spans, predicted_spans in zip(gold, predicted, strict=True):
        gold_set, predicted_set = set(gold_spans), set(predicted_spans)
        found.update(span.type for span in gold_set & predicted_set)
        in_gold.update(span.type for span in gold_set)
        in_predicted.update(span.type for span in predicted_set)
    listed = tuple(sorted({*in_gold, *in_predicted}) if types is None else dict.fromkeys(types))
    _refuse_unlisted_gold(in_gold, listed)
    unlisted = sorted(set(in_predicted) - set(listed))
    return Scores(
        types=listed,
        counts={t: Counts(found[t], in_gold[t], in_predicted[t]) for t in (*listed, *unlisted)},
    )


def score_labelled(
    sentences: Sequence[Sentence], predicted: SpansPerSentence, types: Collection[str]
) -> Scores:
    """Scores of those of ``types`` that the sentences mention: the others cannot be scored on them."""
    mentioned = {type_ for sentence in sentences for type_ in sentence.types}
    scored = [type_ for type_ in types if type_ in mentioned]
    gold = [sentence.only(scored).spans for sentence in sentences]
    return score(gold, [[span for span in spans if span.type in scored] for spans in predicted], scored)


def confusions(
    gold: SpansPerSentence,
    predicted: SpansPerSentence,
    lengths: Sequence[int],
    old_types: Collection[str],
    new_types: Collection[str],
) -> Confusions:
    """How many old-type words were predicted as O, and how many O and old-type words as a new type.

    ``lengths`` are the numbers of words of the sentences.
    """
    _same_number(gold, predicted)
    if len(lengths) != len(gold):
        raise ValueError(f"{len(gold)} sentences, but {len(lengths)} lengths")
    old, new = set(old_types), set(new_types)
    if both := sorted(old & new):
        raise ConfigError(
            f"The type '{both[0]}' is given as old and as new.",
            remedy="Types labelled in the step's data are new; all others known so far are old.",
        )
    old_words = old_as_other = not_new_words = as_new = 0
    for gold_spans, predicted_spans, length in zip(gold, predicted, lengths, strict=True):
        _refuse_unlisted_gold((span.type for span in gold_spans), old | new)
        words = zip(_type_per_word(gold_spans, length), _type_per_word(predicted_spans, length), strict=True)
        for gold_type, predicted_type in words:
            if gold_type in new:
                continue
            not_new_words += 1
            as_new += predicted_type in new
            if gold_type is not None:
                old_words += 1
                old_as_other += predicted_type is None
    return Confusions(old_words, old_as_other, not_new_words, as_new)


def _type_per_word(spans: Collection[Span], length: int) -> list[str | None]:
    types: list[str | None] = [None] * length
    for span in spans:
        if not 0 <= span.start < span.end <= length:
            raise ValueError(f"{span} is not inside a sentence of {length} words")
        types[span.start : span.end] = [span.type] * (span.end - span.start)
    return types


def _same_number(gold: SpansPerSentence, predicted: SpansPerSentence) -> None:
    if len(gold) != len(predicted):
        raise ValueError(f"{len(gold)} sentences with gold mentions, but {len(predicted)} with predictions")


def _refuse_unlisted_gold(gold_types: Iterable[str], listed: Collection[str]) -> None:
    unlisted = sorted(set(gold_types) - set(listed))
    if unlisted:
        raise ConfigError(
            f"The gold data mentions the type '{unlisted[0]}', which is not among the types to score.",
            remedy=f"{nearest(unlisted[0], listed)} Score only the learned types: sentence.only(types).",
        )
