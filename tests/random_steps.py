"""Random steps, each made twice: as the oracle's plain lists and as the tensors that the package reads.

Labels get other numbers in the package than in the oracle (a random permutation), so nothing may depend on
O being label 0 or on new labels coming last: both happen with somebody's checkpoint or with more data for a
known type.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor

import oracle
from cfner.batches.step_data import IGNORE
from cfner.methods import create
from cfner.methods.context import ExampleContext
from cfner.objective.matching import ScoreBank
from cfner.objective.teacher import WordScores
from cfner.objective.terms import LabelRoles, Objective, TeacherView, TermInputs
from cfner.training.preparation import match_pools


@dataclass(frozen=True)
class Shape:
    """What to draw. ``mix``: of which kinds the tokens are."""

    seed: int
    tokens: int = 12  # of the slice
    in_batch: int = 8
    old_types: int = 2
    new_types: int = 1
    labels_per_type: int = 2
    mix: str = "any"  # any, all_other, all_entity, no_defined_other, one_label
    k: int = 3
    weights: tuple[float, ...] | None = None
    sharpness: float = 3.0  # spread of the scores; large values make confident predictions
    delta: float = 0.0
    unlabelled: float = 0.0  # which share of the O tokens is from text without labels


@st.composite
def shapes(draw: st.DrawFn, **fixed: Any) -> Shape:
    tokens = draw(st.integers(0, 14))
    values: dict[str, Any] = {
        "seed": draw(st.integers(0, 2**32 - 1)),
        "tokens": tokens,
        "in_batch": draw(st.integers(0, tokens)),
        "old_types": draw(st.integers(0, 3)),
        "new_types": draw(st.integers(1, 3)),
        "labels_per_type": draw(st.integers(1, 2)),
        "mix": draw(st.sampled_from(["any", "all_other", "all_entity", "no_defined_other", "one_label"])),
        "k": draw(st.integers(0, 4)),
        "sharpness": draw(st.sampled_from([0.1, 3.0, 20.0])),
        "delta": draw(st.sampled_from([0.0, 0.3, 0.7, 1.0])),
        "unlabelled": draw(st.sampled_from([0.0, 0.5, 1.0])),
    }
    return Shape(**{**values, **fixed})


@dataclass(frozen=True)
class StepOfTensors(ExampleContext):
    """What a method may look at, with the labels of one batch as the data."""

    label_roles: LabelRoles | None = None
    gold: Tensor | None = None
    labelled: Tensor | None = None  # which words' text is labelled with the current types

    @property
    def current(self) -> Any:
        return ()  # one slice of text is labelled with all current types, the other with none

    @property
    def roles(self) -> LabelRoles:
        assert self.label_roles is not None
        return self.label_roles

    @property
    def data(self) -> Any:
        assert self.gold is not None and self.labelled is not None
        known = self.gold.masked_fill(~self.labelled, IGNORE)
        return SimpleNamespace(gold=self.gold, known_labels=known, annotated=lambda types: self.labelled)


@dataclass(frozen=True)
class RandomStep:
    shape: Shape
    batch: oracle.Batch
    inputs: TermInputs  # logits are a leaf that wants a gradient
    facts: StepOfTensors
    to_package: list[int]  # the package's number of each of the oracle's labels

    def objective(self, name: str, parameters: dict[str, Any], without: tuple[str, ...] = ()) -> Objective:
        return create(name, parameters, without, as_published=True).objective(self.facts)

    def losses(self, name: str, without: tuple[str, ...] = (), **parameters: Any) -> dict[str, Tensor]:
        """The terms of a named method, with the targets that it chooses: the batch is the whole step."""
        method = create(name, parameters, without, as_published=True)
        targets = method.targets(self.facts, self.inputs.teachers)  # type: ignore[arg-type]
        inputs = replace(self.inputs, targets=targets.labels, weights=targets.weights)
        return method.objective(self.facts).losses(inputs)

    def total(self, name: str, without: tuple[str, ...] = (), **parameters: Any) -> Tensor:
        objective = self.objective(name, parameters, without)
        return objective.total(self.losses(name, without, **parameters))

    @property
    def causal(self) -> dict[str, Any]:
        """The parameters that every method with causal effects takes, as this step was drawn."""
        shape = self.shape
        return {
            "k": shape.k,
            "weights": shape.weights,
            "delta_1": max(shape.delta, 0.0),
            "delta_m": shape.delta,
            "m": 1,
        }


def random_step(shape: Shape) -> RandomStep:
    draw = np.random.default_rng(shape.seed)
    kept = list(range(1 + shape.old_types * shape.labels_per_type))
    new = list(range(len(kept), len(kept) + shape.new_types * shape.labels_per_type))
    count = len(kept) + len(new)
    gold = _golds(draw, shape, new)
    teacher = draw.normal(0, shape.sharpness, (shape.tokens, len(kept)))
    if shape.mix == "no_defined_other":
        teacher[:, 0] += 1000.0
    features = draw.normal(0, 1, (shape.tokens, 5))
    banked = draw.normal(0, shape.sharpness, (shape.tokens, count))  # the student's remembered scores
    refs = draw.permutation(shape.tokens)[: shape.in_batch]
    sigma = float(draw.uniform(1, 20))
    cosines = draw.uniform(-1, 1, (len(refs), count))
    student_features = draw.normal(0, 1, (len(refs), 5))
    slice_tokens = [oracle.Token(int(gold[i]), (), teacher[i].tolist()) for i in range(shape.tokens)]
    matched = _matches(slice_tokens, features, kept, shape.k)
    batch = oracle.Batch(
        tokens=[
            oracle.Token(
                gold=int(gold[ref]),
                student=(sigma * cosines[row]).tolist(),
                teacher=teacher[ref].tolist(),
                matched=[banked[other].tolist() for other in matched.get(int(ref), [])],
                student_feature=student_features[row].tolist(),
                teacher_feature=features[ref].tolist(),
                cosines=cosines[row].tolist(),
            )
            for row, ref in enumerate(refs)
        ],
        kept=kept,
        new=new,
        old_types=shape.old_types,
        new_types=shape.new_types,
        delta=shape.delta,
        sigma=sigma,
    )
    to_package = draw.permutation(count)
    for token in batch.tokens:
        token.labelled = token.gold != oracle.OTHER or bool(draw.random() >= shape.unlabelled)
    inputs = _tensors(shape, draw, batch, to_package, gold, teacher, features, banked, refs)
    labelled = torch.tensor([token.labelled for token in batch.tokens], dtype=torch.bool)
    inputs = replace(inputs, annotated=labelled)
    facts = StepOfTensors(
        shape.old_types, shape.new_types, 1, label_roles=inputs.roles, gold=inputs.gold, labelled=labelled
    )
    return RandomStep(shape, batch, inputs, facts, to_package.tolist())


def _golds(draw: np.random.Generator, shape: Shape, new: list[int]) -> np.ndarray:
    if shape.mix == "all_other":
        return np.zeros(shape.tokens, dtype=int)
    if shape.mix == "all_entity":
        return draw.choice(new, shape.tokens)
    if shape.mix == "one_label":
        return np.full(shape.tokens, new[0])
    return np.where(draw.random(shape.tokens) < 0.5, 0, draw.choice(new, shape.tokens))


def _matches(
    tokens: list[oracle.Token], features: np.ndarray, kept: list[int], k: int
) -> dict[int, list[int]]:
    entity = [i for i, token in enumerate(tokens) if token.gold != oracle.OTHER]
    defined = [i for i, token in enumerate(tokens) if oracle.defined_other(token, kept)]
    found = {}
    for pool in (entity, defined):
        for row, nearest in enumerate(oracle.neighbours([features[i].tolist() for i in pool], k)):
            found[pool[row]] = [pool[j] for j in nearest]
    return found


def _tensors(
    shape: Shape,
    draw: np.random.Generator,
    batch: oracle.Batch,
    to_package: np.ndarray,
    gold: np.ndarray,
    teacher: np.ndarray,
    features: np.ndarray,
    banked: np.ndarray,
    refs: np.ndarray,
) -> TermInputs:
    """The same step as float64 tensors; fills in the oracle's layers on the way."""
    to_oracle = np.argsort(to_package)
    roles = LabelRoles(
        int(to_package[0]),
        tuple(sorted(int(to_package[c]) for c in batch.kept[1:])),
        tuple(sorted(int(to_package[c]) for c in batch.new)),
        len(to_package),
    )
    gold_ids = torch.tensor(to_package[gold], dtype=torch.long)
    kept_logits = torch.tensor(teacher[:, to_oracle[roles.kept.numpy()]]).reshape(
        shape.tokens, len(batch.kept)
    )
    tokens = [oracle.Token(int(gold[i]), (), teacher[i].tolist()) for i in range(shape.tokens)]
    defined = torch.tensor([oracle.defined_other(t, batch.kept) for t in tokens], dtype=torch.bool)
    confidence = torch.tensor([oracle.confidence(t, batch.kept) for t in tokens], dtype=torch.float64)
    pool = ((gold_ids != roles.other) | defined).nonzero()[:, 0]
    scores = WordScores(kept_logits, defined, confidence, pool, torch.tensor(features)[pool])
    table = match_pools(scores, gold_ids, roles, shape.k, shape.weights)
    index = torch.tensor(refs, dtype=torch.long)
    sequences = draw.integers(1, len(refs) + 1) if len(refs) else 0
    rows = torch.tensor([i % sequences for i in range(len(refs))], dtype=torch.long)
    student_layers = _layers(draw, batch.student_layers, rows, int(sequences))
    teacher_layers = _layers(draw, batch.teacher_layers, rows, int(sequences))
    view = TeacherView(
        kept_logits[index],
        defined[index],
        confidence[index],
        {"features": (torch.tensor(features)[index],), "layer_sums": teacher_layers},
    )

    def stacked(values: list[oracle.Vector], width: int) -> Tensor:
        return torch.tensor(values, dtype=torch.float64).reshape(len(refs), width)

    logits = stacked([token.student for token in batch.tokens], len(to_package))
    cosines = stacked([token.cosines for token in batch.tokens], len(to_package))
    own = stacked([token.student_feature for token in batch.tokens], 5)
    return TermInputs(
        logits=logits[:, to_oracle].clone().requires_grad_(),
        features=own,
        gold=gold_ids[index],
        refs=index,
        roles=roles,
        teachers={"old": view},
        rows=rows,
        bank=ScoreBank(table, torch.tensor(banked[:, to_oracle])[table.refs]),
        cosines=cosines[:, to_oracle],
        sigma=torch.tensor(batch.sigma, dtype=torch.float64),
        readings={"features": (own,), "layer_sums": student_layers},
    )


def _layers(draw: np.random.Generator, plain: list[Any], rows: Tensor, sequences: int) -> Any:
    """Three layers, 4 units wide: appended to the oracle's nested lists, returned as the package's sums."""
    layers = []
    for _ in range(3):
        values = draw.normal(0, 1, (len(rows), 4))
        plain.append([values[(rows == row).numpy()].tolist() for row in range(sequences)])
        layers.append(torch.tensor(values))
    return layer_sums(layers, rows, sequences)


def layer_sums(layers: Sequence[Tensor], rows: Tensor, sequences: int) -> tuple[Tensor, Tensor]:
    """What the probe of that name gives for layers [W, H]: [W, L] and [B, L, H]."""
    stacked = torch.stack(list(layers), 1)
    return stacked.sum(2), stacked.new_zeros(sequences, *stacked.shape[1:]).index_add(0, rows, stacked)
