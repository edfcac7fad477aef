"""How often a model finds its old types in a text. Text that mentions old types reminds the model of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cfner.corpus.sentence import Sentence, Span, mention_counts

if TYPE_CHECKING:
    from cfner.tagger import ContinualTagger

SAMPLE: Final = 500  # sentences that the model tags
HANDFUL: Final = 5  # mentions needed to remind a model of a type


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
        """Estimated mentions in all sentences, from the sample."""
        return self.mentions.get(type_, 0) * self.sentences / max(1, self.sample)


def not_reminded(types: Collection[str], texts: Sequence[TypesFound]) -> tuple[str, ...]:
    """Types with fewer than ``HANDFUL`` mentions in all texts together."""
    return tuple(type_ for type_ in types if sum(text.expected(type_) for text in texts) < HANDFUL)


def sampled(sentences: Sequence[Sentence], most: int) -> list[Sentence]:
    """At most this many non-empty sentences, evenly spread over the data."""
    filled = [sentence for sentence in sentences if len(sentence)]
    if len(filled) <= most:
        return filled
    return [filled[index * len(filled) // most] for index in range(most)]
