"""Everything a step needs before its first batch: teachers' scores, grown head, targets, matches."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor

from cfner.batches.step_data import StepData
from cfner.methods.context import Targets
from cfner.methods.method import Method
from cfner.network.head import empty_head, make_head
from cfner.network.network import Network
from cfner.network.probes import Probe
from cfner.objective.effects import matching_of
from cfner.objective.groups import LabelGroups
from cfner.objective.library import ClassifyAll, ClassifyReplayed
from cfner.objective.matching import MatchTable, ScoreBank, build_match_table
from cfner.objective.teacher import WordScores, score_words, word_logits
from cfner.objective.terms import LabelRoles, Objective
from cfner.store.origins import Origin
from cfner.stream.labels import LabelSpace
from cfner.stream.step import Step
from cfner.training.config import TrainingConfig
from cfner.training.prepared_step import PreparedStep


class TrainingContext:
    """What a method may see: see ``methods.context.StepContext``. ``known`` is None in a first step."""

    def __init__(
        self,
        step: Step,
        labels: LabelSpace,
        current: tuple[str, ...],  # types that are labelled in the data
        data: StepData,
        config: TrainingConfig,
        known: Network | None,  # the network before this step, frozen
        own_others: bool = False,  # whether the method gives types their own Other class
        origins: Sequence[Origin] = (),  # earlier networks that learned some of the known types
    ) -> None:
        self.step, self.labels, self.current, self.data = step, labels, current, data
        self.config, self.known, self.own_others, self.origins = config, known, own_others, tuple(origins)
        self.epochs, self.freeze_other = (
            config.epochs_for(len(step.train) or len(step.unlabelled)),
            config.freeze_other,
        )
        self.old_types, self.new_types = len(labels.types) - len(current), len(current)
        self.roles = roles_of(labels, current, None if known is None else known.labels, own_others)

    @cached_property
    def groups(self) -> LabelGroups:
        return LabelGroups.of(self.labels.group_of, self.roles)

    @property
    def has_old(self) -> bool:
        return self.known is not None

    @property
    def old(self) -> Network:
        if self.known is None:
            raise AttributeError("a first step has no old network")
        return self.known

    def reading(self, data: StepData) -> TrainingContext:
        """The same step with a different view of its text."""
        return TrainingContext(
            self.step, self.labels, self.current, data, self.config, self.known, self.own_others, self.origins
        )

    def ask(self, network: Network, probes: Sequence[Probe] = (), *, as_learned: bool = False) -> WordScores:
        return score_words(
            network,
            self.data,
            self.roles,
            probes,
            batch_size=self.config.eval_batch_size,
            group_of=self.labels.group_of if self.own_others else None,
            odds=self._odds_as_learned() if as_learned and self.origins else None,
        )

    def _odds_as_learned(self) -> Tensor:
        """[N, C_kept] log-odds against O from the networks that learned the types; nan for those that the
        network before this step learned itself. Only one earlier network is in memory at a time.
        """
        kept, groups = self.roles.kept, torch.tensor(self.labels.group_of)[self.roles.kept.cpu()]
        odds = torch.full((self.data.text.words, len(kept)), float("nan"), device=self.old.device)
        for origin in self.origins:
            columns = torch.isin(groups, torch.tensor(sorted(origin.groups))).nonzero()[:, 0]
            columns = columns[columns > 0]  # kept[0] is O
            if len(columns):
                network = origin.network().to(self.old.device)
                scores = word_logits(network, self.data, batch_size=self.config.eval_batch_size)
                odds[:, columns] = scores[:, kept[columns]] - scores[:, kept[:1]]
        return odds


def roles_of(
    labels: LabelSpace, current: Sequence[str], known: int | None = None, own_others: bool = False
) -> LabelRoles:
    """``known``: how many of the labels the teacher has. A label of an old type beyond those counts as new:
    replayed sentences have it, but the teacher has no score for it. With own Others the teacher's scores also
    include known types that the step labels: in some of its text they may not be labelled.
    """
    other = labels.other_id
    learned = {
        label
        for type_ in current
        for label in labels.ids_of([type_])
        if labels.group_of[label] == labels.group_of_type(type_)
    }
    there = range(len(labels)) if known is None else range(known)
    old = tuple(label for label in there if label != other and label not in learned)
    added = tuple(label for label in range(len(there), len(labels)) if label not in learned)
    kept = None
    if own_others:
        # a group whose types were all removed is not worth keeping
        kept = [label for label in range(known or 0) if label != other and label not in labels.unheard]
    return LabelRoles(other, old, (*sorted(learned), *added), len(labels), kept)


def prepare(network: Network, ctx: TrainingContext, method: Method) -> PreparedStep:
    """Compute the teachers' scores, grow the head, decide the targets, match words, fill the score bank.

    Uses plain cross-entropy on the given labels where there is nothing to keep: in a plain first step, and
    where all types are labelled in the data.
    """
    roles, config, own_others = ctx.roles, ctx.config, method.grouping is not None
    annotated = ctx.data.annotated(ctx.current)
    first = ctx.known is None
    plain = method.plain_first_step if first else not ctx.old_types and not own_others
    objective = Objective((ClassifyAll(),)) if plain else method.objective(ctx)
    replayed = any(not part.annotated and not part.unlabelled for part in ctx.data.slices)
    # with own Others, every label of a replayed word is learned as given
    if replayed and not own_others and not any(isinstance(term, ClassifyAll) for term in objective.terms):
        objective = Objective((*objective.terms, ClassifyReplayed()))
    if first:
        kind = method.head or config.head
        if own_others and not ctx.labels.other_id:
            network.head = empty_head(kind, network.head.hidden, config.sigma).to(network.device)
            grow(network, ctx.ask(network), ctx.data.gold, ctx.labels)
        else:  # at random; also where a bound starts from scratch with the labels of a checkpoint
            labels, hidden = ctx.labels, network.head.hidden
            head = make_head(
                kind, hidden, len(labels), config.sigma, groups=labels.group_of, other=labels.other_id
            )
            network.head = head.to(network.device)
        targets = Targets(ctx.data.known_labels) if plain else method.targets(ctx, {})
        if not plain:
            method.begin(network, ctx)
        groups = ctx.groups if own_others else None
        return PreparedStep(ctx.data, roles, objective, targets, annotated, groups)
    teachers = {"old": ctx.ask(ctx.old)} if plain else method.teachers(ctx)
    teacher = teachers["old"]
    grow(network, teacher, ctx.data.gold, ctx.labels)
    method.begin(network, ctx)
    bank = None
    matching = matching_of(objective)
    if matching is not None:
        group_of = ctx.groups.row_of if own_others else None
        table = match_pools(teacher, ctx.data.gold, roles, matching.k, matching.weights, group_of)
        bank = ScoreBank(table, _scores_at_start(network, teacher, table))
    targets = Targets(ctx.data.known_labels) if plain else method.targets(ctx, teachers)
    reads_old = any(not probe.cached for probe in objective.probes)
    prepared = PreparedStep(
        ctx.data,
        roles,
        objective,
        targets,
        annotated,
        ctx.groups if own_others else None,
        teachers,
        bank,
        ctx.old if reads_old else None,
    )
    return replace(prepared, views={} if plain else _views(prepared, ctx, method))


def _views(prepared: PreparedStep, ctx: TrainingContext, method: Method) -> dict[str, PreparedStep]:
    """The step in the method's other views of its text. Matches are those of the usual view."""
    views = {}
    for name, data in method.views(ctx).items():
        seen = ctx.reading(data)
        teachers = method.teachers(seen)
        targets = method.targets(seen, teachers)
        views[name] = replace(prepared, data=data, targets=targets, teachers=teachers, bank=None)
    return views


