"""The words of a step: all its slices, encoded one after the other, with their label ids."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor

from cfner.batches.encoding import EncodedText, encode
from cfner.corpus.sentence import Sentence
from cfner.stream.labels import LabelSpace
from cfner.stream.step import Slice

IGNORE: Final = -100  # a target that no loss reads


@dataclass(frozen=True)
class StepData:
    """Words by TokenRef, and their label ids."""

    sentences: tuple[Sentence, ...]
    text: EncodedText
    gold: Tensor  # [N]
    slices: tuple[Slice, ...]
    slice_of: Tensor  # [N] which of the slices a word is from

    @property
    def known_labels(self) -> Tensor:
        """[N] the label ids, IGNORE where the text is unlabelled."""
        unlabelled = torch.tensor([part.unlabelled for part in self.slices], dtype=torch.bool)
        return self.gold.masked_fill(unlabelled.to(self.slice_of.device)[self.slice_of], IGNORE)

    def annotated(self, types: Collection[str]) -> Tensor:
        """[N] bool: words of slices in which every mention of these types is labelled."""
        complete = torch.tensor([set(types) <= part.annotated for part in self.slices], dtype=torch.bool)
        return complete.to(self.slice_of.device)[self.slice_of]


def encode_slices(
    slices: Sequence[Slice], labels: LabelSpace, tokenizer: Any, *, max_length: int, overlap: int | None
) -> StepData:
    """Encode the slices for an encoder. Sentences without words are left out."""
    kept = tuple(part._replace(sentences=tuple(s for s in part.sentences if len(s))) for part in slices)
    sentences = tuple(sentence for part in kept for sentence in part.sentences)
    words = torch.tensor([sum(map(len, part.sentences)) for part in kept], dtype=torch.long)
    return StepData(
        sentences,
        encode(sentences, tokenizer, max_length=max_length, overlap=overlap),
        torch.tensor([label for s in sentences for label in labels.encode(s)], dtype=torch.long),
        kept,
        torch.arange(len(kept)).repeat_interleave(words),
    )
