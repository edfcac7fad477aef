"""Everything a step needs before its first batch: teachers' scores, grown head, targets, matches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from cfner.batches.loader import TokenBatch
from cfner.batches.step_data import StepData
from cfner.methods.context import Targets
from cfner.methods.registry import Method
from cfner.network.head import CosineHead, make_head
from cfner.network.network import Network, TaggerOutput
from cfner.network.probes import Probe
from cfner.objective.effects import matching_of
from cfner.objective.library import ClassifyAll, ClassifyReplayed
from cfner.objective.matching import MatchTable, ScoreBank, build_match_table
from cfner.objective.teacher import WordScores, score_words
from cfner.objective.terms import LabelRoles, Objective, TermInputs
from cfner.stream.labels import LabelSpace
from cfner.stream.stream import Step
from cfner.training.config import TrainingConfig


class TrainingContext:
    """What a method may look at: see ``methods.context.StepContext``. ``known`` is None in a first step."""

    def __init__(
        self,
        step: Step,
        labels: LabelSpace,
        current: tuple[str, ...],  # types that the data labels
        data: StepData,
        config: TrainingConfig,
        known: Network | None,  # the network as it came in, frozen
    ) -> None:
        self.step, self.labels, self.current, self.data = step, labels, current, data
        self.config, self.known = config, known
        self.epochs, self.freeze_other = config.epochs, config.freeze_other
        self.old_types, self.new_types = len(labels.types) - len(current), len(current)
        self.roles = roles_of(labels, current, None if known is None else known.head.labels)

    @property
    def old(self) -> Network:
        if self.known is None:
            raise AttributeError("a first step has no old network")
        return self.known

    def ask(self, network: Network, probes: Sequence[Probe] = ()) -> WordScores:
        return score_words(network, self.data, self.roles, probes, batch_size=self.config.eval_batch_size)


@dataclass(frozen=True)
class PreparedStep:
    """A step ready to be trained; the network that is trained has its grown head already."""

    data: StepData
    roles: LabelRoles
    objective: Objective
    targets: Targets
    annotated: Tensor  # [N] bool: with the types that the step labels
    teachers: Mapping[str, WordScores] = field(default_factory=dict)
    bank: ScoreBank | None = None
    old: Network | None = None  # only where a probe reads it again for every batch

    @property
    def teacher(self) -> WordScores | None:
        return self.teachers.get("old")

    def on(self, device: torch.device) -> PreparedStep:
        """The same step with what batches index on the device that trains."""
        weights = self.targets.weights
        return replace(
            self,
            data=replace(self.data, gold=self.data.gold.to(device)),
            roles=self.roles.to(device),
            targets=Targets(self.targets.labels.to(device), None if weights is None else weights.to(device)),
            annotated=self.annotated.to(device),
            bank=None if self.bank is None else self.bank.on(device),
        )

    def inputs(self, network: Network, batch: TokenBatch, out: TaggerOutput, epoch: int) -> TermInputs:
        """What the losses of a batch read. ``out`` is what the student said of it, with what the objective's
        probes read.
        """
        refs, now = batch.refs, {}
        if self.old is not None:
            uncached = [probe for probe in self.objective.probes if not probe.cached]
            with torch.no_grad():
                now = dict(self.old(batch, uncached).readings)
        weights = self.targets.weights
        sigma = None
        if isinstance(network.head, CosineHead) and self.objective.needs_cosines:
            sigma = network.head.sigma
        return TermInputs(
            logits=out.logits,
            features=out.features,
            gold=self.data.gold[refs],
            refs=refs,
            roles=self.roles,
            targets=self.targets.labels[refs],
            weights=None if weights is None else weights[refs],
            annotated=self.annotated[refs],
            rows=batch.rows,
            epoch=epoch,
            teachers={
                name: scores.view(batch, now if name == "old" else None)
                for name, scores in self.teachers.items()
            },
            bank=self.bank,
            cosines=None if sigma is None else out.logits / sigma,
            sigma=sigma,
            readings=out.readings,
        )


def roles_of(labels: LabelSpace, current: Sequence[str], known: int | None = None) -> LabelRoles:
    """``known``: how many of the labels the teacher has. A label of an old type beyond those is a new one:
    replayed sentences have it, and the teacher has nothing to say of it.
    """
    old = [type_ for type_ in labels.types if type_ not in set(current)]
    kept = tuple(label for label in labels.ids_of(old) if known is None or label < known)
    added = tuple(label for label in labels.ids_of(old) if label not in kept)
    return LabelRoles(labels.other_id, kept, (*labels.ids_of(current), *added), len(labels))


def prepare(network: Network, ctx: TrainingContext, method: Method) -> PreparedStep:
    """Ask the teachers, grow the head, decide the targets, match words, fill the bank.

    Plain cross-entropy on the labels as they are where there is nothing to keep: in a plain first step, and
    where the data labels all the types there are.
    """
    roles, config = ctx.roles, ctx.config
    annotated = ctx.data.annotated(ctx.current)
    first = ctx.known is None
    plain = method.plain_first_step if first else not ctx.old_types
    objective = Objective((ClassifyAll(),)) if plain else method.objective(ctx)
    if len(ctx.data.slices) > 1 and not any(isinstance(term, ClassifyAll) for term in objective.terms):
        objective = Objective((*objective.terms, ClassifyReplayed()))
    if first:
        head = make_head(config.head, network.head.hidden, len(ctx.labels), config.sigma)
        network.head = head.to(network.device)
        targets = Targets(ctx.data.gold) if plain else method.targets(ctx, {})
        if not plain:
            method.begin(network, ctx)
        return PreparedStep(ctx.data, roles, objective, targets, annotated)
    teachers = {"old": ctx.ask(ctx.old)} if plain else method.teachers(ctx)
    teacher = teachers["old"]
    grow(network, teacher, ctx.data.gold, ctx.labels)
    method.begin(network, ctx)
    bank = None
    matching = matching_of(objective)
    if matching is not None:
        table = match_pools(teacher, ctx.data.gold, roles, matching.k, matching.weights)
        bank = ScoreBank(table, _scores_at_start(network, teacher, table))
    targets = Targets(ctx.data.gold) if plain else method.targets(ctx, teachers)
    reads_old = any(not probe.cached for probe in objective.probes)
    return PreparedStep(
        ctx.data, roles, objective, targets, annotated, teachers, bank, ctx.old if reads_old else None
    )


def grow(network: Network, teacher: WordScores, gold: Tensor, labels: LabelSpace) -> None:
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
    teacher: WordScores, gold: Tensor, roles: LabelRoles, k: int, weights: Sequence[float] | None
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
def _scores_at_start(network: Network, teacher: WordScores, table: MatchTable) -> Tensor:
    """The student still has the teacher's features, so its first scores need no pass of their own."""
    rows = table.row_of_ref[teacher.pool.cpu()].to(network.device)
    scores = network.head(teacher.pool_features)
    logits = torch.empty(len(table.refs), network.head.labels, device=network.device)
    logits[rows] = scores
    return logits