def grow(network: Network, teacher: WordScores, gold: Tensor, labels: LabelSpace) -> None:
    """Append a row per new label: the mean normalised teacher feature of its training tokens.

    A label without a token takes the mean of its type's tokens (so I- takes its B- row), or the type's row
    from an earlier step; a type without any token starts at random. The Other of a new group starts at the
    mean of the annotated words that are not of the group.
    """
    known = network.labels
    if known == len(labels):
        return
    unit = F.normalize(teacher.pool_features, dim=1)
    gold_of_pool = gold.to(unit.device)[teacher.pool]

    def tokens_of(ids: Collection[int]) -> Tensor:
        return unit[torch.isin(gold_of_pool, torch.tensor(sorted(ids), device=unit.device))]

    rows = []
    for label in range(known, len(labels)):
        type_ = labels.type_of(label)  # None for a label of a removed type
        of_type = labels.ids_of([] if type_ is None else [type_])
        tokens = tokens_of([label])
        if not len(tokens):
            tokens = tokens_of(of_type)
        if not len(tokens):
            tokens = network.known_rows(of_type)
        rows.append(tokens.mean(0) if len(tokens) else torch.randn(unit.shape[1]).to(unit))
    groups, others = labels.group_of[known:], []
    for group in network.new_groups(groups):
        own = tokens_of([label for label, its in enumerate(labels.group_of) if its == group])
        others.append((teacher.unit_sum - own.sum(0)) / max(1, teacher.annotated - len(own)))
    network.grow(
        network.imprint_rows(torch.stack(rows)),
        groups,
        network.imprint_rows(torch.stack(others)) if others else None,
    )


def match_pools(
    teacher: WordScores,
    gold: Tensor,
    roles: LabelRoles,
    k: int,
    weights: Sequence[float] | None,
    group_of: Tensor | None = None,
) -> MatchTable:
    """E tokens with E tokens, defined-other with defined-other, by TokenRef.

    ``group_of [C]``: with own Others only tokens of the same group are matched (the gold label's, or that of
    the teacher's label): a neighbour from another group would only predict O.
    """
    pool = teacher.pool.cpu()
    is_entity = roles.is_new[gold[pool]]
    kind = (~is_entity).long()
    if group_of is not None:
        given = roles.kept[teacher.logits[teacher.pool].argmax(1).cpu()]
        kind = kind + 2 * group_of[torch.where(is_entity, gold[pool], given)]
    features = teacher.pool_features.float().cpu()
    # indexes into the pool's feature table stand in for TokenRefs; replaced below
    kinds = sorted(set(kind.tolist())) if group_of is not None else [0, 1]
    pools = [(kind == one).nonzero()[:, 0] for one in kinds]
    table = build_match_table(features, pools, k, weights)
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
def _scores_at_start(network: Network, teacher: WordScores, table: MatchTable) -> Tensor:
    """The student still has the teacher's features, so its first scores need no extra pass."""
    rows = table.row_of_ref[teacher.pool.cpu()].to(network.device)
    scores = network.head(teacher.pool_features)
    logits = torch.empty(len(table.refs), network.head.labels, device=network.device)
    logits[rows] = scores
    return logits
