"""The model beside the data: what it already sees in the text, conflicts, sentences too long for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from cfner.batches.encoding import EncodedText
from cfner.corpus.sentence import Sentence
from cfner.errors import CfnerError
from cfner.practice.check.findings import Finding, ModelFacts, counted, note, some, warning
from cfner.practice.learn.plan import StepPlan, refuse_method
from cfner.store.model_files import LoadedModel
from cfner.tagger import ContinualTagger

_SAME = 0.8  # share of a type's mentions that one old type covers, from which they are probably the same
_CONFLICT = 0.2
_ENOUGH = 5  # mentions from which a share says something


def refusals(tagger: ContinualTagger, current: Sequence[str]) -> Iterator[Finding]:
    """Types that the model's labels have no place for, and a method that cannot teach it."""
    try:
        tagger.model.labels.grown(current)
    except CfnerError as error:
        yield Finding.refusal(error, "impossible type")
    try:
        refuse_method(tagger.method, tagger.model.network.head.kind)
    except CfnerError as error:
        yield Finding.refusal(error, "method")


def encoded(model: LoadedModel, sentences: Sequence[Sentence]) -> EncodedText:
    return model.encode([sentence for sentence in sentences if len(sentence)])


def window_findings(model: LoadedModel, text: EncodedText) -> Iterator[Finding]:
    """Sentences and words with more subwords than the encoder reads at once."""
    owner, bounds = text.window_of_refs(), text.sentence_bounds
    divided = int((owner[bounds[:-1]] != owner[bounds[1:] - 1]).sum())
    if divided:
        yield note(
            "long sentences",
            f"{counted(divided, 'training sentence', 'have')} more subwords than the {model.max_length} that "
            "the encoder reads at once. They are read in overlapping windows; no word is lost.",
        )
    if text.shortened_words:
        yield warning(
            "giant words",
            f"{counted(text.shortened_words, 'word', 'have')} more subwords than the {model.max_length} that "
            "the encoder reads at once; what is beyond it is not read.",
            remedy="Look for data that is not text: keys, encoded files, missing blanks.",
        )


def sampled(sentences: Sequence[Sentence], most: int) -> list[Sentence]:
    """At most so many sentences with words, evenly spread over the data."""
    filled = [sentence for sentence in sentences if len(sentence)]
    if len(filled) <= most:
        return filled
    return [filled[index * len(filled) // most] for index in range(most)]


def look_at_text(
    tagger: ContinualTagger, source: str, sentences: Sequence[Sentence], plan: StepPlan
) -> ModelFacts:
    """Tag the sentences with the model as it is, and compare its old types with the new labels."""
    model = tagger.model
    old = set(model.labels.types) - set(plan.current)
    found: Counter[str] = Counter()
    mentions: Counter[str] = Counter()
    covered: Counter[str] = Counter()
    already: Counter[str] = Counter()
    conflicts: dict[str, Counter[str]] = {type_: Counter() for type_ in plan.current}
    for prediction in tagger.predict(sentences):
        old_spans = [span for span in prediction.spans if span.type in old]
        found.update(span.type for span in old_spans)
        for span in prediction.sentence.only(plan.current).spans:
            taken_for = {other.type for other in old_spans if span.overlaps(other)}
            mentions[span.type] += 1
            covered[span.type] += bool(taken_for)
            conflicts[span.type].update(taken_for)
            already[span.type] += span in prediction.spans
    return ModelFacts(
        source=source,
        encoder=model.encoder,
        known=model.labels.types,
        sample=len(sentences),
        old_predictions={type_: found[type_] for type_ in model.labels.types if type_ in old},
        covered={type_: covered[type_] for type_ in plan.current},
        conflicts={type_: dict(counts.most_common()) for type_, counts in conflicts.items() if counts},
        already_found={type_: already[type_] for type_ in plan.more},
        sampled_mentions={type_: mentions[type_] for type_ in plan.current},
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
    for type_ in facts.conflicts:
        yield from _conflict(facts, type_)


def _reminders(facts: ModelFacts) -> Iterator[Finding]:
    """How much of the text reminds the model of its old types: that is what keeps them."""
    old, total = facts.old_predictions, sum(facts.old_predictions.values())
    sample = counted(facts.sample, "sampled sentence")
    if total:
        most = sorted(old, key=lambda type_: -old[type_])
        shown = some([f"{type_} {old[type_]:,}" for type_ in most if old[type_]], 4)
        yield note(
            "old types in the text",
            f"In {sample} the model finds {counted(total, 'mention')} of its old types ({shown}). That is "
            "normal and useful: they need no labels, and seeing them keeps the old types from being "
            "forgotten.",
        )
    if absent := [type_ for type_ in old if not old[type_]]:
        which = f"no mention of {some(absent)}" if total else "no mention of any old type"
        yield Finding(
            "note" if total else "warning",
            "old types not in the text",
            f"In {sample} the model finds {which}, so nothing in this text reminds it of them.",
            remedy="If they matter, give 'cfner learn' some old sentences (--replay FILE), and have it test "
            "the old types (--guard FILE).",
        )


def _conflict(facts: ModelFacts, type_: str) -> Iterator[Finding]:
    counts, mentions, covered = facts.conflicts[type_], facts.sampled_mentions[type_], facts.covered[type_]
    if covered < _ENOUGH or covered < _CONFLICT * mentions:
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
    yield warning("conflict", f"{seen}. {meaning}", remedy=remedy)
