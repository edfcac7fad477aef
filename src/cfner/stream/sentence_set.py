"""Which sentences scores were measured on. Figures are comparable only if these are the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from cfner.corpus.sentence import Sentence, mention_counts
from cfner.stream.manifest import sentences_hash

_Hash = Annotated[str, Field(strict=True, pattern=r"\A[0-9a-f]{64}\z")]
_Number = Annotated[int, Field(strict=True, ge=0, le=10**15)]
_SHORT = 16  # hash digits in file names and in output


@dataclass(frozen=True)
class SentenceSet:
    """Labelled sentences, identified by the hash of their words and of all their labels.

    ``mentions`` counts all labelled types, also those that a model does not know. ``name`` says where the
    sentences are from, without the path, which is private.
    """

    hash: _Hash
    sentences: _Number = field(compare=False)
    mentions: Mapping[str, _Number] = field(compare=False, repr=False)
    name: str = field(default="", compare=False)

    @classmethod
    def of(cls, sentences: Iterable[Sentence], name: str) -> SentenceSet:
        """``sentences`` with all their labels; sentences without words are not counted."""
        read = [sentence for sentence in sentences if len(sentence)]
        return cls(sentences_hash(read), len(read), dict(sorted(mention_counts(read).items())), name)

    @property
    def short_hash(self) -> str:
        return self.hash[:_SHORT]

    @property
    def label(self) -> str:
        """Its name, size and hash in one line."""
        return f"{self.name or 'unnamed'}, {self.sentences:,} sentences, SHA-256 {self.short_hash}"

    def to_json(self) -> dict[str, Any]:
        return {
            "hash": self.hash,
            "sentences": self.sentences,
            "mentions": dict(self.mentions),
            "name": self.name,
        }

    @staticmethod
    def from_json(data: Any) -> SentenceSet:
        """Reads what ``to_json`` wrote; raises a ValueError for anything else."""
        return TypeAdapter(SentenceSet).validate_python(data)
