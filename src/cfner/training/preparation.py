"""Everything a step needs before its first batch: encoded data, teacher scores, grown head, matches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from cfner.batches.encoding import EncodedText, encode
from cfner.corpus.sentence import Sentence
from cfner.methods.registry import Method, StepFacts
from cfner.network.head import make_head
from cfner.network.network import Network
from cfner.objective.effects import matching_of
from cfner.objective.library import ClassifyAll, ClassifyReplayed
from cfner.objective.matching import MatchTable, ScoreBank, build_match_table
from cfner.objective.terms import LabelRoles, Objective
from cfner.stream.labels import LabelSpace
from cfner.training.config import TrainingConfig
from cfner.training.teacher import TeacherScores, ask_teacher


@dataclass(frozen=True)
class StepData:
    """A slice, encoded: words by TokenRef, and their label ids."""

    sentences: tuple[Sentence, ...]
    text: EncodedText
    gold: Tensor  # [N]


@dataclass(frozen=True)
class PreparedStep:
    """A step ready to be trained. ``network`` is the student, its head already grown."""

    data: StepData
    roles: LabelRoles
    objective: Objective
    teacher: TeacherScores | None
    bank: ScoreBank | None

    def on(self, device: torch.device) -> PreparedStep:
        """The same step with what batches index on the device that trains."""
        data = replace(self.data, gold=self.data.gold.to(device))
        bank = None if self.bank is None else self.bank.on(device)
        return replace(self, data=data, roles=self.roles.to(device), bank=bank)


def encode_slice(
    sentences: Sequence[Sentence],
    labels: LabelSpace,
    tokenizer: Any,
    *,
    max_length: int,
    overlap: int | None,
) -> StepData:
    kept = tuple(sentence for sentence in sentences if len(sentence))
    text = encode(kept, tokenizer, max_length=max_length, overlap=overlap)
    gold = torch.tensor([label for sentence in kept for label in labels.encode(sentence)], dtype=torch.long)
    return StepData(kept, text, gold)


def roles_of(labels: LabelSpace, current: Sequence[str], known: int | None = None) -> LabelRoles:
    """``known``: how many of the labels the teacher has. A label of an old type beyond those is a new one:
    replayed sentences have it, and the teacher has nothing to say of it.
    """
    old = [type_ for type_ in labels.types if type_ not in set(current)]
    kept = tuple(label for label in labels.ids_of(old) if known is None or label < known)
    added = tuple(label for label in labels.ids_of(old) if label not in kept)
    return LabelRoles(labels.other_id, kept, (*labels.ids_of(current), *added), len(labels))


def prepare_first(
    network: Network, data: StepData, labels: LabelSpace, current: Sequence[str], config: TrainingConfig
) -> PreparedStep:
    """The first step, or any step of a method that starts afresh: a new head, plain cross-entropy."""
    head = make_head(config.head, network.head.hidden, len(labels), config.sigma)
    network.head = head.to(network.device)
    return PreparedStep(data, roles_of(labels, current), Objective((ClassifyAll(),)), None, None)


def prepare_later(
    network: Network,
    data: StepData,
    labels: LabelSpace,
    current: Sequence[str],
    method: Method,
    config: TrainingConfig,
    *,
    replay: bool = False,
) -> PreparedStep:
    """Ask the teacher (the network as it comes in), grow the head, match tokens, fill the bank.

    ``replay``: the data holds old sentences too, labelled with old types.
    """
    roles = roles_of(labels, current, network.head.labels)
    old_types = len(labels.types) - len(current)
    if old_types:
        objective = method.objective(StepFacts(old_types, len(current), config.epochs, roles))
    else:  # more data for all the types there are: nothing is hidden in O, so there is nothing to keep
        objective = Objective((ClassifyAll(),))
    if replay and not any(isinstance(term, ClassifyAll) for term in objective.terms):
        objective = Objective((*objective.terms, ClassifyReplayed()))
    teacher = ask_teacher(
        network,
        data.text,
        data.gold,
        roles,
        batch_size=config.eval_batch_size,
        keep_features=objective.needs("features"),
        keep_layers=objective.needs("layers"),
    )
    grow(network, teacher, data.gold, labels)
    if method.freezes_old_rows:
        network.head.freeze([*roles.old, *([roles.other] if config.freeze_other else [])])
    bank = None
    matching = matching_of(objective)
    if matching is not None:
        table = match_pools(teacher, data.gold, roles, matching.k, matching.weights)
        bank = ScoreBank(table, _scores_at_start(network, teacher, table))
    return PreparedStep(data, roles, objective, teacher, bank)


def grow(network: Network, teacher: TeacherScores, gold: Tensor, labels: LabelSpace) -> None:
    """Append a row per new label: the mean normalised teacher feature of its training tokens.

    A label with no token takes the mean of its type's tokens (so I- takes its B- row), or the type's row
    from an earlier step; a type with no token at all starts at random.
    """
    known = network.head.labels
    if known == len(labels):
        return
    unit = F.normalize(teacher.pool_features, dim=1)
    gold_of_pool = gold.to(unit.device)[teacher.pool]
    rows = []
    for label in range(known, len(labels)):
        of_type = labels.ids_of([labels.type_of(label) or ""])
        tokens = unit[gold_of_pool == label]
        if not len(tokens):
            tokens = unit[torch.isin(gold_of_pool, torch.tensor(of_type, device=unit.device))]
        if not len(tokens):
            tokens = network.head.weight.detach()[[row for row in of_type if row < known]]
        rows.append(tokens.mean(0) if len(tokens) else torch.randn(unit.shape[1]).to(unit))
    network.grow(network.head.imprint_rows(torch.stack(rows)), frozen=())


def match_pools(
    teacher: TeacherScores, gold: Tensor, roles: LabelRoles, k: int, weights: Sequence[float] | None
) -> MatchTable:
    """E tokens with E tokens, defined-other with defined-other, by TokenRef."""
    pool = teacher.pool.cpu()
    is_entity = roles.is_new[gold[pool]]
    features = teacher.pool_features.float().cpu()
    # rows of the pool's own feature table stand in for TokenRefs; renamed below
    table = build_match_table(features, [is_entity.nonzero()[:, 0], (~is_entity).nonzero()[:, 0]], k, weights)
    row_of_ref = torch.full((len(gold),), -1, dtype=torch.long)
    row_of_ref[pool[table.refs]] = torch.arange(len(table.refs))
    return MatchTable(
        row_of_ref,
        pool[table.refs],
        table.neighbours,
        table.cosines,
        table.anchor_weights,
        table.match_weights,
    )


@torch.no_grad()
def _scores_at_start(network: Network, teacher: TeacherScores, table: MatchTable) -> Tensor:
    """The student still has the teacher's features, so its first scores need no pass of their own."""
    rows = table.row_of_ref[teacher.pool.cpu()].to(network.device)
    scores = network.head(teacher.pool_features)
    logits = torch.empty(len(table.refs), network.head.labels, device=network.device)
    logits[rows] = scores
    return logits
