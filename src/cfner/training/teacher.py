"""The teacher speaks once per step: its scores of every word, and the features of the words that matter."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from cfner.batches.encoding import EncodedText
from cfner.batches.loader import TokenBatch
from cfner.network.inference import outputs
from cfner.network.network import Network
from cfner.objective.losses import LayerSums, layer_sums
from cfner.objective.terms import LabelRoles, TeacherView


@dataclass(frozen=True)
class TeacherScores:
    """By TokenRef, for a whole slice. Matching and training read the same numbers."""

    logits: Tensor  # [N, C_kept] over roles.kept
    defined_other: Tensor  # [N] bool
    confidence: Tensor  # [N]
    pool: Tensor  # [P] TokenRefs of E tokens and defined-other tokens, ascending
    pool_features: Tensor  # [P, H]
    features: Tensor | None  # [N, H] only for methods that keep all features in place
    word_sums: Tensor | None  # [L, N] and
    unit_sums: Tensor | None  # [L, windows, H] only for POD-spatial

    def view(self, batch: TokenBatch) -> TeacherView:
        refs = batch.refs
        layers: LayerSums | None = None
        if self.word_sums is not None and self.unit_sums is not None:
            layers = [
                (words[refs], units[batch.windows], batch.rows)
                for words, units in zip(self.word_sums, self.unit_sums, strict=True)
            ]
        return TeacherView(
            logits=self.logits[refs],
            defined_other=self.defined_other[refs],
            confidence=self.confidence[refs],
            features=None if self.features is None else self.features[refs],
            layers=layers,
        )


def ask_teacher(
    teacher: Network,
    text: EncodedText,
    gold: Tensor,
    roles: LabelRoles,
    *,
    batch_size: int,
    keep_features: bool,
    keep_layers: bool,
) -> TeacherScores:
    """One pass of the teacher over the slice. ``gold [N]`` are the step's labels."""
    device, words, hidden = teacher.device, text.words, teacher.head.hidden
    kept = roles.kept.to(device)
    logits = torch.empty(words, len(kept), device=device)
    is_entity = roles.is_new.to(device)[gold.to(device)]
    is_other = gold.to(device) == roles.other
    features = torch.empty(words, hidden, device=device) if keep_features else None
    word_sums: Tensor | None = None
    unit_sums: Tensor | None = None
    pool_refs: list[Tensor] = []
    pool_features: list[Tensor] = []
    for batch, out in outputs(teacher, text, batch_size=batch_size, with_layers=keep_layers):
        refs = batch.refs
        logits[refs] = out.logits[:, kept]
        old = is_other[refs] & (logits[refs].argmax(1) != 0)  # kept[0] is O
        chosen = old | is_entity[refs]
        pool_refs.append(refs[chosen])
        pool_features.append(out.features[chosen])
        if features is not None:
            features[refs] = out.features
        if keep_layers:
            if word_sums is None or unit_sums is None:
                word_sums = torch.empty(len(out.layers), words, device=device)
                unit_sums = torch.empty(len(out.layers), text.windows, hidden, device=device)
            for index, (over_hidden, over_words, _) in enumerate(
                layer_sums(out.layers, batch.rows, len(batch.windows))
            ):
                word_sums[index, refs] = over_hidden.float()
                unit_sums[index, batch.windows] = over_words.float()
    probabilities = logits.softmax(1)
    pool = torch.cat(pool_refs) if pool_refs else torch.empty(0, dtype=torch.long, device=device)
    order = pool.argsort()
    return TeacherScores(
        logits=logits,
        defined_other=is_other & (logits.argmax(1) != 0),
        confidence=probabilities.max(1).values,
        pool=pool[order],
        pool_features=(torch.cat(pool_features) if pool_features else logits.new_empty(0, hidden))[order],
        features=features,
        word_sums=word_sums,
        unit_sums=unit_sums,
    )
