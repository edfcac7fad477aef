"""The method, once more: every equation as loops over single tokens, with ``math`` on plain lists.

It is slow and repetitive on purpose and shares nothing with the package, so that the two can disagree.
Label 0 is O. ``kept`` is O and the old labels; ``matched`` holds the scores of a token's matched tokens.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

Vector = Sequence[float]
OTHER = 0  # the label O


@dataclass
class Token:
    """A labelled token of a batch, with all that any loss may ask of it."""

    gold: int
    student: Vector  # the student's scores of all labels
    teacher: Vector = ()  # the teacher's scores of the labels that it knows
    matched: list[Vector] = field(default_factory=list)  # the student's scores of the matched tokens
    student_feature: Vector = ()
    teacher_feature: Vector = ()
    cosines: Vector = ()  # the student's cosines to every label's row, before sigma
    labelled: bool = True  # whether its text is labelled with the step's types; if not, gold is O


# -- vectors ---------------------------------------------------------------------------------------------


def dot(a: Vector, b: Vector) -> float:
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


def norm(a: Vector) -> float:
    return math.sqrt(dot(a, a))


def cosine(a: Vector, b: Vector) -> float:
    return dot(a, b) / (norm(a) * norm(b))


def unit(a: Vector) -> list[float]:
    length = norm(a)
    return [x / length for x in a]


def distance(a: Vector, b: Vector) -> float:
    return math.sqrt(math.fsum((x - y) ** 2 for x, y in zip(a, b, strict=True)))


def softmax(scores: Vector, temperature: float = 1.0) -> list[float]:
    top = max(scores)
    powers = [math.exp((score - top) / temperature) for score in scores]
    total = math.fsum(powers)
    return [power / total for power in powers]


def argmax(values: Vector) -> int:
    best = 0
    for index, value in enumerate(values):
        if value > values[best]:
            best = index
    return best


def mean(values: list[float]) -> float:
    """A term with no token is an exact 0."""
    return math.fsum(values) / len(values) if values else 0.0


# -- schedules -------------------------------------------------------------------------------------------


def curriculum_delta(epoch: int, delta_1: float, delta_m: float, m: int) -> float:
    """delta of epoch i = 1, 2, ...: a straight line up to epoch m, then flat; m = 1 is delta_m at once."""
    if m == 1 or epoch >= m:
        return delta_m
    return delta_1 + (epoch - 1) / (m - 1) * (delta_m - delta_1)


def adaptive_weight(base: float, old_types: int, new_types: int) -> float:
    return base * math.sqrt(old_types / new_types)


# -- neighbours ------------------------------------------------------------------------------------------


def neighbours(features: Sequence[Vector], k: int) -> list[list[int]]:
    """For every token of a pool the k others nearest to it on the unit sphere, nearest first."""
    units = [unit(feature) for feature in features]
    result = []
    for i, anchor in enumerate(units):
        others = [(distance(anchor, other), j) for j, other in enumerate(units) if j != i]
        others.sort()
        result.append([j for _, j in others[:k]])
    return result


# -- learning new types ----------------------------------------------------------------------------------


def cross_entropy(scores: list[Vector], golds: list[int]) -> float:
    return mean([-math.log(softmax(row)[gold]) for row, gold in zip(scores, golds, strict=True)])


def matched_weights(matches: int, given: Vector | None = None) -> list[float]:
    """(W_i, W_i1, ...) of an anchor with so many matched tokens; ``given`` are weights for K of them.

    1/2 and 1/(2K') unless given; a token alone weighs 1. With fewer matches than given weights the anchor
    keeps its own and the others share the rest in proportion; but weights never increase, so the anchor gets
    more where its nearest match would outweigh it.
    """
    if matches == 0:
        return [1.0]
    if given is None:
        return [0.5] + [1.0 / (2 * matches)] * matches
    present = list(given[1 : matches + 1])
    total = math.fsum(present)
    if total == 0.0:
        return [1.0] + [0.0] * matches
    shares = [weight / total for weight in present]
    anchor = max(given[0], shares[0] / (1.0 + shares[0]))
    return [anchor] + [(1.0 - anchor) * share for share in shares]


def averaged(own: Vector, matched: list[list[float]], weights: Vector) -> list[float]:
    """W_i p_i + sum_k W_ik p_ik."""
    mixed = []
    for label in range(len(own)):
        value = weights[0] * own[label]
        for weight, distribution in zip(weights[1:], matched, strict=True):
            value += weight * distribution[label]
        mixed.append(value)
    return mixed


def effect_e(tokens: list[Token], given: Vector | None = None) -> float:
    losses = []
    for token in tokens:
        weights = matched_weights(len(token.matched), given)
        mixture = averaged(softmax(token.student), [softmax(row) for row in token.matched], weights)
        losses.append(-math.log(mixture[token.gold]))
    return mean(losses)


def effect_e_gradient(token: Token) -> list[float]:
    """d(-log(W p[y] + m)) / d(anchor's scores) where m, the matched tokens' share, is a constant."""
    p = softmax(token.student)
    weights = matched_weights(len(token.matched))
    mixture = averaged(p, [softmax(row) for row in token.matched], weights)[token.gold]
    gradient = []
    for label in range(len(p)):
        same = 1.0 if label == token.gold else 0.0
        gradient.append(-weights[0] / mixture * p[token.gold] * (same - p[label]))
    return gradient


def nca(tokens: list[Token], sigma: float, margin: float = 0.6) -> float:
    losses = []
    for token in tokens:
        above = math.exp(sigma * (token.cosines[token.gold] - margin))
        below = math.fsum(math.exp(sigma * s) for j, s in enumerate(token.cosines) if j != token.gold)
        losses.append(max(0.0, -math.log(above / below)))
    return mean(losses)


# -- keeping old types -----------------------------------------------------------------------------------


def teacher_distribution(token: Token, kept: list[int], t_teacher: float, hard: bool) -> list[float]:
    """The teacher's distribution over O and the old labels, in the order of ``kept``."""
    q = softmax([token.teacher[label] for label in kept], t_teacher)
    if hard:
        best = argmax(q)
        return [1.0 if index == best else 0.0 for index in range(len(q))]
    return q


def defined_other(token: Token, kept: list[int]) -> bool:
    """An O token that the teacher takes for a mention of an old type."""
    return token.gold == OTHER and kept[argmax([token.teacher[label] for label in kept])] != OTHER


def confidence(token: Token, kept: list[int]) -> float:
    """The teacher's probability of the label that it predicts."""
    return max(softmax([token.teacher[label] for label in kept]))


def as_the_teacher(token: Token, s: Vector, kept: list[int]) -> list[float]:
    """Where nobody said whether a word is of a new type, the teacher's O means O or any new label."""
    answers = list(s)
    if not token.labelled:
        answers[OTHER] = math.fsum(p for label, p in enumerate(s) if label == OTHER or label not in kept)
    return answers


def effect_o(
    tokens: list[Token],
    kept: list[int],
    delta: float,
    t_student: float = 1.0,
    t_teacher: float = 1.0,
    hard: bool = False,
    given: Vector | None = None,
) -> float:
    losses = []
    for token in tokens:
        if token.gold != OTHER:
            continue
        s = softmax(token.student, t_student)  # over all labels, and never renormalised
        if defined_other(token, kept) and confidence(token, kept) > delta:
            weights = matched_weights(len(token.matched), given)
            s = averaged(s, [softmax(row, t_student) for row in token.matched], weights)
        s = as_the_teacher(token, s, kept)
        loss = 0.0
        for q, label in zip(teacher_distribution(token, kept, t_teacher, hard), kept, strict=True):
            if q > 0.0:  # 0 log 0 = 0
                loss += q * (math.log(q) - math.log(s[label]))
        losses.append(loss)
    return mean(losses)


def effect_o_gradient(token: Token, kept: list[int], t_student: float = 1.0) -> list[float]:
    """The gradient of a selected defined-other token's loss: again through the anchor alone."""
    s = softmax(token.student, t_student)
    weights = matched_weights(len(token.matched))
    mixture = averaged(s, [softmax(row, t_student) for row in token.matched], weights)
    q = teacher_distribution(token, kept, 1.0, hard=False)
    gradient = []
    for label in range(len(s)):
        value = 0.0
        for index, c in enumerate(kept):
            same = 1.0 if c == label else 0.0
            value -= q[index] / mixture[c] * weights[0] * s[c] * (same - s[label]) / t_student
        gradient.append(value)
    return gradient


def distillation(
    tokens: list[Token], kept: list[int], t_student: float = 1.0, t_teacher: float = 1.0, hard: bool = False
) -> float:
    losses = []
    for token in tokens:
        if token.gold != OTHER:
            continue
        s = as_the_teacher(token, softmax(token.student, t_student), kept)
        loss = 0.0
        for q, label in zip(teacher_distribution(token, kept, t_teacher, hard), kept, strict=True):
            if q > 0.0:
                loss += q * (math.log(q) - math.log(s[label]))
        losses.append(loss)
    return mean(losses)


def feature_distance(tokens: list[Token]) -> float:
    return mean([1.0 - cosine(token.student_feature, token.teacher_feature) for token in tokens])


def margin_ranking(tokens: list[Token], new: list[int], margin: float = 0.5) -> float:
    losses = []
    for token in tokens:
        if token.gold == OTHER and token.labelled:
            rival = max(token.cosines[label] for label in new)
            losses.append(max(0.0, margin - token.cosines[OTHER] + rival))
    return mean(losses)


def pod_spatial(
    student_layers: list[list[list[Vector]]],
    teacher_layers: list[list[list[Vector]]],
) -> float:
    """Layers x sequences x tokens x units; a sequence holds its own tokens only, no padding.

    Per layer and sequence two vectors, one entry per token (summed over the units) and one entry per unit
    (summed over the tokens), brought to length 1; the distances of the student's from the teacher's.
    """
    layers = []
    for student_sequences, teacher_sequences in zip(student_layers, teacher_layers, strict=True):
        distances = []
        for ours, theirs in zip(student_sequences, teacher_sequences, strict=True):
            over_units = distance(unit([math.fsum(h) for h in ours]), unit([math.fsum(h) for h in theirs]))
            width = len(ours[0])
            over_tokens = distance(
                unit([math.fsum(h[i] for h in ours) for i in range(width)]),
                unit([math.fsum(h[i] for h in theirs) for i in range(width)]),
            )
            distances.append(over_units + over_tokens)
        layers.append(mean(distances))
    return mean(layers)


# -- whole objectives ------------------------------------------------------------------------------------


@dataclass
class Batch:
    """Labelled tokens, and what the method knows about its labels and types."""

    tokens: list[Token]
    kept: list[int]  # O and the old labels
    new: list[int]  # labels of the current types
    old_types: int
    new_types: int
    delta: float = 0.0
    sigma: float = 1.0
    student_layers: list[list[list[Vector]]] = field(default_factory=list)
    teacher_layers: list[list[list[Vector]]] = field(default_factory=list)

    @property
    def entities(self) -> list[Token]:
        return [token for token in self.tokens if token.gold != OTHER]


def ce_all(batch: Batch) -> float:
    labelled = [token for token in batch.tokens if token.labelled]
    return cross_entropy([token.student for token in labelled], [token.gold for token in labelled])


def ce_entities(batch: Batch) -> float:
    return cross_entropy(
        [token.student for token in batch.entities], [token.gold for token in batch.entities]
    )


def self_training(batch: Batch) -> float:
    scores, golds = [], []
    for token in batch.tokens:
        guess = batch.kept[argmax([token.teacher[label] for label in batch.kept])]
        if guess != OTHER or token.labelled:  # an O of which nobody is sure is not trained
            scores.append(token.student)
            golds.append(guess if token.gold == OTHER else token.gold)
    return cross_entropy(scores, golds)


def extendner(batch: Batch, weight: float = 1.0, t_student: float = 2.0, t_teacher: float = 1.0) -> float:
    return ce_entities(batch) + weight * distillation(batch.tokens, batch.kept, t_student, t_teacher)


def lucir(batch: Batch) -> float:
    weight = adaptive_weight(50.0, batch.old_types, batch.new_types)
    return (
        ce_entities(batch) + weight * feature_distance(batch.tokens) + margin_ranking(batch.tokens, batch.new)
    )


def podnet(batch: Batch) -> float:
    scale = math.sqrt((batch.old_types + batch.new_types) / batch.new_types)
    return (
        nca(batch.entities, batch.sigma)
        + 1.0 * scale * feature_distance(batch.tokens)
        + 3.0 * scale * pod_spatial(batch.student_layers, batch.teacher_layers)
    )


def cfner(
    batch: Batch,
    lambda_base: float = 2.0,
    hard: bool = False,
    t_student: float = 1.0,
    t_teacher: float = 1.0,
    given: Vector | None = None,
    without: frozenset[str] = frozenset(),
) -> float:
    """Effect_E + lambda Effect_O, and the six ablations through ``without``."""
    learn = ce_entities(batch) if "effect_e" in without else effect_e(batch.entities, given)
    if "effect_o" in without:
        keep = distillation(batch.tokens, batch.kept, t_student, t_teacher, hard)
    else:
        delta = 0.0 if "curriculum" in without else batch.delta
        keep = effect_o(batch.tokens, batch.kept, delta, t_student, t_teacher, hard, given)
    adaptive = "adaptive_weight" not in without
    weight = adaptive_weight(lambda_base, batch.old_types, batch.new_types) if adaptive else lambda_base
    return learn + weight * keep


def lucir_cf(batch: Batch) -> float:
    return cfner(batch) + margin_ranking(batch.tokens, batch.new)


def self_training_cf(batch: Batch) -> float:
    return cfner(batch, hard=True)


OBJECTIVES = {
    "finetune": ce_all,
    "joint": ce_all,
    "self-training": self_training,
    "extendner": extendner,
    "lucir": lucir,
    "podnet": podnet,
    "cfner": cfner,
    "lucir+cf": lucir_cf,
    "self-training+cf": self_training_cf,
}
