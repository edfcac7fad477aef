"""Checks with the model: what it already finds in the text, conflicts, sentences that are too long for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from cfner.batches.encoding import EncodedText
from cfner.corpus.sentence import Sentence
from cfner.errors import CfnerError
from cfner.practice.check.findings import Finding, ModelFacts, counted, note, warning
from cfner.practice.check.old_types import claimed_words
from cfner.practice.learn.plan import StepPlan, refuse_method
from cfner.practice.learn.types_found import TypesFound, not_reminded, sampled
from cfner.store.model_files import LoadedModel
from cfner.tagger import ContinualTagger


def refusals(tagger: ContinualTagger, current: Sequence[str]) -> Iterator[Finding]:
    """Types that do not fit the model's labels, and a method that does not work with the model."""
    try:
        tagger.model.labels.grown(current)
    except CfnerError as error:
        yield Finding.refusal(error, "impossible type")
    try:
        refuse_method(tagger.method, tagger.model)
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
            "the encoder reads at once; the rest of the word is ignored.",
            remedy="Look for data that is not text: keys, encoded files, missing spaces.",
        )


def look_at_text(
    tagger: ContinualTagger,
    source: str,
    train: Sequence[Sentence],
    plan: StepPlan,
    unlabelled: Sequence[Sentence],
    most: int,
) -> ModelFacts:
    """Tag at most ``most`` sentences of each text with the current model, and compare its old types with the
    new labels.
    """
    model = tagger.model
    old = [type_ for type_ in model.labels.types if type_ not in plan.current]
    sentences = sampled(train, most)
    found = tagger.find(sentences)
    mentions: Counter[str] = Counter()
    covered: Counter[str] = Counter()
    already: Counter[str] = Counter()
    conflicts: dict[str, Counter[str]] = {type_: Counter() for type_ in plan.current}
    for sentence, spans in zip(sentences, found, strict=True):
        for span in sentence.only(plan.current).spans:
            taken_for = {other.type for other in spans if other.type in old and span.overlaps(other)}
            mentions[span.type] += 1
            covered[span.type] += bool(taken_for)
            conflicts[span.type].update(taken_for)
            already[span.type] += span in spans
    in_train = TypesFound.count(len(train), found, old)
    in_text = TypesFound.by_model(tagger, unlabelled, old, most) if unlabelled else None
    return ModelFacts(
        source=source,
        encoder=model.encoder,
        known=model.labels.types,
        sample=len(sentences),
        old_predictions=in_train.mentions,
        covered={type_: covered[type_] for type_ in plan.current},
        conflicts={type_: dict(counts.most_common()) for type_, counts in conflicts.items() if counts},
        already_found={type_: already[type_] for type_ in plan.more},
        sampled_mentions={type_: mentions[type_] for type_ in plan.current},
        claimed=claimed_words(sentences, found, plan.new, old),
        unlabelled=in_text,
        not_reminded=not_reminded(old, [in_train, *([] if in_text is None else [in_text])]),
    )
