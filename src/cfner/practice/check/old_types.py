"""What the model's predictions on the new text mean for its old types: reminders, conflicts, refinements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from cfner.corpus.sentence import Sentence, Span
from cfner.methods.own_other import OwnOtherParameters
from cfner.practice.check.findings import ClaimedWords, Finding, ModelFacts, counted, note, some, warning
from cfner.practice.learn.types_found import HANDFUL

_SAME: Final = 0.8  # share of a type's mentions that one old type covers: they are probably the same
_CONFLICT: Final = 0.2
_ENOUGH: Final = 5  # mentions or words from which a share is meaningful
_REFINES: Final[float] = OwnOtherParameters.model_fields["refines"].default
_EXAMPLES: Final = 5


def claimed_words(
    sentences: Sequence[Sentence],
    found: Sequence[Collection[Span]],
    new: Collection[str],
    old: Collection[str],
) -> tuple[ClaimedWords, ...]:
    """For each new type, the old types that the model predicts on its words."""
    words: Counter[str] = Counter()
    claimed: Counter[tuple[str, str]] = Counter()
    examples: dict[tuple[str, str], Counter[str]] = {}
    for sentence, spans in zip(sentences, found, strict=True):
        for mention in sentence.only(new).spans:
            words[mention.type] += mention.end - mention.start
            for other in (span for span in spans if span.type in old and span.overlaps(mention)):
                pair = mention.type, other.type
                claimed[pair] += min(mention.end, other.end) - max(mention.start, other.start)
                text = " ".join(sentence.words[mention.start : mention.end])
                examples.setdefault(pair, Counter())[text] += 1
    return tuple(
        ClaimedWords(
            *pair, count, count / words[pair[0]], tuple(t for t, _ in examples[pair].most_common(_EXAMPLES))
        )
        for pair, count in claimed.most_common()
    )


def text_findings(facts: ModelFacts) -> Iterator[Finding]:
    """What the model's predictions on the new text mean for learning."""
    yield from _reminders(facts)
    if facts.already_found:
        found = [f"{t} {n:,} of {facts.sampled_mentions[t]:,}" for t, n in facts.already_found.items()]
        yield note(
            "already found",
            f"Of the sampled mentions of known types the model already finds, exactly: {some(found)}.",
        )
    for type_ in facts.sampled_mentions:
        yield from list(_conflict(facts, type_)) or _refinements(facts, type_)


def _reminders(facts: ModelFacts) -> Iterator[Finding]:
    """How often the text mentions the old types, which reminds the model of them."""
    sample = counted(facts.sample, "sampled sentence")
    if sum(facts.old_predictions.values()):
        yield note(
            "old types in the text",
            f"In {sample} the model finds {_counts(facts.old_predictions)}. That is normal and useful: they "
            "need no labels, and seeing them keeps the old types from being forgotten.",
        )
    if text := facts.unlabelled:
        yield note(
            "old types in the unlabelled text",
            f"In {text.sample:,} of {counted(text.sentences, 'unlabelled sentence')} the model finds "
            f"{_counts(text.mentions)}. `learn` takes sentences with the rarest of them first.",
        )
    if facts.not_reminded:
        places = f"{sample} and the unlabelled text" if facts.unlabelled else sample
        more = (
            "more text without labels that mentions them"
            if facts.unlabelled
            else "text without labels, like the text that the model reads every day"
        )
        yield warning(
            "old types not in the text",
            f"Nothing will remind the model of {', '.join(facts.not_reminded)}: in {places} it finds fewer "
            f"than {HANDFUL} mentions of each. The model may forget types that are not mentioned.",
            remedy=f"Give `learn` {more} (`unlabelled`), or some old sentences (`replay`), "
            "and have it test the old types (`guard`).",
        )


def _counts(mentions: Mapping[str, int]) -> str:
    most = sorted((type_ for type_ in mentions if mentions[type_]), key=lambda type_: -mentions[type_])
    shown = ", ".join(f"{type_} {mentions[type_]:,}" for type_ in most)
    total = counted(sum(mentions.values()), "mention")
    return f"{total} of its old types ({shown})" if most else "no mention of its old types"


def _conflict(facts: ModelFacts, type_: str) -> Iterator[Finding]:
    counts = facts.conflicts.get(type_, {})
    mentions, covered = facts.sampled_mentions[type_], facts.covered[type_]
    if not counts or covered < _ENOUGH or covered < _CONFLICT * mentions:
        return
    first = max(counts, key=lambda other: counts[other])
    shown = some([f"{other} {count:,}" for other, count in counts.items()], 3)
    seen = (
        f"The model takes {covered:,} of {mentions:,} sampled mentions of '{type_}' for old types ({shown})"
    )
    if counts[first] >= _SAME * mentions:
        meaning = f"'{type_}' is either '{first}' under another name, or a kind of it."
        remedy = (
            f"If the same, call it '{first}' in the data. If a kind of it, expect '{first}' to lose "
            "these mentions: a word has one type."
        )
    else:
        meaning = "These words will change their type, and the old types will seem to forget them."
        remedy = f"Check where '{type_}' ends and '{first}' begins; carry on if this is what you want."
    words = next((claim for claim in facts.claimed if (claim.new, claim.old) == (type_, first)), None)
    examples = f", such as {_quoted(words.examples)}" if words else ""
    yield warning("conflict", f"{seen}{examples}. {meaning}", remedy=remedy)


def _refinements(facts: ModelFacts, type_: str) -> Iterator[Finding]:
    """Old types that are predicted on so many words of a new type that it may be a subtype."""
    for claim in facts.claimed:
        if claim.new == type_ and claim.words >= _ENOUGH and claim.share >= _REFINES:
            yield warning(
                "refines",
                f"The model takes {claim.words:,} sampled words of '{type_}' ({claim.share:.0%}) for "
                f"'{claim.old}', such as {_quoted(claim.examples)}. Perhaps '{type_}' is a kind of "
                f"'{claim.old}'. From {_REFINES:.0%} on, the method own-other does not take words of "
                f"'{claim.old}' as examples of what '{type_}' is not.",
                remedy=f"Check where '{type_}' ends and '{claim.old}' begins; carry on if that is right.",
            )


def _quoted(examples: Sequence[str]) -> str:
    return ", ".join(f"'{text}'" for text in examples)
