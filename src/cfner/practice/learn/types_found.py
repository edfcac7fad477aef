"""How often a model finds its old types in a text: they are kept by text in which it still finds them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cfner.corpus.sentence import Sentence, Span, mention_counts

if TYPE_CHECKING:
    from cfner.tagger import ContinualTagger

SAMPLE: Final = 500  # sentences that the model is asked about
HANDFUL: Final = 5  # mentions below which nothing reminds a model of a type


@dataclass(frozen=True)
class TypesFound:
    """Mentions of each type in a sample of the sentences, spread evenly over them."""

    sentences: int
    sample: int
    mentions: Mapping[str, int]  # 0 included

    @classmethod
    def count(cls, sentences: int, found: Sequence[Collection[Span]], types: Collection[str]) -> TypesFound:
        mentions = dict.fromkeys(types, 0)
        for span in (span for spans in found for span in spans if span.type in mentions):
            mentions[span.type] += 1
        return cls(sentences, len(found), mentions)

    @classmethod
    def by_model(
        cls,
        tagger: ContinualTagger,
        sentences: Sequence[Sentence],
        types: Collection[str],
        most: int = SAMPLE,
    ) -> TypesFound:
        return cls.count(len(sentences), tagger.find(sampled(sentences, most)), types)

    @classmethod
    def labelled(cls, sentences: Sequence[Sentence]) -> TypesFound:
        return cls(len(sentences), len(sentences), mention_counts(sentences))

    def expected(self, type_: str) -> float:
        """Mentions in all of the sentences, if they are like the sample."""
        return self.mentions.get(type_, 0) * self.sentences / max(1, self.sample)


def not_reminded(types: Collection[str], texts: Sequence[TypesFound]) -> tuple[str, ...]:
    """Types of which all texts together have fewer than a handful of mentions."""
    return tuple(type_ for type_ in types if sum(text.expected(type_) for text in texts) < HANDFUL)


def sampled(sentences: Sequence[Sentence], most: int) -> list[Sentence]:
    """At most so many sentences with words, evenly spread over the data."""
    filled = [sentence for sentence in sentences if len(sentence)]
    if len(filled) <= most:
        return filled
    return [filled[index * len(filled) // most] for index in range(most)]
