"""Findings about mentions: too few, in no dev or test sentence, probably not all labelled, of two types."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from cfner.corpus.corpus import Corpus
from cfner.corpus.sentence import Sentence, mention_counts
from cfner.corpus.split_files import SPLITS
from cfner.practice.check.findings import Finding, counted, note, some, warning

FEW: Final = 50  # training mentions; the published experiments drop rarer types
FEW_TO_SCORE: Final = 20  # test mentions
_OFTEN: Final = 5  # times a surface form must be labelled before unlabelled occurrences count as suspicious
_LETTERS: Final = 3
_WORDS: Final = 6  # longest surface form searched among unlabelled words
_SECOND_TYPE: Final = 0.2
_SURE: Final = 100  # words from which "none is O" is not chance; types from which they are too many
_ALONE: Final = 20  # sentences from which "all are single words" is not chance

Surface = tuple[str, ...]


def rarity_findings(
    corpus: Corpus, current: Sequence[str], held_out: Sequence[Sentence] = ()
) -> Iterator[Finding]:
    """Types with few training mentions, or with few or no dev and test mentions.

    ``held_out`` are the training sentences that replace a missing dev split.
    """
    train, dev, test = (corpus.mentions(split) for split in SPLITS)
    chooses = mention_counts(held_out) if held_out else dev
    if few := [type_ for type_ in current if 0 < train[type_] < FEW]:
        yield warning(
            "few mentions",
            f"{_have(few)} fewer than {FEW} training mentions: {_with_counts(few, train)}. With so few "
            "the result depends on which ones they are (published experiments leave such types out).",
            remedy="Label more of them, in varied sentences, if the scores are not good enough.",
        )
    if unseen := sorted((set(dev) | set(test)) - set(train)):
        yield warning(
            "not in train",
            f"{_have(unseen)} mentions in dev or test, but none in train, so they cannot be learned: "
            f"{some(unseen)}.",
            remedy="Divide the data again with `Corpus.split`, or label some in train.",
        )
    learned = [type_ for type_ in current if train[type_]]
    if (corpus.dev or held_out) and (missing := [type_ for type_ in learned if not chooses[type_]]):
        place = "the part of train that is held out to choose the epoch" if held_out else "dev"
        yield warning(
            "not in dev",
            f"{_have(missing)} no mention in {place}: {some(missing)}. "
            "The best epoch is chosen without them.",
            remedy="Give a dev file that has some." if held_out else "Move some sentences from train to dev.",
        )
    tested = learned if corpus.test else []
    if none := [type_ for type_ in tested if not test[type_]]:
        yield warning(
            "not in test",
            f"{_have(none)} no mention in test: {some(none)}. They cannot be scored.",
            remedy="Move some sentences with them from train to test.",
        )
    if few := [type_ for type_ in tested if 0 < test[type_] < FEW_TO_SCORE]:
        yield note(
            "few test mentions",
            f"{_have(few)} fewer than {FEW_TO_SCORE} test mentions: {_with_counts(few, test)}. One mention "
            f"more or less found moves the recall by {100 / FEW_TO_SCORE:.0f} points or more.",
        )


def column_findings(sentences: Sequence[Sentence]) -> Iterator[Finding]:
    """Hints that the file was read wrongly: one sentence per word, or words as types."""
    if len(sentences) >= _ALONE and all(len(sentence) == 1 for sentence in sentences):
        yield Finding(
            "error",
            "one word each",
            f"Each of the {len(sentences):,} training sentences is a single word, so no word has a "
            "context to learn from.",
            where=sentences[0].source,
            remedy="Write an empty line only between sentences, not after every word.",
        )
    types = mention_counts(sentences)
    if len(types) >= _SURE and types.total() < 2 * len(types):
        yield Finding(
            "error",
            "types like words",
            f"The data has {len(types):,} types, but only {types.total():,} mentions: {some(sorted(types))}. "
            "The tags may be from a wrong column (such as words or lemmas).",
            where=sentences[0].source,
            remedy="Check with `tag_column` that the right column is read.",
        )


def balance_findings(sentences: Sequence[Sentence]) -> Iterator[Finding]:
    """Data in which everything is labelled: every word, or at least something in every sentence."""
    words = sum(len(sentence) for sentence in sentences)
    labelled = sum(span.end - span.start for sentence in sentences for span in sentence.spans)
    if words and labelled == words:
        yield Finding(
            "error" if words >= _SURE else "warning",
            "no O",
            f"All {words:,} training words are inside mentions, none is O. The tags may be from a "
            "wrong column (such as parts of speech), and a model would learn to label everything.",
            remedy="Check with `tag_column` that the right column is read.",
        )
    elif len(sentences) >= 100 and all(sentence.spans for sentence in sentences):
        yield note(
            "no plain sentence",
            "Every training sentence has a mention. On ordinary text, where most have none, expect more "
            "false alarms than the test scores show.",
            remedy="Add some sentences without mentions.",
        )


def surface_findings(sentences: Sequence[Sentence], current: Sequence[str]) -> Iterator[Finding]:
    """Words that are labelled in some places and O in others, and words with two types."""
    types_of = labelled_surfaces(sentences)
    wanted = set(current)
    often = {
        surface: types.most_common(1)[0][0]
        for surface, types in types_of.items()
        if types.total() >= _OFTEN and types.keys() & wanted and sum(map(len, surface)) >= _LETTERS
    }
    # an ordinary word that is sometimes a name is O far more often than labelled
    missed = {
        surface: count
        for surface, count in unlabelled_surfaces(sentences, often).items()
        if 2 <= count <= types_of[surface].total() <= 4 * count
    }
    if missed:
        shown = [
            f"'{' '.join(surface)}' ({often[surface]} {types_of[surface].total()} times, "
            f"unlabelled {missed[surface]} times)"
            for surface in sorted(missed, key=lambda surface: (-missed[surface], surface))
        ]
        places = sum(missed.values())
        yield Finding(
            "warning" if places >= 0.02 * sum(types.total() for types in types_of.values()) else "note",
            "perhaps unlabelled",
            f"{counted(len(missed), 'name', 'are')} labelled often and left O nearly as often "
            f"({counted(places, 'place')}): {some(shown, 3)}.",
            remedy="Check whether these places are missed mentions: each one is a wrong training example.",
        )
    mixed = {
        surface: types
        for surface, types in types_of.items()
        if len(types) > 1
        and types.total() >= _OFTEN
        and types.most_common(2)[1][1] >= max(2, _SECOND_TYPE * types.total())
        and types.keys() & wanted
    }
    if mixed:
        shown = [
            f"'{' '.join(surface)}' ({', '.join(f'{type_} {n}' for type_, n in types.most_common(3))})"
            for surface, types in sorted(mixed.items(), key=lambda item: -item[1].total())
        ]
        yield note(
            "two types",
            f"{counted(len(mixed), 'name', 'are')} labelled with more than one type: {some(shown, 3)}. "
            "That is correct if the context decides, and otherwise a mistake.",
        )


def labelled_surfaces(sentences: Sequence[Sentence]) -> dict[Surface, Counter[str]]:
    """How often each sequence of words is a mention, by type."""
    found: defaultdict[Surface, Counter[str]] = defaultdict(Counter)
    for sentence in sentences:
        for span in sentence.spans:
            found[sentence.words[span.start : span.end]][span.type] += 1
    return dict(found)


def unlabelled_surfaces(sentences: Sequence[Sentence], wanted: Mapping[Surface, str]) -> Counter[Surface]:
    """How often each wanted sequence of words occurs with none of its words in a mention.

    Only the longest match counts, once. At each word only the lengths of forms that start with it are tried,
    so the cost grows with the text, not with the number of forms.
    """
    lengths: defaultdict[str, set[int]] = defaultdict(set)
    for surface in wanted:
        if len(surface) <= _WORDS:
            lengths[surface[0]].add(len(surface))
    longest_first = {word: sorted(found, reverse=True) for word, found in lengths.items()}
    counts: Counter[Surface] = Counter()
    for sentence in sentences:
        at = 0
        for end, next_start in [*((span.start, span.end) for span in sentence.spans), (len(sentence), 0)]:
            while at < end:
                fitting = (
                    n
                    for n in longest_first.get(sentence.words[at], ())
                    if at + n <= end and sentence.words[at : at + n] in wanted
                )
                length = next(fitting, 0)
                if length:
                    counts[sentence.words[at : at + length]] += 1
                at += length or 1
            at = next_start
    return counts


def _with_counts(types: Sequence[str], counts: Mapping[str, int]) -> str:
    return some([f"{type_} {counts[type_]}" for type_ in sorted(types, key=lambda t: counts[t])])


def _have(types: Sequence[str]) -> str:
    return counted(len(types), "type", "have")
